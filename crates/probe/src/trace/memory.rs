//! Reading a traced process's memory without being held up by it.
//!
//! Reads wait for the process's memory lock. UVM_INITIALIZE takes that lock for writing, and one
//! that never returns keeps it. So when another thread of the process is inside a driver call, a
//! thread of its own reads, from /proc/PID/mem, whose wait a signal can end, and it is given up
//! after a moment.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc;
use std::time::Duration;

use crate::sys::ptrace;

/// How long a careful read may take.
const PATIENCE: Duration = Duration::from_millis(200);
/// Longest path that is read, and how much of it at once.
const PATH_BYTES: usize = 256;
/// Smallest page of the architectures that have a driver.
const PAGE: u64 = 4096;

/// A process's memory, as far as it can be read.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    blocked: BTreeSet<u32>,
}

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// Nobody is known to hold the memory lock.
    Direct,
    /// Another thread of the process is in a driver call.
    Careful,
}

impl Memory {
    /// Up to `length` bytes at an address; fewer where fewer are there.
    pub(crate) fn read(
        &mut self,
        pid: u32,
        care: Care,
        address: u64,
        length: usize,
    ) -> Option<Vec<u8>> {
        if length == 0 || address == 0 || self.blocked.contains(&pid) {
            return None;
        }
        let read = match care {
            Care::Direct => direct(pid, address, length),
            Care::Careful => self.careful(pid, address, length),
        };
        read.filter(|bytes| !bytes.is_empty())
    }

    /// The C string at an address, if it is a short one of UTF-8. Reads no page without need.
    pub(super) fn read_path(&mut self, pid: u32, care: Care, address: u64) -> Option<String> {
        let to_page_end = usize::try_from(PAGE - address % PAGE).unwrap_or(PATH_BYTES);
        let mut bytes = self.read(pid, care, address, PATH_BYTES.min(to_page_end))?;
        if !bytes.contains(&0) {
            let next = address.checked_add(bytes.len() as u64)?;
            bytes.extend(self.read(pid, care, next, PATH_BYTES)?);
        }
        let text = bytes.split(|byte| *byte == 0).next()?;
        String::from_utf8(text.to_vec()).ok()
    }

    /// True when reads of this process were given up.
    pub(crate) fn is_blocked(&self, pid: u32) -> bool {
        self.blocked.contains(&pid)
    }

    /// A process has a new image, and with it other memory.
    pub(super) fn renew(&mut self, pid: u32) {
        self.blocked.remove(&pid);
    }

    fn careful(&mut self, pid: u32, address: u64, length: usize) -> Option<Vec<u8>> {
        let (answer, answered) = mpsc::sync_channel(1);
        let read = move || {
            let mut bytes = vec![0; length];
            let read = File::open(format!("/proc/{pid}/mem"))
                .and_then(|memory| memory.read_at(&mut bytes, address));
            bytes.truncate(read.unwrap_or(0));
            // Nobody listens any more when this came too late.
            let _ = answer.send(bytes);
        };
        std::thread::Builder::new().spawn(read).ok()?;
        let read = answered.recv_timeout(PATIENCE).ok();
        if read.is_none() {
            // One thread is left waiting; there will be no second one for this process.
            self.blocked.insert(pid);
        }
        read
    }
}

fn direct(pid: u32, address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let read = ptrace::read_memory(pid, address, &mut bytes).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_the_same() {
        let text = std::ffi::CString::new("/dev/nvidia-uvm").unwrap();
        let (pid, address) = (std::process::id(), text.as_ptr().addr() as u64);
        let mut memory = Memory::default();
        for care in [Care::Direct, Care::Careful] {
            assert_eq!(memory.read(pid, care, address, 4).as_deref(), Some(&b"/dev"[..]));
            assert_eq!(memory.read_path(pid, care, address).as_deref(), Some("/dev/nvidia-uvm"));
            assert_eq!(memory.read(pid, care, 16, 4), None);
        }
        assert!(!memory.is_blocked(pid));
    }
}
