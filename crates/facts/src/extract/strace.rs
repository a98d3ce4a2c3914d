//! A trace, by strace or by gpudx: which call to the driver was in flight when it ended, which
//! failed, which was repeated without end, and where the time of a start went. Opens that failed
//! are entered where other texts tell of them, by the readers of loose text.

use std::borrow::Cow;

use crate::model::cuda::{Stage, Trial, TrialResult};
use crate::model::node::NodeOpen;
use crate::model::{Facts, Note, ProbeRun};
use crate::observed::{Origin, Seen};
use crate::parse::strace::{self, End, Strace, Traced, recorded, told};
use crate::raw::RawItem;
use crate::wire::{Outcome, Stuck};

mod limits;
mod mps;
mod time;

/// The name under which a trace is entered as a run.
const RUN: &str = "strace";
/// From how many calls in a row that are the same on repetition is no start-up any more. Where
/// the trace does not show what a control or an allocation is about, different ones look alike.
const STORM: usize = 200;
const STORM_OF_UNSHOWN: usize = 2000;

/// Reads a text that may hold a trace.
pub(super) fn apply(item: &RawItem, text: &str, facts: &mut Facts) {
    if ["ioctl(", "/dev/nvidia", "usecs/call", "sun_path="].iter().any(|mark| text.contains(mark)) {
        let strace = strace::parse(text).value;
        limits::apply(&strace, item, text, facts);
        tell(&strace, item, facts);
    }
    if text.contains("\"record\":") {
        tell(&recorded::parse(text).value, item, facts);
    }
    if told::may_hold(text) {
        tell(&told::parse(text).value, item, facts);
    }
}

/// A text without the lines of a trace by gpudx, which are no prose. Lines stay where they are.
pub(super) fn without_records(text: &str) -> Cow<'_, str> {
    let (has_records, has_lines) = (text.contains("\"record\":"), told::may_hold(text));
    if !has_records && !has_lines {
        return Cow::Borrowed(text);
    }
    let is_trace =
        |line: &str| (has_records && recorded::is_line(line)) || (has_lines && told::is_line(line));
    let kept = text.split_inclusive('\n');
    Cow::Owned(kept.map(|line| if is_trace(line) { "\n" } else { line }).collect())
}

fn tell(strace: &Strace, item: &RawItem, facts: &mut Facts) {
    let origin = |line: u32| item.origin_of_line(line);
    mps::apply(strace, &origin, facts);
    let waits = mps::waits(strace, facts);
    if strace.calls.is_empty() && waits.is_none() {
        return;
    }
    facts.mentions_gpu = true;
    if let Some(call) = strace.calls.iter().find(|call| call.injected) {
        facts.notes.push(Note {
            text: format!(
                "{} was answered or held by gpudx, as it was told to: what follows it in this \
                 trace is not the driver's doing",
                call.words()
            ),
            origin: origin(call.line),
        });
        return;
    }
    failures(strace, &origin, facts);
    time::apply(strace, &origin, facts);
    let exited = strace.ends.iter().any(|(_, _, signal)| signal.is_none());
    if let Some(call) = last_in_flight(strace) {
        in_flight(strace, call, &origin, facts);
    } else if let Some((call, count)) = storm(strace) {
        repeated(strace, call, count, exited, &origin, facts);
    } else if let Some(standing) = waits {
        let text = format!("the trace ends in {}, which did not return", standing.place);
        facts.notes.push(Note { text, origin: origin(standing.line) });
        hung(standing, &origin, facts);
    }
}

/// Where a traced program stands at the end.
struct Standing {
    line: u32,
    thread: Option<u32>,
    /// The call and what it is made on.
    in_flight: (String, Option<String>),
    /// Both in words.
    place: String,
    /// That it hangs there is a hang of cuInit.
    of_cuda: bool,
}

