//! Container Device Interface specs, YAML or JSON: device nodes and mounts, as much of the format
//! as `nvidia-ctk cdi generate` and the GPU operator write. Parts that `grep` cut out are read too.

use super::{At, Parsed, numbered};
use crate::model::engine::CdiNode;

/// What a spec gives to containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CdiSpec {
    /// Device nodes with their numbers.
    pub nodes: Vec<At<CdiNode>>,
    /// Files of the host that are mounted.
    pub files: Vec<At<String>>,
    /// `kind`, such as `nvidia.com/gpu`.
    pub kind: Option<At<String>>,
}

/// Most entries that are kept; the spec of an 8-GPU machine has some hundred.
const LIMIT: usize = 4096;

/// Reads a spec. The order of keys within an entry is free, since generators sort them by name.
pub fn cdi(text: &str) -> Parsed<CdiSpec> {
    let mut reader = Reader::default();
    for (line, content) in numbered(text) {
        let content = without_grep_mark(content);
        reader.line(line, content);
    }
    reader.finish();
    if reader.keys == 0 && !text.trim().is_empty() {
        reader.parsed.complain(0, "not a CDI spec");
    }
    reader.parsed
}

/// `123-`, `123:` of `grep -n` before the line.
fn without_grep_mark(content: &str) -> &str {
    let digits = content.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &content[digits..];
    match rest.strip_prefix(['-', ':']) {
        Some(rest) if digits > 0 => rest,
        _ => content,
    }
}

#[derive(Default)]
struct Reader {
    parsed: Parsed<CdiSpec>,
    entry: Entry,
    keys: usize,
}

/// One entry of a list, while its keys come in.
#[derive(Default)]
struct Entry {
    line: u32,
    path: Option<String>,
    host_path: Option<String>,
    major: Option<u32>,
    minor: Option<u32>,
    mounted: bool,
}

impl Reader {
    fn line(&mut self, line: u32, content: &str) {
        let trimmed = content.trim_start();
        if trimmed.starts_with("- ") || trimmed == "-" || trimmed == "--" {
            self.finish();
        }
        let trimmed = trimmed.trim_start_matches("- ");
        // In JSON a brace begins an entry, and a line may hold several.
        for (index, part) in trimmed.split(['{', '}']).enumerate() {
            if index > 0 {
                self.finish();
            }
            for pair in part.split(',') {
                self.pair(line, pair);
            }
        }
    }

    fn pair(&mut self, line: u32, pair: &str) {
        let Some((key, value)) = pair.split_once(':') else { return };
        let clean = |word: &str| word.trim().trim_matches(['"', '\'', '[', ']']).trim().to_owned();
        let (key, value) = (clean(key), clean(value));
        let entry = &mut self.entry;
        match key.as_str() {
            "path" => entry.path = Some(value),
            "hostPath" => entry.host_path = Some(value),
            "containerPath" => entry.mounted = true,
            "major" => entry.major = value.parse().ok(),
            "minor" => entry.minor = value.parse().ok(),
            "kind" => self.parsed.value.kind = Some(At::new(line, value)),
            "deviceNodes" | "mounts" | "hooks" | "devices" | "containerEdits" | "env" => {
                self.finish();
                self.keys += 1;
                return;
            }
            "cdiVersion" | "fileMode" | "permissions" | "type" | "name" => {}
            _ => return,
        }
        self.keys += 1;
        if self.entry.line == 0 || key == "major" {
            self.entry.line = line;
        }
    }

    fn finish(&mut self) {
        let entry = std::mem::take(&mut self.entry);
        let spec = &mut self.parsed.value;
        if spec.nodes.len() + spec.files.len() >= LIMIT {
            return;
        }
        let device = |path: &String| path.starts_with("/dev/");
        let node =
            entry.host_path.clone().filter(device).or_else(|| entry.path.clone().filter(device));
        match (node, entry.host_path) {
            (Some(path), _) if !entry.mounted => {
                let node = CdiNode { path, major: entry.major, minor: entry.minor };
                spec.nodes.push(At::new(entry.line, node));
            }
            (_, Some(path)) if path.starts_with('/') => {
                spec.files.push(At::new(entry.line, path));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SORTED: &str = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  deviceNodes:\n  - major: 510\n    path: /dev/nvidia-uvm\n  - major: 510\n    minor: 1\n    path: /dev/nvidia-uvm-tools\n  - path: /dev/nvidiactl\n  mounts:\n  - containerPath: /usr/lib/libcuda.so.580.82.07\n    hostPath: /usr/lib/libcuda.so.580.82.07\n    options:\n    - ro\ndevices:\n- containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia0\n  name: \"0\"\n";

    #[test]
    fn keys_in_any_order() {
        let spec = cdi(SORTED).value;
        let nodes: Vec<_> = spec
            .nodes
            .iter()
            .map(|at| (at.value.path.as_str(), at.value.major, at.value.minor))
            .collect();
        assert_eq!(
            nodes,
            [
                ("/dev/nvidia-uvm", Some(510), None),
                ("/dev/nvidia-uvm-tools", Some(510), Some(1)),
                ("/dev/nvidiactl", None, None),
                ("/dev/nvidia0", None, None)
            ]
        );
        assert_eq!(spec.nodes[0].line, 5);
        assert_eq!(spec.files.len(), 1);
        assert_eq!(spec.kind.unwrap().value, "nvidia.com/gpu");
    }

    #[test]
    fn json_on_one_line_and_parts_by_grep() {
        let json = r#"{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia-uvm","type":"c","major":510},{"path":"/dev/nvidiactl","major":195,"minor":255}],"mounts":[{"hostPath":"/usr/lib/libcuda.so.1","containerPath":"/usr/lib/libcuda.so.1"}]}}"#;
        let spec = cdi(json).value;
        assert_eq!(spec.nodes.len(), 2);
        assert_eq!(spec.nodes[1].value.minor, Some(255));
        let part = "41-  - path: /dev/nvidia-uvm\n42:    major: 510\n--\n43-  - path: /dev/nvidia-uvm-tools\n44:    major: 510\n";
        let nodes = cdi(part).value.nodes;
        assert_eq!((nodes.len(), nodes[0].value.major, nodes[0].line), (2, Some(510), 2));
    }

    #[test]
    fn what_is_no_spec() {
        let parsed = cdi("hello\nworld\n");
        assert_eq!(parsed.value, CdiSpec::default());
        assert_eq!(parsed.complaints.len(), 1);
        assert_eq!(cdi(""), Parsed::default());
    }
}
