//! The lines that `gpudx trace` writes for people, as calls to the driver:
//! `python3 +0.052s UVM_REGISTER_GPU nvidia-uvm GPU-… … 180.9 ms  NV_OK`.
//!
//! A line that was begun and then interrupted by another is told anew when it is complete, with the
//! same beginning.

use super::driver_call::{Asked, Node, Object};
use super::{CALLS_LIMIT, End, Strace, Traced};
use crate::observed::Errno;
use crate::parse::{Parsed, numbered};

/// What stands between a call and what came of it.
const ELLIPSIS: &str = " \u{2026}";
/// What comes of a call that did not return.
const UNRETURNED: [&str; 4] =
    ["the process ended in it", "has not returned", "is held by gpudx", "a library holds it"];

/// How the words of a call begin.
const CALLS: [&str; 7] = ["open", "close", "mmap", "RM_", "UVM_", "NV_ESC_", "0x"];

/// True when a text may hold such lines.
pub(crate) fn may_hold(text: &str) -> bool {
    text.contains(ELLIPSIS) && text.contains("nvidia")
}

/// True when a line is one of such a trace.
pub(crate) fn is_line(text: &str) -> bool {
    Line::of(text).is_some()
}

/// Reads such lines; others are passed over.
pub(crate) fn parse(text: &str) -> Parsed<Strace> {
    let mut parsed = Parsed::clean(Strace::default());
    let mut begun: Option<&str> = None;
    for (number, text) in numbered(text) {
        parsed.value.loads_cuda |= loads_cuda(text);
        if let Some(ended) = text.split_once(" driver calls in ").and_then(|(_, rest)| how(rest)) {
            let signal = (!ended.starts_with("exited with ")).then(|| ended.to_owned());
            parsed.value.ends.push((number, None, signal));
        }
        let Some(line) = Line::of(text) else { continue };
        let strace = &mut parsed.value;
        strace.lines += 1;
        // The last call may stand there already, as far as it was known then.
        if begun == Some(line.head) {
            strace.calls.pop();
        }
        strace.calls.push(line.call(number));
        begun = (line.outcome.is_empty()).then_some(line.head);
        if strace.calls.len() >= CALLS_LIMIT {
            parsed.complain(number, "the calls after this are not read");
            break;
        }
    }
    parsed
}

/// `gpudx: /usr/lib/libcuda.so.580.159.04 is loaded`
fn loads_cuda(text: &str) -> bool {
    let path = text.strip_prefix("gpudx: ").and_then(|text| text.strip_suffix(" is loaded"));
    path.is_some_and(|path| path.contains("/libcuda.so"))
}

/// How the program ended, in `552.9 ms; exited with 0`.
fn how(sum: &str) -> Option<&str> {
    sum.split_once("; ").map(|(_, ended)| ended)
}

/// One line, taken apart.
struct Line<'a> {
    /// All that is told when the call is entered.
    head: &'a str,
    thread: Option<u32>,
    /// The call in words.
    words: &'a str,
    node: Node,
    interposer: Option<&'a str>,
    /// What came of it; empty as long as nothing has.
    outcome: &'a str,
}

