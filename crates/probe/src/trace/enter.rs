//! What a thread is about to ask the driver.

use std::sync::Arc;
use std::time::Instant;

use facts::Errno;
use facts::parse::strace::driver_call::{self, Node};

use super::event::{Call, Mapping};
use super::injection::{Injected, Injection};
use super::memory::Whose;
use super::tasks::{Entered, Ioctl};
use super::telling::Seen;
use super::tracer::Tracer;
use crate::sys::arch::{Known, OWN};
use crate::sys::ptrace;

/// Longest link of a descriptor that can lead to a node of the driver.
const LINK_BYTES: usize = 128;
/// Most clients that are remembered.
const CLIENTS_LIMIT: usize = 1024;
/// How the names of the driver's own libraries begin.
const LIBRARIES: [&str; 2] = ["libcuda.so", "libnvidia-ml.so"];

impl Tracer<'_> {
    /// A thread enters a call. Those that are no business of the driver's are passed over.
    pub(super) fn enter(&mut self, tid: u32, number: u64, arguments: [u64; 6]) {
        let process = self.tasks.thread(tid).process;
        let [first, second, third, ..] = arguments;
        match OWN.known(number) {
            Some(Known::Ioctl) => {
                let whose = self.whose(tid, process);
                self.enter_ioctl(whose, low_half(first), low_half(second), third);
            }
            Some(Known::Open) => self.enter_open(tid, process, first),
            Some(Known::OpenAt) => self.enter_open(tid, process, second),
            Some(Known::Mmap) => self.enter_mmap(tid, process, arguments),
            Some(Known::Close) => {
                if let Some(node) = self.node(tid, process, low_half(first)) {
                    let mut call = self.new_call(tid, process, "close".to_owned(), &node);
                    call.descriptor = Some(low_half(first));
                    self.entered(tid, Entered::new(call, &node));
                }
            }
            Some(Known::Ptrace) => self.note(format!(
                "process {process} traces processes itself; a process that gpudx traces cannot be \
                 traced by another, so that it is refused"
            )),
            None => {}
        }
    }

    fn enter_open(&mut self, tid: u32, process: u32, path: u64) {
        let whose = self.whose(tid, process);
        let Some(path) = self.memory.read_path(whose, path) else {
            return self.say_blocked(process);
        };
        if let Some(node) = Node::of(&path) {
            let call = self.new_call(tid, process, "open".to_owned(), &node);
            // Nothing has been opened yet that could stand in for the node.
            let stands_in = false;
            self.entered(tid, Entered { stands_in, ..Entered::new(call, &node) });
        } else if LIBRARIES.iter().any(|name| file_name(&path).starts_with(name)) {
            self.tasks.thread(tid).loading = true;
        }
    }

    /// A driver's library was opened, or was not where it was looked for.
    pub(super) fn loaded(&mut self, tid: u32, result: i64) {
        let process = self.tasks.thread(tid).process;
        let Ok(descriptor) = u32::try_from(result) else { return };
        let mut buffer = [0; 4096];
        let Ok(folder) = self.tasks.descriptors(tid) else { return };
        let Ok(link) = folder.link(descriptor, &mut buffer) else { return };
        let path = String::from_utf8_lossy(link).into_owned();
        self.tasks.concern(process);
        let version = file_name(&path).split_once(".so.").map_or("", |(_, version)| version);
        if version.contains('.') {
            self.branch = self.branch.or_else(|| super::tracer::branch_of(version));
        }
        self.seen(Seen::Library { pid: process, path });
    }

    fn enter_mmap(&mut self, tid: u32, process: u32, arguments: [u64; 6]) {
        let [_, length, protection, flags, descriptor, offset] = arguments;
        let has = |bit: libc::c_int| flags & u64::from(bit.cast_unsigned()) != 0;
        // The same that the filter lets stop.
        let is_of_file = has(libc::MAP_SHARED) && !has(libc::MAP_ANONYMOUS);
        let descriptor = low_half(descriptor);
        if !is_of_file || descriptor == u32::MAX {
            return;
        }
        let Some(node) = self.node(tid, process, descriptor) else { return };
        let mut call = self.new_call(tid, process, "mmap".to_owned(), &node);
        call.descriptor = Some(descriptor);
        call.mapping = Some(Mapping { length, offset, protection, flags });
        self.entered(tid, Entered::new(call, &node));
    }

    fn enter_ioctl(&mut self, whose: Whose, descriptor: u32, request: u32, address: u64) {
        let Some(node) = self.node(whose.thread, whose.process, descriptor) else { return };
        let mut entered = self.ioctl(whose, &node, request, address);
        entered.call.descriptor = Some(descriptor);
        self.entered(whose.thread, entered);
    }

    /// The node that a descriptor leads to.
    pub(super) fn node(&mut self, tid: u32, process: u32, descriptor: u32) -> Option<Node> {
        let mut buffer = [0; LINK_BYTES];
        let looked = self.tasks.descriptors(tid).and_then(|folder| {
            let link = folder.link(descriptor, &mut buffer)?;
            Ok(Node::of(std::str::from_utf8(link).unwrap_or_default()))
        });
        if let Err(Errno(libc::EACCES | libc::EPERM)) = looked {
            self.note(format!(
                "the descriptors of process {process} cannot be read, so its ioctls are not told: \
                 it has dropped or raised its privileges; root or CAP_SYS_PTRACE may"
            ));
        }
        looked.ok().flatten()
    }

    fn ioctl(&mut self, whose: Whose, node: &Node, request: u32, address: u64) -> Entered {
        let length = driver_call::naming_bytes(node, request);
        let memory = &mut self.memory;
        let bytes = memory.read_of(whose, address, length).unwrap_or_default();
        let mut more = |address, length| memory.read_of(whose, address, length);
        let asked = driver_call::asked(node, request, &bytes, &mut more);
        self.say_blocked(whose.process);
        let mut call = self.new_call(whose.thread, whose.process, asked.words(), node);
        call.known = asked.known && asked.object.is_none_or(driver_call::Object::known);
        call.request = Some(request);
        call.handles = asked.handles;
        call.gpu.clone_from(&asked.gpu);
        call.object = asked.object.map(|object| match object {
            driver_call::Object::Control(number) | driver_call::Object::Class(number) => number,
        });
        let ioctl = Some(Ioctl { node: node.clone(), request, asked, address });
        Entered { ioctl, ..Entered::new(call, node) }
    }

    pub(super) fn new_call(&mut self, tid: u32, process: u32, name: String, node: &Node) -> Call {
        Call {
            sequence: self.summary.calls + 1,
            at: self.started.elapsed(),
            pid: process,
            tid,
            process: self.tasks.name(process),
            name,
            node: Arc::from(node.path.as_str()),
            descriptor: None,
            request: None,
            mapping: None,
            object: None,
            handles: None,
            gpu: None,
            known: true,
            interposer: None,
            found_inside: self.finds,
        }
    }

    fn entered(&mut self, tid: u32, mut entered: Entered) {
        self.tasks.concern(entered.call.pid);
        self.remember_client(entered.call.handles.map(|(client, _)| client));
        self.summary.entered(&entered.call);
        self.seen(Seen::Entered(tid));
        let sequence = entered.call.sequence;
        let held = self.options.hold == Some(sequence) && !entered.call.found_inside;
        if held {
            self.note(format!("call {sequence} is held before the driver sees it"));
        } else if let Some(answer) = self.injection(sequence) {
            self.inject(tid, &mut entered, answer);
        }
        // What seeing took is not the call's.
        entered.since = Instant::now();
        let thread = self.tasks.thread(tid);
        thread.held = held;
        thread.entered = Some(entered);
    }

    /// Remembers a client of RM's, by which the parameters of a later call can be told.
    pub(super) fn remember_client(&mut self, client: Option<u32>) {
        if let Some(client) = client.filter(|client| *client != 0)
            && self.clients.len() < CLIENTS_LIMIT
        {
            self.clients.insert(client);
        }
    }

    fn injection(&self, sequence: u64) -> Option<Injected> {
        let of_call = |injection: &&Injection| injection.call == sequence;
        self.options.fail.iter().find(of_call).map(|injection| injection.answer)
    }

    /// Makes the call be left undone, so that it can be answered at its exit.
    fn inject(&mut self, tid: u32, entered: &mut Entered, answer: Injected) {
        let sequence = entered.call.sequence;
        let fits = match (answer, &entered.ioctl) {
            (Injected::Errno(_), _) => true,
            (Injected::Status(_), Some(ioctl)) => self.status_address(ioctl).is_some(),
            (Injected::Status(_), None) => false,
        };
        if !fits {
            self.note(format!(
                "call {sequence} has no status at a place that is known; it goes to the driver"
            ));
        } else if entered.call.found_inside {
            self.note(format!("call {sequence} is in the driver already"));
        } else if let Err(errno) = ptrace::skip_call(tid) {
            self.note(format!("call {sequence} cannot be kept from the driver: {errno}"));
        } else {
            entered.injected = Some(answer);
        }
    }

    /// A system call that a thread was found in when it was attached to.
    pub(super) fn found_inside(&mut self, tid: u32, number: u64, arguments: [u64; 6]) {
        self.finds = true;
        self.enter(tid, number, arguments);
        self.finds = false;
        // A library that is being opened is none of the calls to tell of.
        self.tasks.thread(tid).loading = false;
    }
}

impl Entered {
    fn new(call: Call, node: &Node) -> Entered {
        let since = Instant::now();
        Entered { call, since, ioctl: None, stands_in: node.stands_in, injected: None }
    }
}

/// The kernel takes descriptors and requests as 32 bits, whatever the upper half holds.
fn low_half(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
