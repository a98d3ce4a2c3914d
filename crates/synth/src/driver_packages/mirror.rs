//! Which Debian mirror to ask: the one that this machine uses anyway, if it uses one.

use std::path::Path;

/// Used on machines without a Debian mirror of their own.
const DEFAULT: &str = "http://deb.debian.org/debian";

/// The address of a Debian mirror, without a slash at its end.
pub(super) fn address() -> String {
    configured(Path::new("/etc/apt")).unwrap_or_else(|| DEFAULT.to_owned())
}

fn configured(apt: &Path) -> Option<String> {
    let mut files = vec![apt.join("sources.list")];
    let parts = std::fs::read_dir(apt.join("sources.list.d")).ok();
    files.extend(parts.into_iter().flatten().flatten().map(|entry| entry.path()));
    files
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .find_map(|text| in_text(&text))
}

/// The first Debian archive in a sources file, of the one-line or the deb822 form: words that are
/// addresses and end in `/debian`.
fn in_text(text: &str) -> Option<String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(str::split_whitespace)
        .map(|word| word.trim_end_matches('/'))
        .find(|word| word.starts_with("http") && word.ends_with("/debian"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::in_text;

    #[test]
    fn both_forms_of_sources_are_read() {
        let old =
            "# deb http://no/debian x main\ndeb [arch=amd64] https://m.example/debian/ a main\n";
        assert_eq!(in_text(old).as_deref(), Some("https://m.example/debian"));
        let new = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: trixie\n";
        assert_eq!(in_text(new).as_deref(), Some("http://deb.debian.org/debian"));
    }

    #[test]
    fn other_archives_do_not_count() {
        let text =
            "URIs: http://deb.debian.org/debian-security\ndeb http://archive.ubuntu.com/ubuntu x y";
        assert_eq!(in_text(text), None);
    }
}