impl<'a> Line<'a> {
    fn of(text: &'a str) -> Option<Line<'a>> {
        let (head, outcome) = text.split_once(ELLIPSIS)?;
        let (who, rest) = head.split_once(" +")?;
        let (at, rest) = rest.split_once("s ")?;
        let is_time =
            at.contains('.') && at.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let place = rest.find(" nvidia").filter(|_| is_time)?;
        let (words, behind) = rest.split_at_checked(place)?;
        if !CALLS.iter().any(|begin| words.starts_with(begin)) {
            return None;
        }
        let (name, more) = behind.trim_start().split_once(' ').unwrap_or((behind.trim_start(), ""));
        let library = more.split_once("in ").and_then(|(_, text)| text.split_once(" (told by"));
        Some(Line {
            head,
            thread: who.rsplit_once('/').and_then(|(_, tid)| tid.parse().ok()),
            words,
            node: Node::of(&format!("/dev/{name}"))?,
            interposer: library.map(|(library, _)| library),
            outcome: outcome.trim(),
        })
    }

    fn call(&self, line: u32) -> Traced {
        let other = ["close", "mmap"].into_iter().find(|other| *other == self.words);
        let is_request = other.is_none() && self.words != "open";
        let (seconds, came) = match taken(self.outcome) {
            Some((seconds, came)) => (Some(seconds), came),
            None => (None, ""),
        };
        let word = came.split(' ').next().unwrap_or_default();
        let status = nvabi::nv_status::by_name(word).map(|status| status.code);
        Traced {
            line,
            thread: self.thread,
            node: self.node.clone(),
            asked: is_request.then(|| asked(self.words)),
            other,
            address: None,
            end: end(came, status.is_some()),
            seconds,
            status,
            interposer: self.interposer.map(str::to_owned),
            injected: came.contains("from gpudx") || came == "is held by gpudx",
        }
    }
}

/// `180.9 ms  NV_OK`: the seconds, and what is told behind them.
fn taken(outcome: &str) -> Option<(f64, &str)> {
    let (number, rest) = outcome.split_once(' ')?;
    let (unit, came) = rest.split_once(' ').unwrap_or((rest, ""));
    let factor = match unit {
        "\u{b5}s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * factor, came.trim()))
}

fn end(came: &str, has_status: bool) -> End {
    if came.is_empty() || UNRETURNED.contains(&came) {
        return End::InFlight;
    }
    let word = came.split(' ').next().unwrap_or_default();
    match word {
        _ if has_status || word == "=" => End::Returned(0),
        name => Errno::from_name(name).map_or_else(|| End::FailedAs(name.to_owned()), End::Failed),
    }
}

/// `RM_CONTROL NV0000_CTRL_CMD_GPU_ATTACH_IDS`, `UVM_REGISTER_GPU`, `NV_ESC_CARD_INFO`, or a number.
fn asked(words: &str) -> Asked {
    let plain = |request: &str, number: Option<u32>| Asked {
        request: request.to_owned(),
        known: number.is_some(),
        number: number.unwrap_or(0),
        ..Asked::default()
    };
    let last = words.rsplit(' ').next().unwrap_or(words);
    let told = || nvabi::number::parse(last).and_then(|number| u32::try_from(number).ok());
    if let Some(name) = words.strip_prefix("RM_CONTROL ") {
        let known = nvabi::control::by_name(name).map(|control| control.command);
        let object = known.or_else(told).map(Object::Control);
        return Asked { object, ..escape("NV_ESC_RM_CONTROL") };
    }
    if let Some(name) = words.strip_prefix("RM_ALLOC ") {
        let object = nvabi::class::by_name(name).map(|class| class.id).or_else(told);
        return Asked { object: object.map(Object::Class), ..escape("NV_ESC_RM_ALLOC") };
    }
    match nvabi::uvm::by_name(words) {
        Some(request) => plain(words, Some(request.request)),
        None => escape(words),
    }
}

fn escape(name: &str) -> Asked {
    let known = nvabi::ioctl::escape_by_name(name);
    Asked {
        request: name.to_owned(),
        known: known.is_some(),
        number: known.map_or(0, |escape| escape.nr),
        ..Asked::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
gpudx: /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04 is loaded
python3 +0.010s open nvidiactl … 341 µs  = 14
python3/812 +0.011s RM_CONTROL NV0000_CTRL_CMD_GPU_GET_PROBED_IDS nvidiactl … 775 µs  NV_ERR_NO_MEMORY
python3 +0.012s RM_CONTROL NV2081_BINAPI 0x20810108 nvidiactl … 9 µs  NV_OK
python3 +0.013s open nvidia-uvm … 12 µs  EPERM
python3 +0.036s mmap nvidia0 0x10000 bytes at 0x0 … 342 µs  = 0x7f1b414fc000
python3 +0.052s UVM_REGISTER_GPU nvidia-uvm GPU-4237e338-223a-2659-37ae-b2ce18a1bace … \n\
gpudx: thread 812 makes 32-bit calls, which are not decoded
python3 +0.052s UVM_REGISTER_GPU nvidia-uvm GPU-4237e338-223a-2659-37ae-b2ce18a1bace … 12.0 s  has not returned

7 driver calls in 12.1 s; deadline passed
";

    #[test]
    fn calls_are_read_with_their_answers() {
        let strace = parse(TRACE).value;
        assert!(strace.loads_cuda);
        let words: Vec<String> = strace.calls.iter().map(Traced::words).collect();
        let control = "RM_CONTROL NV0000_CTRL_CMD_GPU_GET_PROBED_IDS";
        let nameless = "RM_CONTROL NV2081_BINAPI 0x20810108";
        assert_eq!(words, ["open", control, nameless, "open", "mmap", "UVM_REGISTER_GPU"]);
        assert_eq!((strace.calls[1].thread, strace.calls[1].status), (Some(812), Some(0x51)));
        assert_eq!(strace.calls[3].end, End::Failed(Errno::EPERM));
        assert_eq!(strace.calls[4].end, End::Returned(0));
        let last = &strace.calls[5];
        assert_eq!((&last.end, last.seconds), (&End::InFlight, Some(12.0)));
        assert_eq!(last.asked.as_ref().map(|asked| asked.number), Some(0x25));
        assert_eq!(strace.ends, [(11, None, Some("deadline passed".to_owned()))]);
        let ends = TRACE.char_indices().map(|(at, _)| at);
        ends.for_each(|at| drop(parse(&TRACE[..at])));
    }

    #[test]
    fn a_library_that_holds_a_request_is_read() {
        let line = "cuda +0.1s UVM_INITIALIZE nvidia-uvm in /opt/w.so (told by its stack) … 2000.0 ms  a library holds it";
        let strace = parse(line).value;
        assert_eq!(strace.calls[0].interposer.as_deref(), Some("/opt/w.so"));
    }

    #[test]
    fn prose_is_not_a_trace() {
        let lines = [
            "it took +5.2s to open nvidia … and then",
            "a +b.cs open nvidia0 …",
            "",
            "… +1.0s",
            "Loading nvidia …",
        ];
        for line in lines {
            assert!(!is_line(line), "{line}");
        }
    }
}
