//! What a `grep` would have shown, so that its silence counts.

use crate::raw::RawItem;

/// The pattern of a `grep`, as far as it can be understood: plain text, alternatives joined by
/// `|` or `\|`, anchors. An alternative with any other operator is taken to show nothing, so that
/// nothing is called absent on its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    alternatives: Vec<Alternative>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Alternative {
    text: String,
    at_start: bool,
    at_end: bool,
}

impl Filter {
    /// Reads a pattern.
    pub fn parse(pattern: &str) -> Filter {
        let pattern = pattern.trim_matches(['"', '\'']);
        let pattern = pattern.replace("\\|", "|");
        let inner = pattern.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let alternatives = inner.unwrap_or(&pattern).split('|').filter_map(alternative);
        Filter { alternatives: alternatives.collect() }
    }

    /// True when a line with this text in it would have been shown. The text is the known part of
    /// the line; `starts` and `ends` say whether it is its beginning and its end.
    pub fn shows(&self, text: &str, starts: bool, ends: bool) -> bool {
        self.alternatives.iter().any(|alternative| {
            let Alternative { text: wanted, at_start, at_end } = alternative;
            match (at_start, at_end) {
                (false, false) => text.contains(wanted.as_str()),
                (true, false) => starts && text.starts_with(wanted.as_str()),
                (false, true) => ends && text.ends_with(wanted.as_str()),
                (true, true) => starts && ends && text == wanted,
            }
        })
    }

    /// The alternatives in the form of [`crate::model::Process::env_listed`]: what a variable's
    /// name must contain, or with `^` begin with, to have been shown.
    pub fn names(&self) -> impl Iterator<Item = String> {
        // `CUDA_VISIBLE_DEVICES=` asks for the whole name; a name that ends so would show as well.
        let usable = self.alternatives.iter().filter(|alternative| !alternative.at_end);
        usable.map(|alternative| {
            let text = alternative.text.trim_end_matches('=');
            if alternative.at_start { format!("^{text}") } else { text.to_owned() }
        })
    }
}

fn alternative(pattern: &str) -> Option<Alternative> {
    let (at_start, pattern) = match pattern.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let (at_end, pattern) = match pattern.strip_suffix('$') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let plain = !pattern.contains(['.', '*', '+', '?', '[', ']', '(', ')', '{', '}', '\\', '^']);
    plain.then(|| Alternative { text: pattern.to_owned(), at_start, at_end })
}

/// Tells whether an item's silence about a line means that the line is not there: the item is
/// whole, or its filter would have shown the line.
pub(super) fn silence_counts(item: &RawItem, text: &str, starts: bool, ends: bool) -> bool {
    match &item.filter {
        Some(pattern) => Filter::parse(pattern).shows(text, starts, ends),
        None => !item.partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::ItemName;

    #[test]
    fn patterns() {
        let shows = |pattern: &str, text: &str| Filter::parse(pattern).shows(text, false, true);
        assert!(shows("nvidia", "nvidia-uvm"));
        assert!(shows("foo|uvm", "nvidia-uvm"));
        assert!(shows("foo\\|uvm", "nvidia-uvm"));
        assert!(shows("(foo|uvm)", "nvidia-uvm"));
        assert!(shows("uvm$", "nvidia-uvm"));
        assert!(!shows("^nvidia", "nvidia-uvm"), "a number stands before the name");
        assert!(!shows("nvidia.uvm", "nvidia-uvm"), "an operator that is not understood");
        assert!(!shows("NVIDIA", "nvidia-uvm"));
        assert!(Filter::parse("^nvidia").shows("nvidia_uvm", true, false));
        let names: Vec<String> = Filter::parse("CUDA|^NVIDIA_|LD_PRELOAD=|x.y").names().collect();
        assert_eq!(names, ["CUDA", "^NVIDIA_", "LD_PRELOAD"]);
    }

    #[test]
    fn silence_of_wholes_and_parts() {
        let mut item = RawItem::new(ItemName::File("/proc/devices".into()), *b"");
        assert!(silence_counts(&item, "nvidia-uvm", false, true));
        item.partial = true;
        assert!(!silence_counts(&item, "nvidia-uvm", false, true));
        item.filter = Some("nvidia".into());
        assert!(silence_counts(&item, "nvidia-uvm", false, true));
        assert!(!silence_counts(&item, "mem", false, true));
    }
}
