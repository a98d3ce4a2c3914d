//! Reading a traced process's memory without being held up by it.
//!
//! Reads wait for the process's memory lock. UVM_INITIALIZE takes that lock for writing, and one
//! that never returns keeps it; a thread that never returns from a page fault keeps it for reading,
//! and then the next mapping that any thread makes keeps readers out. So unless the process is
//! known to have one thread and its memory to itself, another thread of ours reads, from
//! /proc/TID/mem, whose wait a signal can end, and it is given up after a moment.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::awake;
use crate::sys::ptrace;

/// How long a careful read may take.
const PATIENCE: Duration = Duration::from_millis(200);
/// Longest path that is read, and how much of it at once.
const PATH_BYTES: usize = 256;
/// Most bytes of a list of mappings.
const MAPS_LIMIT_BYTES: u64 = 4 << 20;
/// Smallest page of the architectures that have a driver.
const PAGE: u64 = 4096;

/// A process's memory, as far as it can be read.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    blocked: BTreeSet<u32>,
    reader: Option<Reader>,
    /// Counts the images that were replaced: what was opened before is another's memory.
    images: u64,
}

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// Nobody else can hold the memory lock.
    Direct,
    /// Another thread or process of the same memory may hold it.
    Careful,
}

/// Whose memory, and how to go about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) process: u32,
    /// Any thread of the process that has not ended; the first one may have.
    pub(super) thread: u32,
    pub(super) care: Care,
}

