//! What strace prints, as calls to the driver.
//!
//! All usual forms are read: with and without `-f` (`[pid 7]`, or the number alone as `-o` writes
//! it, with a name under `-Y`), `-t`, `-tt`, `-ttt`, `-r`, `-T`, `-y`, `-i`, `-n` and `-X`; calls
//! that another thread's line interrupts (`<unfinished ...>`, `<... ioctl resumed>`), also where
//! the first line has no number yet and the second has one; requests as `_IOC(…)`, `_IOWR(…)`, a
//! bare number or strace's own name; parameters that were dumped as a string.

mod arguments;
pub mod driver_call;
mod line;
pub(crate) mod recorded;
mod requests;
mod sockets;
pub(crate) mod told;

use std::collections::BTreeMap;

use self::driver_call::{Asked, Node};
use self::line::{Content, Line};
use self::sockets::Sockets;
pub use self::sockets::{Connection, Wait};
use super::{Parsed, numbered};
use crate::observed::Errno;

/// Most calls that are kept: a retry storm is told after far fewer.
const CALLS_LIMIT: usize = 200_000;
/// Most descriptors that are followed at a time.
const DESCRIPTORS_LIMIT: usize = 65_536;
/// Longest line that is read.
const LINE_LIMIT: usize = 8192;

/// What a trace shows of the driver.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Strace {
    /// Calls to nodes of the driver, in the order in which they were entered.
    pub calls: Vec<Traced>,
    /// How many lines are strace's, whatever they tell.
    pub lines: u32,
    /// How processes ended: the line, the process where it is shown, and the signal for one that
    /// was killed.
    pub ends: Vec<(u32, Option<u32>, Option<String>)>,
    /// True when the program opened a libcuda.
    pub loads_cuda: bool,
    /// True when the trace shows the program's start.
    pub begins: bool,
    /// The first line that tells of a thread or child of the program's, which only `-f` follows.
    pub starts_another: Option<u32>,
    /// True when more than one thread is told apart.
    pub follows: bool,
    /// ioctls on descriptors whose opening the trace does not show: the first line, how many.
    pub unassigned: Option<(u32, u32)>,
    /// Attempts to connect to local sockets.
    pub connections: Vec<Connection>,
    /// Who waits at one when the trace ends.
    pub waits: Vec<Wait>,
    /// The line of the heading of `strace -c`, and how many ioctls that counts.
    pub counted: Option<(u32, u64)>,
}

/// A call to a node of the driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The line on which it was entered.
    pub line: u32,
    /// The thread, when the trace tells threads apart.
    pub thread: Option<u32>,
    /// The node.
    pub node: Node,
    /// What was asked; `None` for the other calls.
    pub asked: Option<Asked>,
    /// `close` or `mmap`; `None` for a request and an open.
    pub other: Option<&'static str>,
    /// The address of an ioctl's parameters, where shown.
    pub address: Option<u64>,
    /// How it ended.
    pub end: End,
    /// How long it took, where `-T` shows it.
    pub seconds: Option<f64>,
    /// The driver's status; strace does not show it.
    pub status: Option<u32>,
    /// The library that holds the request, so that the kernel has not seen it or its answer has
    /// not come back.
    pub interposer: Option<String>,
    /// True when gpudx answered the call, or held it, in the driver's stead.
    pub injected: bool,
}

/// How a traced call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It returned this.
    Returned(i64),
    /// It failed with this errno.
    Failed(Errno),
    /// It failed with an errno of this name, which is not in the table.
    FailedAs(String),
    /// The trace or the process ended before it returned.
    InFlight,
}

impl Traced {
    /// The call in words: `open`, `UVM_REGISTER_GPU`.
    pub fn words(&self) -> String {
        let other = || self.other.unwrap_or("open").to_owned();
        self.asked.as_ref().map_or_else(other, Asked::words)
    }

    /// True for an open.
    pub fn is_open(&self) -> bool {
        self.asked.is_none() && self.other.is_none()
    }

    /// True when the number is in the tables.
    pub fn known(&self) -> bool {
        self.asked.as_ref().is_none_or(|asked| asked.known)
    }
}

