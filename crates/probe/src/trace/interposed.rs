//! Threads that a library between the program and the driver holds, when the trace is about to
//! end: the request is named from what lies on the stack.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use facts::parse::strace::driver_call::{self, Asked, Node, Object};

use super::event::{Call, Event, Unreturned};
use super::memory::Whose;
use super::stack;
use super::summary::InFlight;
use super::tracer::Tracer;
use crate::sys::ptrace::{self, Stop};

/// How long the threads may take to stop. One that the kernel holds never does.
const STOP_LIMIT: Duration = Duration::from_millis(300);
/// Most threads that are looked at.
const THREADS_LIMIT: usize = 64;
/// Bytes of parameters that name a control or a class.
const NAMING_BYTES: usize = 32;
/// Highest descriptor that is tried.
const DESCRIPTORS_BELOW: u32 = 4096;

impl Tracer<'_> {
    /// Stops the threads that are in no call of the driver's, and looks at the stacks of those
    /// whose process has to do with the driver.
    pub(super) fn look_at_stacks(&mut self) {
        let mut awaited: BTreeSet<u32> =
            self.tasks.outside_driver().into_iter().take(THREADS_LIMIT).collect();
        for tid in &awaited {
            // One that is gone tells so itself.
            let _ = ptrace::interrupt(*tid);
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while !awaited.is_empty() {
            match ptrace::stop_before(deadline) {
                Ok(Some((tid, stop))) => {
                    let is_gone = matches!(stop, Stop::Exited(_) | Stop::Killed(_));
                    if awaited.remove(&tid) && !is_gone {
                        self.look_at_stack(tid);
                    }
                    self.serve_stop(tid, stop);
                }
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Tells of the request that the thread brought to a library that has not returned. `None`
    /// where there is no such library.
    fn look_at_stack(&mut self, tid: u32) -> Option<()> {
        let process = self.tasks.thread(tid).process;
        let whose = self.whose(tid, process).carefully();
        let (pointer, registers) = ptrace::stack_pointer_and_registers(tid).ok()?;
        let bytes = self.memory.read_of(whose, pointer, stack::WORDS * 8)?;
        let words: Vec<u64> = bytes.as_chunks().0.iter().copied().map(u64::from_ne_bytes).collect();
        let maps = self.memory.maps(whose)?;
        let mapped = stack::mapped(&maps);
        let program = std::fs::read_link(format!("/proc/{tid}/exe")).ok()?;
        let (library, above) = stack::interposer(&words, &mapped, program.to_str()?)?;
        let near: Vec<u64> = stack::around(&registers, &words, above).collect();
        let Some(request) = stack::request(near.iter().copied()) else {
            self.note(format!(
                "thread {tid} is in {library}, which the driver's library called: it stands before \
                 the driver, and which request it holds cannot be told"
            ));
            return None;
        };
        let call = self.held_call(whose, request, library, &near);
        self.tell_held(tid, call);
        Some(())
    }

    fn held_call(&mut self, whose: Whose, request: u32, library: &str, near: &[u64]) -> Call {
        let usual = if stack::is_uvm(request) { "/dev/nvidia-uvm" } else { "/dev/nvidiactl" };
        let found = self.descriptor(whose, usual, near);
        let path = found.as_ref().map_or(usual, |(_, node)| &node.path);
        let node = Node { path: path.to_owned(), stands_in: false };
        let mut none = |_, _| None;
        // What is no address of the program's cannot be read, which costs little.
        let read = |address: &u64| self.memory.read_of(whose, *address, NAMING_BYTES);
        let asked: Vec<Asked> = near
            .iter()
            .filter_map(read)
            .map(|bytes| driver_call::asked(&node, request, &bytes, &mut none))
            .filter(|asked| asked.object.is_some_and(is_named))
            .collect();
        // Parameters begin with the client, which earlier calls have told.
        let is_of_client = |asked: &&Asked| {
            asked.handles.is_some_and(|(client, _)| self.clients.contains(&client))
        };
        let asked = asked.iter().find(is_of_client).cloned();
        let asked = asked.unwrap_or_else(|| driver_call::asked(&node, request, &[], &mut none));
        let mut call = self.new_call(whose.thread, whose.process, asked.words(), &node);
        call.descriptor = found.map(|(descriptor, _)| descriptor);
        call.request = Some(request);
        call.known = asked.known;
        call.handles = asked.handles;
        call.object = asked.object.map(|object| match object {
            Object::Control(number) | Object::Class(number) => number,
        });
        call.interposer = Some(Arc::from(library));
        call
    }

    /// A descriptor among the words that leads to a node with which one speaks so.
    fn descriptor(&mut self, whose: Whose, usual: &str, near: &[u64]) -> Option<(u32, Node)> {
        let usual = Node::of(usual)?;
        let numbers: BTreeSet<u32> = stack::halves(near.iter().copied())
            .filter(|number| (3..DESCRIPTORS_BELOW).contains(number))
            .collect();
        numbers.into_iter().find_map(|number| {
            let node = self.node(whose.thread, whose.process, number)?;
            (node.speaks() == usual.speaks()).then_some((number, node))
        })
    }

    fn tell_held(&mut self, tid: u32, call: Call) {
        let library = call.interposer.as_deref().unwrap_or_default();
        let last = self.tasks.thread(tid).last.take();
        let (name, when) = last.unwrap_or_else(|| (String::new(), self.started));
        let text = if name == call.name {
            format!("the kernel answered {name}, and {library} has not handed the answer on")
        } else {
            format!("{library} was asked {}, and the kernel has not seen it", call.name)
        };
        self.note(text);
        self.summary.entered(&call);
        self.tell(&Event::Entered(&call));
        let elapsed = when.elapsed();
        self.tell(&Event::Unreturned(&call, elapsed, Unreturned::Interposed));
        self.summary.in_flight.push(InFlight { call, elapsed });
    }
}

/// A control or class that has a name; 0 is in memory everywhere and says nothing.
fn is_named(object: Object) -> bool {
    let (Object::Control(number) | Object::Class(number)) = object;
    number != 0 && object.known()
}