impl Whose {
    /// The same, whatever is known of the process.
    pub(super) fn carefully(self) -> Whose {
        Whose { care: Care::Careful, ..self }
    }
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
        self.read_of(Whose { process: pid, thread: pid, care }, address, length)
    }

    /// The same by any thread of the process.
    pub(super) fn read_of(&mut self, whose: Whose, address: u64, length: usize) -> Option<Vec<u8>> {
        if length == 0 || address == 0 || self.blocked.contains(&whose.process) {
            return None;
        }
        let read = match whose.care {
            Care::Direct => direct(whose.thread, address, length),
            Care::Careful => self.careful(whose, address, Work::Read(length)),
        };
        read.filter(|bytes| !bytes.is_empty())
    }

    /// The C string at an address, if it is a short one of UTF-8. Reads no page without need.
    pub(super) fn read_path(&mut self, whose: Whose, address: u64) -> Option<String> {
        let to_page_end = usize::try_from(PAGE - address % PAGE).unwrap_or(PATH_BYTES);
        let mut bytes = self.read_of(whose, address, PATH_BYTES.min(to_page_end))?;
        if !bytes.contains(&0) {
            let next = address.checked_add(bytes.len() as u64)?;
            bytes.extend(self.read_of(whose, next, PATH_BYTES)?);
        }
        let end = bytes.iter().position(|byte| *byte == 0)?;
        bytes.truncate(end);
        String::from_utf8(bytes).ok()
    }

    /// The list of what is mapped, which the kernel makes under the memory lock, too.
    pub(super) fn maps(&mut self, whose: Whose) -> Option<String> {
        if self.blocked.contains(&whose.process) {
            return None;
        }
        let bytes = self.careful(whose, 0, Work::Maps)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes bytes at an address, and tells whether all were written.
    pub(super) fn write(&mut self, whose: Whose, address: u64, bytes: &[u8]) -> bool {
        let work = Work::Write(bytes.to_vec());
        !self.blocked.contains(&whose.process)
            && self.careful(whose, address, work).is_some_and(|written| written == bytes)
    }

    /// True when reads of this process were given up.
    pub(crate) fn is_blocked(&self, pid: u32) -> bool {
        self.blocked.contains(&pid)
    }

    /// A process has a new image, and with it other memory.
    pub(super) fn renew(&mut self, pid: u32) {
        self.blocked.remove(&pid);
        self.images += 1;
    }

    fn careful(&mut self, whose: Whose, address: u64, work: Work) -> Option<Vec<u8>> {
        if self.reader.is_none() {
            self.reader = Reader::start();
        }
        let reader = self.reader.as_ref()?;
        let order = Order { thread: whose.thread, images: self.images, address, work };
        let answer = match reader.orders.send(order) {
            Ok(()) => awake::look(|| reader.answers.try_recv().ok())
                .map_or_else(|| reader.answers.recv_timeout(PATIENCE), Ok),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        if answer.is_err() {
            // That reader is left waiting; there will be no second one for this process.
            self.reader = None;
            self.blocked.insert(whose.process);
        }
        answer.ok()
    }
}

/// A thread that reads and writes by order. One that is held up is left to itself.
#[derive(Debug)]
struct Reader {
    orders: Sender<Order>,
    answers: Receiver<Vec<u8>>,
}

struct Order {
    thread: u32,
    images: u64,
    address: u64,
    work: Work,
}

enum Work {
    Read(usize),
    Write(Vec<u8>),
    Maps,
}

impl Reader {
    fn start() -> Option<Reader> {
        let (orders, work) = channel::<Order>();
        let (answer, answers) = channel();
        let serve = move || {
            let mut open: Option<(u32, u64, File)> = None;
            let next = || awake::look(|| work.try_recv().ok()).or_else(|| work.recv().ok());
            while let Some(order) = next() {
                let done = serve(&order, &mut open).unwrap_or_default();
                // Nobody listens any more when this came too late.
                if answer.send(done).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().spawn(serve).ok()?;
        Some(Reader { orders, answers })
    }
}

/// Does what was ordered, and gives the bytes that were read or written. The file that was read
/// last stays open.
fn serve(order: &Order, open: &mut Option<(u32, u64, File)>) -> std::io::Result<Vec<u8>> {
    if let Work::Maps = order.work {
        let mut bytes = Vec::new();
        let file = File::open(format!("/proc/{}/maps", order.thread))?;
        file.take(MAPS_LIMIT_BYTES).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let path = format!("/proc/{}/mem", order.thread);
    if let Work::Write(_) = order.work {
        return run(&File::options().write(true).open(path)?, order);
    }
    match open {
        Some((thread, images, file)) if (*thread, *images) == (order.thread, order.images) => {
            run(file, order)
        }
        _ => run(&open.insert((order.thread, order.images, File::open(path)?)).2, order),
    }
}

fn run(file: &File, order: &Order) -> std::io::Result<Vec<u8>> {
    match &order.work {
        Work::Read(length) => {
            let mut bytes = vec![0; *length];
            let read = file.read_at(&mut bytes, order.address)?;
            bytes.truncate(read);
            Ok(bytes)
        }
        Work::Maps => Ok(Vec::new()),
        Work::Write(bytes) => file.write_all_at(bytes, order.address).map(|()| bytes.clone()),
    }
}

fn direct(thread: u32, address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let read = ptrace::read_memory(thread, address, &mut bytes).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose(care: Care) -> Whose {
        Whose { process: std::process::id(), thread: std::process::id(), care }
    }

    #[test]
    fn both_ways_read_the_same() {
        let text = std::ffi::CString::new("/dev/nvidia-uvm").unwrap();
        let (pid, address) = (std::process::id(), text.as_ptr().addr() as u64);
        let mut memory = Memory::default();
        for care in [Care::Direct, Care::Careful, Care::Careful] {
            assert_eq!(memory.read(pid, care, address, 4).as_deref(), Some(&b"/dev"[..]));
            assert_eq!(memory.read_path(whose(care), address).as_deref(), Some("/dev/nvidia-uvm"));
            assert_eq!(memory.read(pid, care, 16, 4), None);
        }
        assert!(!memory.is_blocked(pid));
    }

    #[test]
    fn what_is_written_is_there() {
        let bytes = vec![1_u8, 2, 3, 4];
        let mut memory = Memory::default();
        let address = bytes.as_ptr().expose_provenance() as u64;
        assert!(memory.read_of(whose(Care::Careful), address, 4).is_some());
        assert!(memory.write(whose(Care::Careful), address, &[9, 9]));
        let read = memory.read_of(whose(Care::Direct), address, 4);
        assert_eq!(read.as_deref(), Some(&[9, 9, 3, 4][..]));
        assert!(!memory.write(whose(Care::Careful), 16, &[1]));
        drop(bytes);
    }
}