/// UVM's requests that the system call itself refused, or that have a status that is no success.
/// A trace by strace shows the address of the parameters only, in which the status stands.
fn failures(strace: &Strace, origin: &dyn Fn(u32) -> Origin, facts: &mut Facts) {
    for call in &strace.calls {
        let failure = match &call.end {
            End::Failed(errno) => errno.to_string(),
            End::FailedAs(name) => name.clone(),
            End::Returned(_) => match call.status.filter(|status| is_error(*status)) {
                Some(status) => strace::driver_call::status_name(status),
                None => continue,
            },
            End::InFlight => continue,
        };
        let words = call.words();
        if words.starts_with("UVM_") {
            facts.cuda.uvm_failures.push(Seen::new((words, failure), origin(call.line)));
        }
    }
}

/// Warnings stand above all errors.
fn is_error(status: u32) -> bool {
    const FIRST_WARNING: u32 = 0x1_0000;
    (1..FIRST_WARNING).contains(&status)
}

/// The call that did not return. Of several the last one: the others' threads wait for it, or it
/// for them, and the one entered last is what the program came to. A thread that exited was in no
/// call; that others did says nothing of it.
fn last_in_flight(strace: &Strace) -> Option<&Traced> {
    let exited = |call: &Traced| {
        strace.ends.iter().any(|(_, thread, signal)| {
            (thread.is_none() || *thread == call.thread) && signal.is_none()
        })
    };
    strace.calls.iter().rfind(|call| call.end == End::InFlight && !exited(call))
}

impl Standing {
    /// In a call of the driver's; how that is to be put is left to the caller.
    fn at(strace: &Strace, call: &Traced) -> Standing {
        let words = call.words();
        Standing {
            line: call.line,
            thread: call.thread,
            of_cuda: strace.loads_cuda || words.starts_with("UVM_"),
            in_flight: (words, Some(call.node.path.clone())),
            place: String::new(),
        }
    }
}

fn in_flight(strace: &Strace, call: &Traced, origin: &dyn Fn(u32) -> Origin, facts: &mut Facts) {
    let (words, node) = (call.words(), &call.node.path);
    let mut standing = Standing::at(strace, call);
    let text = if let Some(library) = &call.interposer {
        facts.library.interposers.push((library.clone(), origin(call.line)));
        standing.in_flight = (format!("a request that {library} holds"), None);
        // It is no place in the driver, by whatever name the request goes.
        standing.place = format!("user space, in {library}");
        format!("the trace ends in {words}, which {library} was asked and has not done")
    } else {
        if call.is_open() {
            facts.node.opens.insert(node.clone(), (NodeOpen::Hung, origin(call.line)));
        }
        let verb = if call.asked.is_some() { "ioctl " } else { "" };
        standing.place = format!("{verb}{words} on {node}");
        format!("the trace ends in {words} on {node}, which was entered and did not return")
    };
    facts.notes.push(Note { text, origin: origin(call.line) });
    hung(standing, origin, facts);
}

/// Enters the end of the trace as a run that hung, and as a trial where it is one of cuInit.
fn hung(standing: Standing, origin: &dyn Fn(u32) -> Origin, facts: &mut Facts) {
    let origin = origin(standing.line);
    let tid = standing.thread.unwrap_or(0);
    let stuck = Stuck {
        pid: tid,
        tid,
        state: "?".to_owned(),
        call: Some(standing.place),
        ..Stuck::default()
    };
    if standing.of_cuda {
        let hung = TrialResult::Hung { killable: None };
        let trial = Trial::new(Stage::Init, hung, "cuInit", origin.clone());
        facts.cuda.trials.push(Trial { traced: true, ..trial });
    }
    facts.probes.push(ProbeRun {
        probe: RUN.to_owned(),
        trial: 1,
        outcome: Outcome::TimedOut,
        code: None,
        seconds: 0.0,
        pid: standing.thread,
        calls: Vec::new(),
        in_flight: Some(standing.in_flight),
        stuck: Some(stuck),
        notes: Vec::new(),
        end_notes: Vec::new(),
        traced: true,
        origin,
    });
}

