//! A start of CUDA that works and takes too long: how long it should take here, and where the time
//! went as far as a trace shows it.

use facts::model::cuda::{Stage, TrialResult};
use facts::{Facts, Origin};

use super::derive::push;
use super::{Symptom, SymptomId};

/// What cuInit takes apart from the GPUs, and for each of them: UVM_REGISTER_GPU takes 0.18 to
/// 0.21 s, one GPU after the other (measured: driver 580, H200).
const BASE_S: f64 = 0.3;
const EACH_GPU_S: f64 = 0.21;
/// From where on a start is slow when the driver keeps the GPUs awake (persistence): a multiple of
/// that, with room for a busy machine.
const AWAKE_LIMIT_S: f64 = 5.0;
const AWAKE_LIMIT_EACH_S: f64 = 0.5;
/// The same where each GPU may have to be started first, which takes a second or two each.
const ASLEEP_LIMIT_S: f64 = 12.0;
const ASLEEP_LIMIT_EACH_S: f64 = 2.0;
/// GPUs that the second limit covers anyway.
const COVERED_GPUS: f64 = 4.0;
/// Kinds of calls whose shares are named.
const SHARES_SHOWN: usize = 3;

/// Adds the symptom for a trial of cuInit, or a traced start, that took too long.
pub(super) fn derive(facts: &Facts, found: &mut Vec<Symptom>) {
    let limit_s = limit_s(facts);
    let measured = facts.cuda.plain().find_map(|trial| {
        let seconds = trial.seconds.filter(|seconds| *seconds > limit_s)?;
        let returned = trial.result == TrialResult::Code(0) || trial.stage > Stage::Init;
        returned.then_some((trial.what.as_str(), seconds, &trial.origin))
    });
    let (what, seconds, origin) = match (measured, traced(facts)) {
        (Some(measured), _) => measured,
        (None, Some((seconds, origin))) if seconds > limit_s => {
            ("the driver calls of this start", seconds, origin)
        }
        (None, _) => return,
    };
    let summary = format!("{what} took {seconds:.1} s{}{}", expected(facts), shares(facts));
    push(found, SymptomId::CudaInitSlow, None, summary, origin);
}

/// The time in driver calls of a traced start.
fn traced(facts: &Facts) -> Option<(f64, &Origin)> {
    let first = facts.cuda.call_times.first()?;
    Some((facts.cuda.call_times.iter().map(|seen| seen.value.total_s()).sum(), &first.origin))
}

/// How many GPUs there are, by the best source.
fn gpus(facts: &Facts) -> Option<u32> {
    let listed = || Some(u32::try_from(facts.pci.gpus().count()).ok()?).filter(|count| *count > 0);
    let registered = || {
        let times = facts.cuda.call_times.iter();
        let mut times = times.filter(|seen| seen.value.call == "UVM_REGISTER_GPU");
        u32::try_from(times.next()?.value.seconds.len()).ok()
    };
    let counted = facts.cuda.count.value().or(facts.nvml.count.value()).copied();
    counted.filter(|count| *count > 0).or_else(registered).or_else(listed)
}

/// Whether the driver keeps the GPUs awake, where every one of them tells.
fn stay_awake(facts: &Facts) -> Option<bool> {
    let told = facts.nvml.gpus.iter().map(|gpu| gpu.value.persistence);
    told.reduce(|all, one| Some(all? && one?)).flatten()
}

fn limit_s(facts: &Facts) -> f64 {
    let gpus = f64::from(gpus(facts).unwrap_or(1));
    if stay_awake(facts) == Some(true) {
        AWAKE_LIMIT_S + AWAKE_LIMIT_EACH_S * gpus
    } else {
        ASLEEP_LIMIT_S + ASLEEP_LIMIT_EACH_S * (gpus - COVERED_GPUS).max(0.0)
    }
}