/// Reads a trace. Lines that are not strace's are passed over, since what the traced program
/// prints stands between.
pub fn parse(text: &str) -> Parsed<Strace> {
    let mut reader = Reader::default();
    let mut parsed = Parsed::clean(());
    for (number, text) in numbered(text) {
        if text.len() > LINE_LIMIT {
            parsed.complain(number, "line too long for a trace");
        } else if let Some(line) = line::parse(text) {
            reader.strace.lines += 1;
            reader.line(number, &line);
        } else {
            reader.count(number, text);
        }
        if reader.strace.calls.len() >= CALLS_LIMIT {
            parsed.complain(number, "the calls after this are not read");
            break;
        }
    }
    Parsed { value: reader.finish(), complaints: parsed.complaints }
}

#[derive(Default)]
struct Reader {
    strace: Strace,
    /// What descriptors lead to, for traces without `-y`.
    nodes: BTreeMap<u32, Node>,
    sockets: Sockets,
    /// The call that each thread is in.
    entered: BTreeMap<Option<u32>, Entered>,
    /// The first thread that a line names.
    first_thread: Option<u32>,
}

/// A call that was entered and did not return yet.
struct Entered {
    line: u32,
    name: String,
    /// Its place in the list, when it is one to the driver.
    index: Option<usize>,
    arguments: String,
}

impl Reader {
    fn line(&mut self, number: u32, line: &Line<'_>) {
        if let Some(thread) = line.thread {
            let first = *self.first_thread.get_or_insert(thread);
            self.strace.follows |= first != thread;
        }
        match &line.content {
            Content::Call { name, arguments, result } => {
                self.strace.begins |= *name == "execve";
                if ["clone", "clone3", "fork", "vfork"].contains(name) {
                    self.strace.starts_another.get_or_insert(number);
                }
                let index = self.enter(number, line.thread, name, arguments);
                if let Some(result) = result {
                    self.leave(number, index, name, arguments, result);
                } else {
                    let (name, arguments) = ((*name).to_owned(), (*arguments).to_owned());
                    let entered = Entered { line: number, name, index, arguments };
                    self.entered.insert(line.thread, entered);
                }
            }
            Content::Resumed { name, result } => {
                if let Some(entered) = self.resumed(line.thread, name) {
                    self.leave(entered.line, entered.index, name, &entered.arguments, result);
                }
            }
            Content::Ended { killed_by } => {
                let signal = killed_by.map(str::to_owned);
                self.strace.ends.push((number, line.thread, signal));
            }
            Content::Signal => {}
        }
    }

    /// The call that is resumed. As long as there is one thread strace names none, so that the line
    /// before may lack the number that this one has, and the other way round.
    fn resumed(&mut self, thread: Option<u32>, name: &str) -> Option<Entered> {
        if let Some(entered) = self.entered.remove(&thread) {
            return Some(entered);
        }
        let same = |entered: &Entered| entered.name == name;
        let key = match thread {
            Some(_) => None,
            None => *self.entered.iter().find(|(_, entered)| same(entered))?.0,
        };
        self.entered.get(&key).is_some_and(same).then(|| self.entered.remove(&key)).flatten()
    }

    /// The table of `strace -c`, which has no calls.
    fn count(&mut self, number: u32, text: &str) {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if words.starts_with(&["%", "time", "seconds", "usecs/call"]) {
            self.strace.counted = Some((number, 0));
        } else if let (Some((_, ioctls)), Some(&"ioctl")) = (&mut self.strace.counted, words.last())
        {
            *ioctls = words.get(3).and_then(|calls| calls.parse().ok()).unwrap_or(0);
        }
    }

