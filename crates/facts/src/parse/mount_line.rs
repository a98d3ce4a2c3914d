//! Lines of `mount`, `findmnt` and /proc/mounts, which tell of a mount what mountinfo does.

use crate::model::sandbox::Mount;

/// Reads `tmpfs on /dev type tmpfs (rw,nosuid,nodev,mode=755)`, or a line of `findmnt`:
/// `/dev  tmpfs  tmpfs  rw,nosuid,nodev`, or one of /proc/mounts. `None` for any other line.
pub fn mount_line(line: &str) -> Option<Mount> {
    by_mount(line).or_else(|| by_findmnt(line)).or_else(|| by_table(line))
}

/// `tmpfs /dev tmpfs rw,nosuid,nodev 0 0` of /proc/mounts.
fn by_table(line: &str) -> Option<Mount> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [source, target, fs_type, options, "0", "0"] = words.as_slice() else { return None };
    let plausible =
        target.starts_with('/') && (options.starts_with("rw") || options.starts_with("ro"));
    plausible.then(|| mount(target, fs_type, source, options))
}

fn by_mount(line: &str) -> Option<Mount> {
    let (source, rest) = line.trim().split_once(" on ")?;
    let (target, rest) = rest.split_once(" type ")?;
    let (fs_type, options) = rest.split_once(" (")?;
    let options = options.trim_end().strip_suffix(')')?;
    let plausible = target.starts_with('/') && !fs_type.contains(' ');
    plausible.then(|| mount(target, fs_type, source, options))
}

fn by_findmnt(line: &str) -> Option<Mount> {
    let line = line.trim().trim_start_matches(['├', '└', '─', '│', ' ', '|', '`', '-']);
    let mut words = line.split_whitespace();
    let (target, source, fs_type, options) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    let plausible = target.starts_with('/')
        && words.next().is_none()
        && (options.starts_with("rw") || options.starts_with("ro"))
        && fs_type.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    // fstab puts the source first, which reads as a path when it is a device.
    let by_source = source.starts_with('/') && target.starts_with("/dev/");
    (plausible && !by_source).then(|| mount(target, fs_type, source, options))
}

fn mount(target: &str, fs_type: &str, source: &str, options: &str) -> Mount {
    let (source, root) = match source.split_once('[') {
        Some((source, root)) => (source, root.trim_end_matches(']')),
        None => (source, "/"),
    };
    Mount {
        target: target.to_owned(),
        fs_type: fs_type.to_owned(),
        source: source.to_owned(),
        options: options.split(',').map(|option| option.trim().to_owned()).collect(),
        root: root.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_tools() {
        let mount =
            mount_line("tmpfs on /dev type tmpfs (rw,nosuid,nodev,size=65536k,mode=755)").unwrap();
        assert_eq!((mount.target.as_str(), mount.options[2].as_str()), ("/dev", "nodev"));
        let mount = mount_line(
            "├─/dev                         udev        devtmpfs rw,nosuid,relatime,size=8g",
        )
        .unwrap();
        assert_eq!((mount.target.as_str(), mount.fs_type.as_str()), ("/dev", "devtmpfs"));
        let bind = mount_line("│ └─/dev/nvidia0 udev[/nvidia0] devtmpfs rw,nosuid,nodev").unwrap();
        assert_eq!(bind.root, "/nvidia0");
        let mount = mount_line("devtmpfs /dev devtmpfs rw,nosuid,nodev 0 0").unwrap();
        assert_eq!((mount.target.as_str(), mount.source.as_str()), ("/dev", "devtmpfs"));
        for line in ["I put it on /dev type it in", "a b c d", "/dev/sda1 / ext4 rw,relatime", ""] {
            assert_eq!(mount_line(line), None, "{line}");
        }
    }
}
