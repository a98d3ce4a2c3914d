//! /proc/devices: which names have registered which major numbers.

use super::{At, Parsed, numbered};
use crate::model::module::CharMajor;

/// Reads the character section of /proc/devices. Lines before any heading count as character
/// devices, since `grep nvidia /proc/devices` shows no headings.
pub fn proc_devices(text: &str) -> Parsed<Vec<At<CharMajor>>> {
    let mut parsed = Parsed::<Vec<At<CharMajor>>>::default();
    let mut in_character_section = true;
    for (line, content) in numbered(text) {
        match content.trim() {
            "" => {}
            "Character devices:" => in_character_section = true,
            "Block devices:" => in_character_section = false,
            row => match row_of(row) {
                Some(major) if in_character_section => parsed.value.push(At::new(line, major)),
                Some(_) => {}
                None => parsed.complain(line, "not a `major name` line of /proc/devices"),
            },
        }
    }
    parsed
}

fn row_of(row: &str) -> Option<CharMajor> {
    let (major, name) = row.split_once(char::is_whitespace)?;
    let name = name.trim();
    (!name.is_empty()).then_some(())?;
    Some(CharMajor { major: major.parse().ok()?, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_character_devices_count() {
        let parsed = proc_devices(
            "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n507 nvidia-uvm\n\n\
             Block devices:\n  7 loop\n259 blkext\n",
        );
        assert_eq!(parsed.complaints, []);
        let names: Vec<_> = parsed.value.iter().map(|at| at.value.name.as_str()).collect();
        assert_eq!(names, ["mem", "nvidia", "nvidiactl", "nvidia-uvm"]);
        assert_eq!(
            parsed.value[3],
            At::new(5, CharMajor { major: 507, name: "nvidia-uvm".into() })
        );
    }

    #[test]
    fn output_of_grep_has_no_headings() {
        let parsed = proc_devices("195 nvidia-frontend\n234 nvidia-uvm\nBinary file matches\n");
        assert_eq!(parsed.value.len(), 2);
        assert_eq!(parsed.complaints.len(), 1);
    }
}