    /// Takes a call of the driver's in, and gives its place.
    fn enter(&mut self, line: u32, thread: Option<u32>, name: &str, text: &str) -> Option<usize> {
        let words = arguments::split(text);
        let mut other = None;
        let (node, asked, address) = match name {
            "close" | "mmap" => {
                let closes = name == "close";
                other = Some(if closes { "close" } else { "mmap" });
                let word = words.get(if closes { 0 } else { 4 })?;
                let (descriptor, link) = arguments::descriptor(word)?;
                let known = || self.nodes.get(&descriptor).cloned();
                (link.and_then(Node::of).or_else(known)?, None, None)
            }
            "ioctl" => {
                let (descriptor, link) = arguments::descriptor(words.first()?)?;
                let request = words.get(1)?;
                let node = link.and_then(Node::of).or_else(|| self.nodes.get(&descriptor).cloned());
                let Some(node) = node else {
                    self.unassigned(line, link, request);
                    return None;
                };
                let parameters = words.get(2).copied().unwrap_or("");
                let bytes = arguments::dumped(parameters).unwrap_or_default();
                let asked = match requests::number(request) {
                    Some(number) => driver_call::asked(&node, number, &bytes, &mut |_, _| None),
                    None => Asked { request: (*request).to_owned(), ..Asked::default() },
                };
                (node, Some(asked), arguments::number(parameters))
            }
            "open" | "openat" | "openat2" => {
                let path = arguments::quoted(words.get(usize::from(name != "open"))?)?;
                self.strace.loads_cuda |= path.contains("/libcuda.so");
                (Node::of(&path)?, None, None)
            }
            _ => return None,
        };
        let end = End::InFlight;
        self.strace.calls.push(Traced {
            line,
            thread,
            node,
            asked,
            other,
            address,
            end,
            seconds: None,
            status: None,
            interposer: None,
            injected: false,
        });
        Some(self.strace.calls.len() - 1)
    }

    /// Counts a request that only the driver has, on a descriptor that nothing tells of.
    fn unassigned(&mut self, line: u32, link: Option<&str>, request: &str) {
        let is_of_driver = requests::number(request).is_some_and(|number| {
            nvabi::ioctl::decode_request(number).is_some() || number == 0x3000_0001
        });
        if link.is_none() && is_of_driver {
            self.strace.unassigned.get_or_insert((line, 0)).1 += 1;
        }
    }

    fn leave(
        &mut self,
        line: u32,
        index: Option<usize>,
        name: &str,
        text: &str,
        result: &line::Outcome<'_>,
    ) {
        self.follow(name, text, result);
        if matches!(name, "connect" | "close") {
            self.sockets.leave(line, name, &arguments::split(text), result);
        }
        let Some(call) = index.and_then(|index| self.strace.calls.get_mut(index)) else { return };
        call.seconds = result.seconds;
        call.end = match (result.value, result.errno) {
            (_, Some(name)) => {
                Errno::from_name(name).map_or_else(|| End::FailedAs(name.to_owned()), End::Failed)
            }
            (Some(value), None) => End::Returned(value),
            (None, None) => End::InFlight,
        };
    }

    /// What is left when the text ends.
    fn finish(mut self) -> Strace {
        let waits = self.entered.iter().filter_map(|(thread, entered)| {
            let words = arguments::split(&entered.arguments);
            let path = self.sockets.awaited(&entered.name, &words)?;
            Some(Wait { line: entered.line, thread: *thread, call: entered.name.clone(), path })
        });
        self.strace.waits = waits.collect();
        self.strace.connections = self.sockets.connections;
        self.strace
    }

    /// Keeps the table of descriptors.
    fn follow(&mut self, name: &str, text: &str, result: &line::Outcome<'_>) {
        let Some(value) = result.value.and_then(|value| u32::try_from(value).ok()) else { return };
        let words = arguments::split(text);
        let first = words.first().copied().unwrap_or("");
        let node = match name {
            "close" => {
                if let Some((descriptor, _)) = arguments::descriptor(first) {
                    self.nodes.remove(&descriptor);
                }
                return;
            }
            "open" | "openat" | "openat2" => {
                let path = words.get(usize::from(name != "open"));
                path.and_then(|path| Node::of(&arguments::quoted(path)?))
            }
            "dup" | "dup2" | "dup3" => arguments::descriptor(first)
                .and_then(|(descriptor, _)| self.nodes.get(&descriptor).cloned()),
            "fcntl" if text.contains("F_DUPFD") => arguments::descriptor(first)
                .and_then(|(descriptor, _)| self.nodes.get(&descriptor).cloned()),
            _ => return,
        };
        match node {
            Some(node) if self.nodes.len() < DESCRIPTORS_LIMIT => {
                self.nodes.insert(value, node);
            }
            _ => {
                self.nodes.remove(&value);
            }
        }
    }
}
