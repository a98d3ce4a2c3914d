//! Questions about limits that several causes of the process ask.

use facts::model::ProbeRun;
use facts::model::process::{Lever, Limit};
use facts::wire::Outcome;
use facts::{Errno, Facts, Observed, Origin, Seen};

use crate::evidence::Strength::{Strong, Weak};
use crate::machine;
use crate::readings;
use crate::weigh::Weighing;

/// A size in the unit that people use for it.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

/// The lowest finite reading of a limit. Where a text speaks of a login shell and of a job, the
/// job is the one that fails.
pub(super) fn lowest(facts: &Facts, name: &str) -> Option<Seen<u64>> {
    let seen = facts.process.lowest_limit(name)?;
    Some(Seen::new(seen.value?, seen.origin))
}

/// Where every reading of a limit is at least this high, or unlimited: one of them.
pub(super) fn ample(facts: &Facts, name: &str, enough: u64) -> Option<Seen<Limit>> {
    let lowest = facts.process.lowest_limit(name)?;
    lowest.value.is_none_or(|value| value >= enough).then_some(lowest)
}

/// What came of a change that was tried: one that helped speaks for the cause, one in vain
/// against it. An experiment that changed nothing else decides.
pub(super) fn tried(
    facts: &Facts,
    fits: impl Fn(Lever) -> bool,
    helped: &str,
    in_vain: &str,
    weighing: &mut Weighing,
) {
    let Some((attempt, origin)) = facts.process.tried(fits) else { return };
    if attempt.helped && attempt.controlled {
        weighing.confirms(helped, origin);
    } else if attempt.helped {
        weighing.supports(Strong, helped, origin);
    } else if attempt.controlled {
        weighing.rules_out(in_vain, origin);
    } else {
        // A limit is often raised in a place that the process does not inherit from.
        weighing.objects(Weak, in_vain, origin);
    }
}

/// How many GPUs there are, as far as anything tells.
pub(super) fn gpus(facts: &Facts) -> u64 {
    let listed = [facts.nvml.gpus.len(), facts.module.gpus.len(), facts.pci.gpus().count()];
    let counted = facts.nvml.count.value().map_or(0, |count| u64::from(*count));
    listed
        .into_iter()
        .filter_map(|count| u64::try_from(count).ok())
        .chain([counted, 1])
        .max()
        .unwrap_or(1)
}

/// Where cuInit's failure (or NVML's) was seen that a lack of descriptors or threads gives: a code
/// of these.
pub(super) fn init_failed(facts: &Facts, codes: &[i64]) -> Option<(i64, Origin)> {
    let (code, trial) = readings::init_failure(facts)?;
    codes.contains(&code).then(|| (code, trial.origin.clone()))
}

/// Where the system would not start the probes, though the kernel knows the driver: what they would
/// have asked was never asked, and a program's own calls would meet the same limit.
pub(super) fn blind(facts: &Facts) -> Option<(&ProbeRun, Errno)> {
    let registered = facts.module.majors.values().any(Observed::is_seen);
    let asked = !facts.cuda.trials.is_empty() || !facts.nvml.count.is_unknown();
    let mut kept = facts.unchanged_runs().filter(|run| run.outcome == Outcome::NotStarted);
    let found = kept.find_map(|run| Some((run, Errno(run.code?))));
    found.filter(|_| registered && !asked)
}

/// True in a container that an engine starts, where limits are given on its command line.
pub(super) fn by_engine(facts: &Facts) -> bool {
    machine::in_container(facts) || facts.sandbox.started_with.is_seen()
}
