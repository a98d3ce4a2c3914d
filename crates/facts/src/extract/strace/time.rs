//! Where the time of a start went, as a trace shows it.

use std::collections::BTreeMap;

use crate::model::cuda::CallTime;
use crate::model::{Facts, Note};
use crate::observed::{Origin, Seen};
use crate::parse::strace::{Strace, Traced};

/// With less time in the driver's calls there is nothing to tell: registering a GPU takes 0.2 s
/// (H200, driver 580).
const WORTH_TELLING_SECONDS: f64 = 2.0;
/// Most calls that are named.
const NAMES_SHOWN: usize = 3;

/// The calls up to the registration of the last GPU are those of cuInit. What a program does
/// afterwards may wait for a kernel to end, and says nothing of the start.
pub(super) fn apply(strace: &Strace, origin: &dyn Fn(u32) -> Origin, facts: &mut Facts) {
    let is_registration = |call: &Traced| call.words() == "UVM_REGISTER_GPU";
    let Some(last) = strace.calls.iter().rposition(is_registration) else { return };
    let start = strace.calls.get(..=last).unwrap_or_default();
    by_kind(start, origin, facts);
    // A call that did not return is a hang, and told as one.
    let timed = start.iter().filter_map(|call| Some((call, call.seconds?)));
    let all: f64 = timed.clone().map(|(_, seconds)| seconds).sum();
    let longest = timed.clone().max_by(|(_, one), (_, other)| one.total_cmp(other));
    let Some((longest, _)) = longest.filter(|_| all >= WORTH_TELLING_SECONDS) else { return };
    let mut names: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for (call, seconds) in timed {
        let gpu = call.asked.as_ref().and_then(|asked| asked.gpu.as_ref());
        let name = gpu.map_or_else(|| call.words(), |gpu| format!("{} of {gpu}", call.words()));
        let sum = names.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + seconds);
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by(|(_, (_, one)), (_, (_, other))| other.total_cmp(one));
    let parts = names.iter().take(NAMES_SHOWN).map(|(name, (count, seconds))| {
        let share = 100.0 * seconds / all;
        format!("{name} {seconds:.1} s ({share:.0} %, {count} calls)")
    });
    let parts: Vec<String> = parts.collect();
    facts.notes.push(Note {
        text: format!(
            "up to the registration of the last GPU the driver's calls took {all:.1} s: {}",
            parts.join(", ")
        ),
        origin: origin(longest.line),
    });
    let slow = ("cuInit".to_owned(), Some(all));
    facts.process.slow_starts.push(Seen::new(slow, origin(longest.line)));
}

/// Most kinds of calls whose time is kept.
const KINDS_LIMIT: usize = 12;

/// The time of each kind of call, the longest first. Opening a GPU's node wakes that GPU, so the
/// nodes are told apart.
fn by_kind(start: &[Traced], origin: &dyn Fn(u32) -> Origin, facts: &mut Facts) {
    if !facts.cuda.call_times.is_empty() {
        return;
    }
    let mut kinds: Vec<(CallTime, u32)> = Vec::new();
    for call in start {
        let Some(seconds) = call.seconds else { continue };
        let name = match call.asked {
            Some(_) => call.words(),
            None => format!("open {}", call.node.path),
        };
        match kinds.iter_mut().find(|(kind, _)| kind.call == name) {
            Some((kind, _)) => kind.seconds.push(seconds),
            None => kinds.push((CallTime { call: name, seconds: vec![seconds] }, call.line)),
        }
    }
    kinds.sort_by(|(one, _), (other, _)| other.total_s().total_cmp(&one.total_s()));
    kinds.truncate(KINDS_LIMIT);
    facts.cuda.call_times =
        kinds.into_iter().map(|(kind, line)| Seen::new(kind, origin(line))).collect();
}

#[cfg(test)]
mod tests {
    use crate::Facts;
    use crate::raw::{ItemName, RawItem, RawSet};

    fn read(seconds: [f64; 2]) -> Facts {
        let [one, two] = seconds;
        let text = format!(
            "openat(AT_FDCWD, \"/dev/nvidia-uvm\", O_RDWR) = 9 <0.1>\n\
             ioctl(9, 0x25, 0x7ffc) = 0 <{one}>\nioctl(9, 0x25, 0x7ffc) = 0 <{two}>\n\
             ioctl(9, 0x27, 0x7ffc) = 0 <99.0>\n"
        );
        let name = ItemName::Text("trace.txt".to_owned());
        crate::extract(&RawSet::from_iter([RawItem::new(name, text.as_bytes())]))
    }

    #[test]
    fn a_slow_start_is_told_with_its_shares() {
        let facts = read([8.9, 6.0]);
        let slow = &facts.process.slow_starts[0];
        assert_eq!((slow.value.0.as_str(), slow.origin.line), ("cuInit", 2));
        assert!((slow.value.1.unwrap() - 15.0).abs() < 1e-6, "{slow:?}");
        let told = "UVM_REGISTER_GPU 14.9 s (99 %, 2 calls)";
        assert!(facts.notes.iter().any(|note| note.text.contains(told)), "{:?}", facts.notes);
    }

    #[test]
    fn a_usual_start_is_nothing_to_tell() {
        let facts = read([0.2, 0.2]);
        assert!(facts.process.slow_starts.is_empty() && facts.notes.is_empty());
    }
}
