//! The name of the machine, which syslog and journals write into each line. A machine named
//! `gpu-node-07` must not make every line of its log one about a GPU.

use facts::parse::sieve::has_mark;

/// How many lines of the beginning are looked at.
const LINES: usize = 64;

/// A name that stands at the same place of most lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HostName {
    at: usize,
    name: Vec<u8>,
}

impl HostName {
    /// The name in the lines at the beginning of a log; `None` where there is none, or none that
    /// could be mistaken for more.
    pub(super) fn learn(start: &[u8]) -> Option<HostName> {
        let lines: Vec<&[u8]> = start.split(|byte| *byte == b'\n').take(LINES).collect();
        let found = lines.iter().find_map(|line| HostName::of_line(line))?;
        let bearing = lines.iter().filter(|line| found.stands_in(line)).count();
        let usual = bearing * 2 > lines.len();
        (usual && has_mark(&found.name)).then_some(found)
    }

    /// The word behind the stamp: `Nov 30 08:36:01 HOST …` or `2026-11-30T08:36:01+0000 HOST …`.
    fn of_line(line: &[u8]) -> Option<HostName> {
        let is_syslog = line.get(3) == Some(&b' ') && line.get(6) == Some(&b' ');
        let is_clock = line.get(9) == Some(&b':') && line.get(12) == Some(&b':');
        let is_iso = line.get(4) == Some(&b'-') && line.get(10) == Some(&b'T');
        let at = if is_syslog && is_clock && line.get(15) == Some(&b' ') {
            16
        } else if is_iso {
            line.iter().position(|byte| *byte == b' ')? + 1
        } else {
            return None;
        };
        let name = line.get(at..)?.split(|byte| *byte == b' ').next()?.to_vec();
        (!name.is_empty() && name.len() < 256).then_some(HostName { at, name })
    }

    fn stands_in(&self, line: &[u8]) -> bool {
        line.get(self.at..).is_some_and(|rest| rest.starts_with(&self.name))
    }

    /// Where the name ends, when it covers this place of a line.
    pub(super) fn covers(&self, line: &[u8], place: usize) -> Option<usize> {
        let end = self.at + self.name.len();
        ((self.at..end).contains(&place) && self.stands_in(line)).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_says_gpu_is_learnt() {
        let line = b"Nov 30 08:36:01 gpu-node-07 kernel: usb 1-2: new device\n";
        let host = HostName::learn(&line.repeat(9)).unwrap();
        assert_eq!((host.at, &*host.name), (16, &b"gpu-node-07"[..]));
        assert_eq!((host.covers(line, 16), host.covers(line, 30)), (Some(27), None));
        let iso = b"2026-11-30T08:36:01.123456+00:00 cuda1 systemd[1]: Started\n";
        assert_eq!(HostName::learn(&iso.repeat(9)).unwrap().name, b"cuda1");
    }

    #[test]
    fn other_texts_have_none() {
        for line in
            ["Nov 30 08:36:01 node-07 kernel: gpu\n", "[  1.0] gpu\n", "a gpu is here\n", "\n"]
        {
            assert_eq!(HostName::learn(&line.as_bytes().repeat(9)), None, "{line}");
        }
    }
}
