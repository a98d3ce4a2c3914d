//! /proc/PID/uid_map and gid_map of a user namespace.

use super::{Parsed, numbered};
use crate::model::sandbox::IdMapRange;

/// Reads an id map: `inside outside count`, one range a line. The map of the initial namespace is
/// `0 0 4294967295`.
pub fn id_map(text: &str) -> Parsed<Vec<IdMapRange>> {
    let mut parsed = Parsed::<Vec<IdMapRange>>::default();
    for (line, content) in numbered(text) {
        match range(content) {
            Some(range) => parsed.value.push(range),
            None if content.trim().is_empty() => {}
            None => parsed.complain(line, "not an `inside outside count` line of an id map"),
        }
    }
    parsed
}

fn range(content: &str) -> Option<IdMapRange> {
    let mut words = content.split_whitespace().map(str::parse::<u32>);
    let range = IdMapRange {
        inside: words.next()?.ok()?,
        outside: words.next()?.ok()?,
        count: words.next()?.ok()?,
    };
    words.next().is_none().then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_the_host_and_of_an_unprivileged_container() {
        let host = id_map("         0          0 4294967295\n");
        assert_eq!(host.value, [IdMapRange { inside: 0, outside: 0, count: u32::MAX }]);
        let container = id_map("0 100000 65536\n65536 65536 1\n\n1 2\n1 2 3 4\n");
        assert_eq!(container.value.len(), 2);
        assert_eq!(container.complaints.len(), 2);
    }
}
