//! Frameworks by the files that installing them leaves: metadata of Python packages and PyTorch's
//! version file.

use super::torch;
use crate::model::Facts;
use crate::model::framework::Package;
use crate::observed::Seen;
use crate::raw::RawItem;
use crate::version::CudaVersion;

/// Enters one item, if its path is that of such a file. Returns whether it was.
pub(super) fn apply(item: &RawItem, path: &str, facts: &mut Facts) -> bool {
    let Some(text) = item.text() else { return path.ends_with(".dist-info/METADATA") };
    if path.ends_with(".dist-info/METADATA") {
        metadata(item, path, &text, facts);
    } else if path.ends_with("/torch/version.py") {
        torch_version(item, &text, facts);
    } else {
        return false;
    }
    true
}

fn metadata(item: &RawItem, path: &str, text: &str, facts: &mut Facts) {
    let field = |name: &str| {
        let mut lines = crate::parse::numbered(text);
        lines.find_map(|(number, line)| {
            let value = line.strip_prefix(name)?.strip_prefix(": ")?;
            Some((number, value.trim().to_owned()))
        })
    };
    let (Some((_, name)), Some((number, version))) = (field("Name"), field("Version")) else {
        return;
    };
    let origin = item.origin_of_line(number);
    if name == "torch" {
        let torch = torch::entry(facts, &origin);
        torch.version.get_or_insert_with(|| version.clone());
    }
    let cuda = tag(&version);
    let python = path.rsplit_once('/').and_then(|(folder, _)| folder.rsplit_once('/'));
    let python = python.map(|(site, _)| site.to_owned());
    facts.framework.packages.push(Seen::new(Package { name, version, cuda, python }, origin));
}

/// `+cu128` and `+cu12torch2.7`: the CUDA that a wheel's local version names.
fn tag(version: &str) -> Option<CudaVersion> {
    let (_, tag) = version.split_once("+cu")?;
    let digits: String = tag.chars().take_while(char::is_ascii_digit).collect();
    match digits.len() {
        0..=1 => None,
        // Two digits are a major alone (`cu12`), but for the old `cu92`.
        2 if digits != "92" && digits != "90" && digits != "91" => CudaVersion::parse(&digits),
        _ => CudaVersion::from_tag(&digits),
    }
}

/// `cuda: Optional[str] = '12.8'` or `cuda = '12.8'`; `None` for a CPU build.
fn torch_version(item: &RawItem, text: &str, facts: &mut Facts) {
    for (number, line) in crate::parse::numbered(text) {
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = value.trim().trim_matches(['\'', '"']);
        let origin = item.origin_of_line(number);
        match name.split(':').next().unwrap_or(name).trim() {
            "__version__" => torch::entry(facts, &origin).version = Some(value.to_owned()),
            "cuda" => torch::entry(facts, &origin).cuda = Some(CudaVersion::parse(value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_wheels() {
        let cuda = |major, minor| Some(CudaVersion { major, minor });
        assert_eq!(tag("2.10.0+cu128"), cuda(12, 8));
        assert_eq!(tag("2.7.4.post1+cu12torch2.6"), cuda(12, 0));
        assert_eq!(tag("1.4.0+cu92"), cuda(9, 2));
        assert_eq!(tag("2.10.0"), None);
    }

    #[test]
    fn files_of_an_installation() {
        let mut facts = Facts::default();
        let mut enter = |path: &str, text: &str| {
            let name = crate::raw::ItemName::File(path.into());
            assert!(apply(&RawItem::new(name, text.as_bytes()), path, &mut facts));
        };
        enter(
            "/v/site-packages/torch/version.py",
            "__version__ = '2.10.0+cu128'\ncuda: Optional[str] = '12.8'\n",
        );
        enter("/v/site-packages/vllm-0.9.dist-info/METADATA", "Name: vllm\nVersion: 0.9.0\n");
        let torch = facts.framework.torch.value().unwrap();
        assert_eq!(torch.cuda, Some(CudaVersion::parse("12.8")));
        assert_eq!(facts.framework.packages[0].value.python.as_deref(), Some("/v/site-packages"));
    }
}
