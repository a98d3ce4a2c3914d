//! Regular expressions that are compiled when a text is first read.

/// Defines a lazily compiled `static` expression. One that does not compile matches nothing; the
/// tests of each reader go through all of its expressions.
macro_rules! pattern {
    ($(#[$doc:meta])* $name:ident = $expression:expr) => {
        $(#[$doc])*
        static $name: std::sync::LazyLock<Option<regex::Regex>> =
            std::sync::LazyLock::new(|| crate::parse::expression::compile($expression));
    };
}
pub(super) use pattern;

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// An expression that [`pattern!`] defines.
pub(super) type Lazy = LazyLock<Option<Regex>>;

/// True when the expression matches.
pub(super) fn matches(pattern: &Lazy, text: &str) -> bool {
    pattern.as_ref().is_some_and(|regex| regex.is_match(text))
}

/// The groups of the first match.
pub(super) fn captures<'t>(pattern: &Lazy, text: &'t str) -> Option<Captures<'t>> {
    pattern.as_ref()?.captures(text)
}

/// One named group of the first match.
pub(super) fn group<'t>(pattern: &Lazy, text: &'t str, name: &str) -> Option<&'t str> {
    Some(captures(pattern, text)?.name(name)?.as_str())
}
