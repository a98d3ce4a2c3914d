//! What system it is: os-release and `pveversion`.

use super::{At, Parsed, numbered};

/// The fields of os-release that are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OsRelease {
    /// `PRETTY_NAME`, such as `Debian GNU/Linux 12 (bookworm)`.
    pub pretty_name: Option<At<String>>,
    /// `ID`, such as `debian`.
    pub id: Option<At<String>>,
    /// `VERSION_ID`, such as `12`.
    pub version_id: Option<At<String>>,
}

/// Reads os-release: assignments in shell form.
pub fn os_release(text: &str) -> Parsed<OsRelease> {
    let mut parsed = Parsed::<OsRelease>::default();
    for (line, content) in numbered(text) {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let Some((key, value)) = content.split_once('=') else {
            parsed.complain(line, "not an assignment of os-release");
            continue;
        };
        let value = At::new(line, unquoted(value));
        match key {
            "PRETTY_NAME" => parsed.value.pretty_name = Some(value),
            "ID" => parsed.value.id = Some(value),
            "VERSION_ID" => parsed.value.version_id = Some(value),
            _ => {}
        }
    }
    parsed
}

/// Takes quotes and backslashes away, as a shell would.
fn unquoted(value: &str) -> String {
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(ch) = chars.next() {
        out.push(if ch == '\\' { chars.next().unwrap_or('\\') } else { ch });
    }
    out
}

/// What `pveversion` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PveVersion {
    /// The version of Proxmox VE, such as `8.4.1`.
    pub version: Option<At<String>>,
    /// The running kernel, such as `6.8.12-9-pve`.
    pub kernel: Option<At<String>>,
}

/// Reads the output of `pveversion` (`pve-manager/8.4.1/… (running kernel: …)`) and of
/// `pveversion -v`, where `pve-manager:` and `proxmox-ve:` are lines among others.
pub fn pveversion(text: &str) -> Parsed<PveVersion> {
    let mut parsed = Parsed::<PveVersion>::default();
    for (line, content) in numbered(text) {
        let content = content.trim();
        let manager = ["pve-manager/", "pve-manager: "]
            .iter()
            .find_map(|beginning| content.strip_prefix(beginning));
        let kernel =
            content.split_once("(running kernel: ").and_then(|(_, rest)| rest.split(')').next());
        if let Some(rest) = manager {
            let version = rest.split(['/', ' ']).next().unwrap_or("");
            parsed.value.version = Some(At::new(line, version.to_owned()));
        }
        if let Some(kernel) = kernel {
            parsed.value.kernel = Some(At::new(line, kernel.to_owned()));
        }
        // Each other line of the long form is `package: version`.
        let known = content.is_empty() || manager.is_some() || content.contains(": ");
        if !known {
            parsed.complain(line, "not a line of pveversion");
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_all_quotes() {
        let parsed = os_release(
            "# comment\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID='12'\n\
             HOME_URL=\"https://www.debian.org/\"\nnonsense\n",
        );
        let text = |field: &Option<At<String>>| field.as_ref().map(|at| at.value.clone());
        assert_eq!(
            text(&parsed.value.pretty_name).as_deref(),
            Some("Debian GNU/Linux 12 (bookworm)")
        );
        assert_eq!(text(&parsed.value.id).as_deref(), Some("debian"));
        assert_eq!(text(&parsed.value.version_id).as_deref(), Some("12"));
        assert_eq!(parsed.complaints.len(), 1);
        assert_eq!(unquoted(r#""a \"b\" \$c""#), r#"a "b" $c"#);
    }

    #[test]
    fn short_and_long_pveversion() {
        for text in [
            "pve-manager/8.4.1/2a5fa54a8503f96d (running kernel: 6.8.12-9-pve)\n",
            "pve-manager/8.4.1 (running kernel: 6.8.12-9-pve)\n",
            "proxmox-ve: 8.4.0 (running kernel: 6.8.12-9-pve)\n\
             pve-manager: 8.4.1 (running version: 8.4.1/2a5fa54a8503f96d)\nlxc-pve: 6.0.0-1\n",
        ] {
            let parsed = pveversion(text);
            assert_eq!(parsed.complaints, []);
            assert_eq!(parsed.value.version.unwrap().value, "8.4.1");
            assert_eq!(parsed.value.kernel.unwrap().value, "6.8.12-9-pve");
        }
        assert_eq!(pveversion("6.8.12-9-pve\n").complaints.len(), 1);
    }
}
