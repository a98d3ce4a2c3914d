//! Traces by strace of real programs on a machine with driver 580.159.04, all lines about the
//! driver: each call has its name, and none is taken for a hang.

use facts::parse::strace::{End, Strace, parse};
use facts::raw::{ItemName, RawItem, RawSet};

const RECORDINGS: [(&str, &str, usize); 6] = [
    ("cuinit-compat", include_str!("../data/strace/cuinit-compat.strace"), 5),
    ("cuinit-healthy", include_str!("../data/strace/cuinit-healthy.strace"), 196),
    ("cuinit-ulimitv", include_str!("../data/strace/cuinit-ulimitv.strace"), 198),
    ("nvidia-smi-L", include_str!("../data/strace/nvidia-smi-L.strace"), 40),
    ("nvidia-smi-q", include_str!("../data/strace/nvidia-smi-q.strace"), 188),
    ("nvml-init", include_str!("../data/strace/nvml-init.strace"), 34),
];

fn ioctls(strace: &Strace) -> usize {
    strace.calls.iter().filter(|call| call.asked.is_some()).count()
}

#[test]
fn every_call_of_the_recordings_has_its_name() {
    for (name, text, expected) in RECORDINGS {
        let parsed = parse(text);
        assert!(parsed.complaints.is_empty(), "{name}: {:?}", parsed.complaints);
        let strace = parsed.value;
        assert_eq!(strace.lines as usize, text.lines().count(), "{name}");
        assert_eq!(ioctls(&strace), expected, "{name}");
        let unknown: Vec<_> = strace.calls.iter().filter(|call| !call.known()).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        assert!(strace.calls.iter().all(|call| call.end != End::InFlight), "{name}");
        assert!(strace.calls.iter().all(|call| call.seconds.is_some()), "{name}");
    }
}

#[test]
fn a_healthy_start_registers_each_gpu() {
    let strace = parse(RECORDINGS[1].1).value;
    assert!(strace.loads_cuda);
    let registered = strace.calls.iter().filter(|call| call.words() == "UVM_REGISTER_GPU");
    let seconds: f64 = registered.clone().filter_map(|call| call.seconds).sum();
    assert_eq!(registered.count(), 2);
    let all: f64 = strace.calls.iter().filter_map(|call| call.seconds).sum();
    assert!(seconds > all / 2.0, "{seconds} of {all}: most of the time goes there");
}

/// The same as facts: where the time of a start went, and how long each GPU took.
#[test]
fn the_time_of_a_start_is_told_by_call() {
    let item = RawItem::new(ItemName::Text("trace".to_owned()), RECORDINGS[1].1.as_bytes());
    let facts = facts::extract(&RawSet::from_iter([item]));
    let first = &facts.cuda.call_times[0].value;
    assert_eq!((first.call.as_str(), first.seconds.len()), ("UVM_REGISTER_GPU", 2));
    assert!(first.seconds.iter().all(|seconds| (0.15..0.25).contains(seconds)), "{first:?}");
    assert!(facts.cuda.call_times.iter().any(|seen| seen.value.call == "open /dev/nvidia0"));
}

/// Without `-y` the descriptors have to be followed.
#[test]
fn the_same_is_read_without_the_links_of_descriptors() {
    for (name, text, expected) in RECORDINGS {
        let plain: String = text.lines().map(|line| without_links(line) + "\n").collect();
        let strace = parse(&plain).value;
        assert_eq!(ioctls(&strace), expected, "{name}");
        assert!(strace.calls.iter().all(facts::parse::strace::Traced::known), "{name}");
    }
}

/// Takes `</dev/nvidiactl>` off the descriptors, and leaves the times.
fn without_links(line: &str) -> String {
    let mut parts = line.split("</");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out += part.split_once('>').map_or(part, |(_, rest)| rest);
    }
    out
}

#[test]
fn none_of_them_is_a_hang() {
    for (name, text, _) in RECORDINGS {
        let item = RawItem::new(ItemName::Text(name.to_owned()), text.as_bytes());
        let facts = facts::extract(&RawSet::from_iter([item]));
        assert!(facts.cuda.trials.is_empty(), "{name}: {:?}", facts.cuda.trials);
        assert!(facts.probes.is_empty() && facts.cuda.uvm_failures.is_empty(), "{name}");
    }
}

/// Cut anywhere, a trace never makes the reader panic, and a cut within a call of the driver's
/// that had not returned leaves that call in flight.
#[test]
fn a_trace_that_is_cut_off() {
    let text = RECORDINGS[1].1;
    let at = text.find("_IOC(_IOC_NONE, 0, 0x25, 0)").unwrap();
    let cut = &text[..at + "_IOC(_IOC_NONE, 0, 0x25, 0), 0x7ff".len()];
    let item = RawItem::new(ItemName::Text("cut".to_owned()), cut.as_bytes());
    let facts = facts::extract(&RawSet::from_iter([item]));
    let stuck = facts.probes.first().and_then(|run| run.stuck.clone()).unwrap();
    assert_eq!(stuck.call.as_deref(), Some("ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm"));
    for length in (0..text.len()).step_by(97) {
        parse(&text[..length]);
    }
}