/// `; 2.0 s are usual for 8 GPUs, 0.2 s each one after the other`.
fn expected(facts: &Facts) -> String {
    let Some(count) = gpus(facts) else { return String::new() };
    let usual_s = BASE_S + EACH_GPU_S * f64::from(count);
    let gpus = if count == 1 { "1 GPU".to_owned() } else { format!("{count} GPUs") };
    let each = if count == 1 { "" } else { ", which are registered one after the other" };
    let awake = match stay_awake(facts) {
        Some(false) => "; persistence is off, so that the driver starts them anew",
        Some(true) | None => "",
    };
    format!("; {usual_s:.1} s are usual for {gpus}{each}{awake}")
}

/// `: open /dev/nvidia0 12.1 s (80 %), UVM_REGISTER_GPU 0.4 s (3 %)`.
fn shares(facts: &Facts) -> String {
    let Some((all, _)) = traced(facts).filter(|(all, _)| *all > 0.0) else { return String::new() };
    let largest = facts.cuda.call_times.iter().take(SHARES_SHOWN);
    let words: Vec<String> = largest
        .map(|seen| {
            let seconds = seen.value.total_s();
            let share = seconds / all * 100.0;
            format!("{} {seconds:.1} s ({share:.0} %)", seen.value.call)
        })
        .collect();
    format!(": {}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use facts::raw::{ItemName, RawItem, RawSet};

    use super::*;

    fn symptoms(items: Vec<RawItem>) -> Vec<String> {
        let set: RawSet = items.into_iter().collect();
        let mut found = Vec::new();
        derive(&facts::extract(&set), &mut found);
        found.into_iter().map(|symptom| symptom.summary).collect()
    }

    /// A trial of cuInit that took so long and counted so many GPUs.
    fn trial(seconds: f64, count: u32) -> RawItem {
        let name = ItemName::Probe { name: "cuinit".to_owned(), trial: 1 };
        let ms = seconds * 1000.0;
        let records = format!(
            "{{\"record\":\"call\",\"call\":\"load\",\"code\":0}}\n\
             {{\"record\":\"call\",\"call\":\"cuInit\",\"code\":0,\"ms\":{ms}}}\n\
             {{\"record\":\"call\",\"call\":\"cuDeviceGetCount\",\"code\":0,\"value\":\"{count}\"}}\n\
             {{\"record\":\"end\",\"outcome\":\"returned\",\"seconds\":{seconds}}}\n"
        );
        RawItem::new(name, records.into_bytes())
    }

    #[test]
    fn what_is_slow_depends_on_how_many_there_are() {
        assert!(symptoms(vec![trial(0.6, 2)]).is_empty());
        assert!(symptoms(vec![trial(11.0, 1)]).is_empty());
        assert!(symptoms(vec![trial(19.0, 8)]).is_empty());
        let slow = symptoms(vec![trial(14.0, 1)]);
        assert_eq!(slow, ["cuInit took 14.0 s; 0.5 s are usual for 1 GPU"]);
        let slow = symptoms(vec![trial(30.0, 8)]);
        assert!(slow[0].contains("2.0 s are usual for 8 GPUs"), "{slow:?}");
    }

    #[test]
    fn a_trace_tells_where_the_time_went() {
        let trace = |open: f64| {
            let text = format!(
                "9 openat(AT_FDCWD, \"/usr/lib/libcuda.so.1\", O_RDONLY) = 3 <0.000010>\n\
                 9 openat(AT_FDCWD, \"/dev/nvidia0\", O_RDWR) = 4</dev/nvidia0> <{open:.6}>\n\
                 9 ioctl(5</dev/nvidia-uvm>, _IOC(_IOC_NONE, 0, 0x25, 0), 0x7ffc) = 0 <0.200000>\n"
            );
            RawItem::new(ItemName::Text("trace".to_owned()), text.into_bytes())
        };
        assert!(symptoms(vec![trace(0.4)]).is_empty());
        let slow = symptoms(vec![trace(15.8)]);
        let expected = "the driver calls of this start took 16.0 s; 0.5 s are usual for 1 GPU: \
            open /dev/nvidia0 15.8 s (99 %), UVM_REGISTER_GPU 0.2 s (1 %)";
        assert_eq!(slow, [expected]);
    }
}
