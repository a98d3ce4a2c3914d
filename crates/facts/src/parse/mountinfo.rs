//! /proc/PID/mountinfo; the format is that of proc_pid_mountinfo(5).

use std::collections::HashSet;

use super::{At, Parsed, numbered};
use crate::model::sandbox::Mount;

/// Reads mountinfo: `id parent major:minor root target options [tags…] - type source options`.
pub fn mountinfo(text: &str) -> Parsed<Vec<At<Mount>>> {
    let mut parsed = Parsed::<Vec<At<Mount>>>::default();
    for (line, content) in numbered(text) {
        match mount(content) {
            Some(mount) => parsed.value.push(At::new(line, mount)),
            None if content.trim().is_empty() => {}
            None => parsed.complain(line, "not a line of mountinfo"),
        }
    }
    parsed
}

fn mount(content: &str) -> Option<Mount> {
    let (left, right) = content.split_once(" - ")?;
    let mut left = left.split_whitespace();
    left.next()?.parse::<u64>().ok()?;
    left.next()?.parse::<u64>().ok()?;
    left.next()?.split_once(':')?;
    let root = unescaped(left.next()?);
    let target = unescaped(left.next()?);
    let mount_options = left.next()?;
    let mut right = right.split(' ');
    let fs_type = right.next()?.to_owned();
    // The source may be empty, so that two blanks follow each other.
    let source = unescaped(right.next().unwrap_or(""));
    let super_options = right.next().unwrap_or("");
    Some(Mount { target, fs_type, source, options: joined(mount_options, super_options), root })
}

/// The options of the mount, then those of its file system that are not among them.
fn joined(mount: &str, file_system: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    mount
        .split(',')
        .chain(file_system.split(','))
        .filter(|option| !option.is_empty() && seen.insert(*option))
        .map(str::to_owned)
        .collect()
}

/// Undoes the kernel's octal escapes of blank, tab, newline and backslash (`\040`).
pub fn unescaped(field: &str) -> String {
    let mut rest = field.as_bytes();
    let mut out = Vec::with_capacity(field.len());
    while let Some((first, tail)) = rest.split_first() {
        let (byte, after) = escape(rest).unwrap_or((*first, tail));
        out.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A backslash and three octal digits at the beginning, with what follows them.
fn escape(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = bytes.strip_prefix(b"\\")?.split_at_checked(3)?;
    let octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let digits = std::str::from_utf8(digits).ok().filter(|_| octal)?;
    Some((u8::from_str_radix(digits, 8).ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_a_container() {
        let parsed = mountinfo(
            "612 611 0:55 / / rw,relatime - overlay overlay rw,lowerdir=/a:/b,upperdir=/c\n\
             620 612 0:60 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755\n\
             640 620 0:5 /nvidia0 /dev/nvidia0 ro,nosuid,noexec,relatime master:2 - devtmpfs devtmpfs rw\n\
             650 612 8:1 /usr/lib/my\\040lib/libcuda.so.590.48.01 /usr/lib/libcuda.so.590.48.01 \
             ro,nosuid,nodev - ext4 /dev/sda1 rw,errors=remount-ro\n\
             660 612 0:61 / /opt rw - tmpfs  rw\nnonsense\n",
        );
        assert_eq!(parsed.complaints.len(), 1);
        assert_eq!(parsed.value.len(), 5);
        let node = &parsed.value[2].value;
        assert_eq!((node.target.as_str(), node.root.as_str()), ("/dev/nvidia0", "/nvidia0"));
        assert_eq!(node.options, ["ro", "nosuid", "noexec", "relatime", "rw"]);
        assert_eq!(parsed.value[3].value.root, "/usr/lib/my lib/libcuda.so.590.48.01");
        assert_eq!(parsed.value[4].value.source, "");
        assert_eq!(parsed.value[4].value.options, ["rw"]);
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescaped("a\\134b\\011c"), "a\\b\tc");
        assert_eq!(unescaped("a\\04"), "a\\04");
        assert_eq!(unescaped("a\\999\\+12"), "a\\999\\+12");
    }
}