/// The longest row of the same call on the same node, when it is too long for a start-up.
fn storm(strace: &Strace) -> Option<(&Traced, usize)> {
    let same = |one: &Traced, other: &Traced| {
        let asked = |call: &Traced| call.asked.as_ref().map(|asked| (asked.number, asked.object));
        let same_kind = one.other == other.other && asked(one) == asked(other);
        one.thread == other.thread && one.node == other.node && same_kind
    };
    let rows = strace.calls.chunk_by(same);
    let longest = rows.max_by_key(|row| row.len())?;
    let first = longest.first()?;
    let unshown = ["NV_ESC_RM_CONTROL", "NV_ESC_RM_ALLOC"].contains(&first.words().as_str());
    let limit = if unshown { STORM_OF_UNSHOWN } else { STORM };
    (longest.len() >= limit).then_some((first, longest.len()))
}

fn repeated(
    strace: &Strace,
    call: &Traced,
    count: usize,
    exited: bool,
    origin: &dyn Fn(u32) -> Origin,
    facts: &mut Facts,
) {
    let place = format!("{} on {}", call.words(), call.node.path);
    facts.notes.push(Note {
        text: format!(
            "{place} is called {count} times in a row: a library asks again and again, as it does \
             when the driver answers EAGAIN or NV_ERR_BUSY_RETRY"
        ),
        origin: origin(call.line),
    });
    if !exited {
        let place = format!("a loop of {place}");
        hung(Standing { place, ..Standing::at(strace, call) }, origin, facts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{ItemName, RawSet};

    fn read(text: &str) -> Facts {
        let name = ItemName::Text("trace.txt".to_owned());
        crate::extract(&RawSet::from_iter([RawItem::new(name, text.as_bytes())]))
    }

    const START: &str = "993 openat(AT_FDCWD, \"/usr/lib/libcuda.so.1\", O_RDONLY|O_CLOEXEC) = 3\n\
        993 openat(AT_FDCWD, \"/dev/nvidia-uvm\", O_RDWR|O_CLOEXEC) = 9\n";

    #[test]
    fn a_call_in_flight_is_where_cuinit_hangs() {
        let ends = ["", "993 +++ killed by SIGKILL +++\n"];
        for end in ends {
            let facts = read(&format!(
                "{START}993 ioctl(9, _IOC(_IOC_NONE, 0, 0x25, 0), 0x7ffc <unfinished ...>\n{end}"
            ));
            let [trial] = facts.cuda.trials.as_slice() else { panic!("{:?}", facts.cuda.trials) };
            assert!(matches!(trial.result, TrialResult::Hung { .. }) && trial.traced);
            assert_eq!(trial.origin.line, 3);
            let stuck = facts.probes[0].stuck.as_ref().unwrap();
            assert_eq!(stuck.call.as_deref(), Some("ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm"));
        }
    }

    #[test]
    fn a_program_that_exited_did_not_hang() {
        let facts = read(&format!(
            "{START}993 ioctl(9, 0x25, 0x7ffc <unfinished ...>\n993 +++ exited with 0 +++\n"
        ));
        assert!(facts.cuda.trials.is_empty() && facts.probes.is_empty());
        let facts = read(&format!(
            "{START}993 ioctl(9, 0x25, 0x7ffc <unfinished ...>\n994 close(4) = 0\n993 <... ioctl resumed>) = 0\n"
        ));
        assert!(facts.cuda.trials.is_empty() && facts.probes.is_empty());
    }

    #[test]
    fn an_open_in_flight_and_a_refused_request() {
        let facts = read("openat(AT_FDCWD, \"/dev/nvidia0\", O_RDWR|O_CLOEXEC");
        assert_eq!(facts.node.opens["/dev/nvidia0"].0, NodeOpen::Hung);
        let facts = read(&format!(
            "{START}993 ioctl(9, 0x25, 0x7ffc) = -1 ENOMEM (Cannot allocate memory)\n"
        ));
        let failure = &facts.cuda.uvm_failures[0];
        assert_eq!(failure.value, ("UVM_REGISTER_GPU".to_owned(), "ENOMEM".to_owned()));
    }

    /// The same calls as gpudx records them give the same facts.
    #[test]
    fn a_trace_by_gpudx_tells_the_same() {
        let by_strace = read(&format!("{START}993 ioctl(9, 0x25, 0x7ffc <unfinished ...>\n"));
        let records = [
            r#"{"path":"/usr/lib/libcuda.so.580.1","pid":993,"record":"library"}"#,
            r#"{"call":"open","n":1,"node":"/dev/nvidia-uvm","record":"enter","tid":993}"#,
            r#"{"call":"open","n":1,"record":"return","returned":9}"#,
            r#"{"call":"UVM_REGISTER_GPU","n":2,"node":"/dev/nvidia-uvm","record":"enter","request":37,"tid":993}"#,
            r#"{"n":2,"ms":9,"record":"unreturned","why":"trace-ended"}"#,
            r#"{"ended":"deadline","in_flight":[],"record":"summary"}"#,
        ];
        let ours = read(&records.join("\n"));
        let place = |facts: &Facts| facts.probes[0].stuck.as_ref().unwrap().call.clone();
        assert_eq!(place(&ours), place(&by_strace));
        let result = |facts: &Facts| (facts.cuda.trials[0].result, facts.cuda.trials[0].traced);
        assert_eq!(result(&ours), result(&by_strace));
        let held = records.join("\n").replace("trace-ended", "held");
        let held = read(&held);
        assert!(held.cuda.trials.is_empty() && held.notes[0].text.contains("by gpudx"));
    }

    #[test]
    fn a_request_that_a_library_holds_is_no_place_in_the_driver() {
        let facts = read(
            r#"{"path":"/usr/lib/libcuda.so.580.1","pid":993,"record":"library"}
{"call":"UVM_INITIALIZE","interposer":"/opt/wrapper.so","n":2,"node":"/dev/nvidia-uvm","record":"enter","request":805306369,"tid":993}
{"n":2,"ms":9,"record":"unreturned","why":"interposed"}"#,
        );
        assert_eq!(facts.library.interposers[0].0, "/opt/wrapper.so");
        assert!(facts.notes[0].text.contains("UVM_INITIALIZE"));
        let stuck = facts.probes[0].stuck.as_ref().unwrap().call.clone();
        assert_eq!(stuck.as_deref(), Some("user space, in /opt/wrapper.so"));
        assert!(matches!(facts.cuda.trials[0].result, TrialResult::Hung { .. }));
    }

    #[test]
    fn a_status_is_a_failure_too() {
        let facts = read(
            r#"{"call":"UVM_REGISTER_GPU","n":2,"node":"/dev/nvidia-uvm","record":"enter","request":37,"tid":993}
{"n":2,"ms":9,"record":"return","returned":0,"status":"NV_ERR_NO_MEMORY","status_code":81}"#,
        );
        let failure = &facts.cuda.uvm_failures[0];
        assert_eq!(failure.value.1, "NV_ERR_NO_MEMORY");
        assert_eq!(failure.origin.line, 1);
    }

    #[test]
    fn a_storm_of_one_call_is_told_and_a_start_is_none() {
        let line = "993 ioctl(9, 0x30000001, 0x7ffc) = 0\n";
        let facts = read(&format!("{START}{}", line.repeat(STORM)));
        assert!(facts.notes.iter().any(|note| note.text.contains("200 times in a row")));
        assert_eq!(facts.cuda.trials.len(), 1);
        let facts = read(&format!("{START}{}", line.repeat(STORM - 1)));
        assert!(facts.cuda.trials.is_empty());
    }
}
