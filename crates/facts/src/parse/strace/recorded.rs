//! The lines that `gpudx trace --format json` writes (`gpudx/trace/1`), as calls to the driver.
//!
//! Names are looked up anew from the numbers, so that an old trace gains from new tables.

use serde_json::Value;

use super::driver_call::{self, Asked, Node, Object};
use super::{CALLS_LIMIT, End, Strace, Traced};
use crate::observed::Errno;
use crate::parse::{Parsed, numbered};

/// The kinds of lines, and what such a line holds beside: records of probes have some of the same
/// kinds.
const KINDS: [(&str, &str); 7] = [
    ("\"record\":\"start\"", "\"schema\":\"gpudx/trace/"),
    ("\"record\":\"enter\"", "\"n\":"),
    ("\"record\":\"return\"", "\"n\":"),
    ("\"record\":\"unreturned\"", "\"n\":"),
    ("\"record\":\"library\"", "\"path\":"),
    ("\"record\":\"note\"", "\"text\":"),
    ("\"record\":\"summary\"", "\"in_flight\":"),
];

/// True when a line is one of such a trace.
pub(crate) fn is_line(line: &str) -> bool {
    line.trim_start().starts_with("{\"")
        && KINDS.iter().any(|(kind, beside)| line.contains(kind) && line.contains(beside))
}

/// Reads such lines; others are passed over. A line that is cut off is none.
pub(crate) fn parse(text: &str) -> Parsed<Strace> {
    let mut parsed = Parsed::clean(Strace::default());
    let mut reader = Reader::default();
    for (number, line) in numbered(text).filter(|(_, line)| is_line(line)) {
        match serde_json::from_str(line) {
            Ok(record) => reader.record(number, &record),
            Err(_) => parsed.complain(number, "a line of a trace that is cut off"),
        }
        if reader.strace.calls.len() >= CALLS_LIMIT {
            parsed.complain(number, "the calls after this are not read");
            break;
        }
    }
    parsed.value = reader.strace;
    parsed
}

#[derive(Default)]
struct Reader {
    strace: Strace,
    /// Where in the list the call of each number is.
    places: std::collections::HashMap<u64, usize>,
}

impl Reader {
    fn record(&mut self, line: u32, record: &Value) {
        self.strace.lines += 1;
        let text = |key: &str| record[key].as_str();
        match text("record") {
            Some("enter") => self.enter(line, record),
            Some("return") => {
                if let Some(call) = self.call(record) {
                    call.seconds = record["ms"].as_f64().map(|ms| ms / 1000.0);
                    call.status = record["status_code"].as_u64().and_then(number);
                    call.injected = record["injected"].as_bool().unwrap_or(false);
                    call.end = end(record);
                }
            }
            Some("unreturned") => {
                if let Some(call) = self.call(record) {
                    call.seconds = record["ms"].as_f64().map(|ms| ms / 1000.0);
                    call.injected = record["why"] == "held";
                }
            }
            Some("library") => {
                let is_cuda = text("path").is_some_and(|path| path.contains("/libcuda.so"));
                self.strace.loads_cuda |= is_cuda;
            }
            Some("summary") => {
                let signal = (record["ended"] != "exited")
                    .then(|| text("ended").unwrap_or("unknown").to_owned());
                self.strace.ends.push((line, None, signal));
            }
            _ => {}
        }
    }

    fn call(&mut self, record: &Value) -> Option<&mut Traced> {
        let place = *self.places.get(&record["n"].as_u64()?)?;
        self.strace.calls.get_mut(place)
    }

    fn enter(&mut self, line: u32, record: &Value) {
        let (Some(name), Some(node)) = (record["call"].as_str(), record["node"].as_str()) else {
            return;
        };
        let Some(node) = Node::of(node) else { return };
        let asked = record["request"].as_u64().and_then(number).map(|request| {
            let asked = driver_call::asked(&node, request, &[], &mut |_, _| None);
            told(asked, name, record)
        });
        if let Some(number) = record["n"].as_u64() {
            self.places.insert(number, self.strace.calls.len());
        }
        let other = ["close", "mmap"].into_iter().find(|other| *other == name);
        self.strace.calls.push(Traced {
            line,
            thread: record["tid"].as_u64().and_then(number),
            node,
            asked,
            other,
            address: None,
            end: End::InFlight,
            seconds: None,
            status: None,
            interposer: record["interposer"].as_str().map(str::to_owned),
            injected: false,
        });
    }
}

/// What the parameters told when the trace was made.
fn told(asked: Asked, name: &str, record: &Value) -> Asked {
    let half = |key: &str| record[key].as_u64().and_then(number);
    let object = half("object").map(|object| {
        if name.starts_with("RM_ALLOC") { Object::Class(object) } else { Object::Control(object) }
    });
    // What another request carried has the name of what was carried.
    let carried =
        object.and_then(|_| name.split_once(' ')).map(|(verb, _)| format!("NV_ESC_{verb}"));
    Asked {
        request: carried.unwrap_or(asked.request),
        object,
        handles: half("client").zip(half("handle")),
        gpu: record["gpu"].as_str().map(str::to_owned),
        ..asked
    }
}

fn end(record: &Value) -> End {
    if let Some(name) = record["errno"].as_str() {
        return Errno::from_name(name).map_or_else(|| End::FailedAs(name.to_owned()), End::Failed);
    }
    End::Returned(record["returned"].as_i64().unwrap_or(0))
}

fn number(value: u64) -> Option<u32> {
    u32::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"record":"start","schema":"gpudx/trace/1","pid":7}
{"record":"library","pid":7,"path":"/usr/lib/libcuda.so.580.159.04"}
{"record":"enter","n":1,"tid":7,"call":"open","node":"/dev/nvidiactl"}
{"record":"return","n":1,"tid":7,"call":"open","node":"/dev/nvidiactl","ms":0.01,"returned":3}
{"record":"enter","n":2,"tid":7,"call":"RM_CONTROL X","node":"/dev/nvidiactl","request":3223340586,"object":532,"client":1,"handle":2}
{"record":"return","n":2,"tid":7,"ms":1.5,"returned":0,"status":"NV_ERR_NO_MEMORY","status_code":81}
{"record":"enter","n":3,"tid":7,"call":"UVM_REGISTER_GPU","node":"/dev/nvidia-uvm","request":37,"gpu":"GPU-1"}
{"record":"unreturned","n":3,"ms":2000.0,"why":"trace-ended"}
"#;

    #[test]
    fn calls_are_read_with_their_answers() {
        let strace = parse(TRACE).value;
        assert!(strace.loads_cuda);
        let words: Vec<String> = strace.calls.iter().map(Traced::words).collect();
        let control = "RM_CONTROL NV0000_CTRL_CMD_GPU_GET_PROBED_IDS";
        assert_eq!(words, ["open", control, "UVM_REGISTER_GPU"]);
        assert_eq!(strace.calls[1].status, Some(81));
        assert_eq!(strace.calls[2].end, End::InFlight);
        assert_eq!(strace.calls[2].seconds, Some(2.0));
        for length in 0..TRACE.len() {
            parse(&TRACE[..length]);
        }
    }

    #[test]
    fn other_json_is_not_a_trace() {
        for line in ["{\"record\":\"call\"}", "{}", "x \"record\":\"enter\"", ""] {
            assert!(!is_line(line), "{line}");
        }
        assert!(is_line(TRACE.lines().next().unwrap()));
    }
}
