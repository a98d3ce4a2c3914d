//! One experiment: cuInit once more in a child, with one thing changed.

use std::path::Path;
use std::time::{Duration, Instant};

use facts::model::experiment::Change;
use facts::raw::{ItemName, RawItem, RawSet};
use facts::wire::{EXPERIMENT, End, Outcome, Record, note};

use super::host::{DEADLINE_MARGIN, TICK};
use super::plan;
use crate::supervise::{ChildSpec, Supervisor, Waiting};

/// Variables by which libraries come into a process that does not ask for them: ld.so(8), and the
/// injection of the CUDA driver and of NVTX.
const HOOKS: [&str; 6] = [
    "LD_PRELOAD",
    "LD_AUDIT",
    "CUDA_INJECTION64_PATH",
    "CUDA_INJECTION32_PATH",
    "NVTX_INJECTION64_PATH",
    "NVTX_INJECTION32_PATH",
];
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
const MPS_PIPE: &str = "CUDA_MPS_PIPE_DIRECTORY";
/// Where MPS clients look when the variable is not set.
const MPS_USUAL: &str = "/tmp/nvidia-mps";
/// A folder that is not there, by agreement of distributions.
const NOWHERE: &str = "/nonexistent";

/// What is to be run.
#[derive(Debug, Clone)]
pub struct ExperimentOrder {
    /// Counts from 1 over all experiments of a check.
    pub number: u32,
    /// The one thing that is changed.
    pub change: Change,
    /// Why it is worth making.
    pub why: String,
    /// Go beyond cuInit, since what fails comes after it.
    pub context: bool,
}

/// Time for the next of so many experiments, of what is left in all; `None` when it is too little.
/// `usual` is how long the run without any change takes to fail, `None` when it hangs.
pub fn experiment_time(left: Duration, to_come: u32, usual: Option<Duration>) -> Option<Duration> {
    plan::experiment(left.saturating_sub(DEADLINE_MARGIN), to_come, usual)
}

/// Makes one experiment, within `limit`; a child that cannot be killed is given up 0.4 s later.
/// What comes of it is one item, the record of the run.
pub fn collect_experiment(
    order: &ExperimentOrder,
    limit: Duration,
    progress: &mut dyn FnMut(&[Waiting]),
) -> RawSet {
    let mut supervisor = Supervisor::new(Instant::now() + limit);
    supervisor.start(child(order, limit));
    let mut set = RawSet::new();
    while !supervisor.is_idle() {
        progress(&supervisor.waiting().collect::<Vec<_>>());
        if let Some(finished) = supervisor.next_finished(TICK) {
            // What else it reads was told by the trials, and is not how the machine is.
            let own = |item: &RawItem| matches!(item.name, ItemName::Probe { .. });
            finished.items.into_iter().filter(own).for_each(|item| set.push(item));
        }
    }
    progress(&[]);
    set
}

/// The record of an experiment that was listed and is not made, with the reason.
pub fn experiment_not_made(order: &ExperimentOrder, reason: &str) -> RawSet {
    let mut lines = Vec::new();
    let mut notes = notes(order);
    notes.push((note::NOT_MADE.to_owned(), reason.to_owned()));
    let end = End {
        outcome: Outcome::NotStarted,
        code: None,
        seconds: 0.0,
        pid: None,
        stuck: None,
        notes: Vec::new(),
        traced: false,
    };
    let notes = notes.into_iter().map(|(key, value)| Record::Note { key, value });
    for record in notes.chain([Record::End(Box::new(end))]) {
        lines.extend(serde_json::to_vec(&record).unwrap_or_default());
        lines.push(b'\n');
    }
    let name = ItemName::Probe { name: EXPERIMENT.to_owned(), trial: order.number };
    RawSet::from_iter([RawItem::new(name, lines)])
}

fn notes(order: &ExperimentOrder) -> Vec<(String, String)> {
    vec![
        (note::CHANGE.to_owned(), order.change.to_string()),
        (note::WHY.to_owned(), order.why.clone()),
    ]
}

/// The child: the probe of cuInit with the change. Variables are changed here, since they must be
/// before it starts; the rest it changes itself.
fn child(order: &ExperimentOrder, limit: Duration) -> ChildSpec {
    let mut spec = ChildSpec::probe(plan::CUINIT, order.number, limit);
    EXPERIMENT.clone_into(&mut spec.probe);
    spec.notes = notes(order);
    spec.traced = order.change == Change::Traced;
    // Compiling the embedded kernel would leave a cache in the user's home.
    spec.environment.push(("CUDA_CACHE_DISABLE".into(), "1".into()));
    if order.context {
        spec = spec.with_argument("--context");
    }
    if order.change != Change::Nothing {
        spec = spec.with_argument("--change").with_argument(order.change.to_string());
    }
    match &order.change {
        Change::WithoutHooks => spec.without.extend(HOOKS.map(Into::into)),
        Change::AllGpus => spec.without.push(VISIBLE.into()),
        Change::WithoutMps if Path::new(MPS_USUAL).exists() => {
            spec.environment.push((MPS_PIPE.into(), NOWHERE.into()));
        }
        Change::WithoutMps => spec.without.push(MPS_PIPE.into()),
        Change::OneGpu(uuid) => spec.environment.push((VISIBLE.into(), uuid.into())),
        Change::ModuleLoading(value) => {
            spec.environment.push(("CUDA_MODULE_LOADING".into(), value.into()));
        }
        Change::Nothing
        | Change::Library(_)
        | Change::Limit(..)
        | Change::User(_)
        | Change::Traced => {}
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(change: Change) -> ExperimentOrder {
        ExperimentOrder { number: 3, change, why: "it is worth it".to_owned(), context: false }
    }

    #[test]
    fn an_experiment_that_is_not_made_is_read_back_with_its_reason() {
        let change = Change::OneGpu("GPU-1".to_owned());
        let mut set = experiment_not_made(&order(change.clone()), "no time was left");
        set.live = true;
        let facts = facts::extract(&set);
        let [experiment] = facts.experiments.as_slice() else { panic!("one experiment") };
        assert_eq!((experiment.number, &experiment.change), (3, &change));
        assert_eq!(experiment.hindered.as_deref(), Some("no time was left"));
        assert_eq!(experiment.run, None);
        assert_eq!(experiment.why, "it is worth it");
    }

    #[test]
    fn variables_are_changed_before_the_child_starts() {
        let spec = child(&order(Change::WithoutHooks), Duration::from_secs(1));
        assert!(spec.without.contains(&"LD_PRELOAD".into()));
        let spec = child(&order(Change::OneGpu("GPU-1".to_owned())), Duration::from_secs(1));
        assert!(spec.environment.contains(&(VISIBLE.into(), "GPU-1".into())));
        assert!(spec.arguments.ends_with(&["--change".into(), "one-gpu GPU-1".into()]));
        assert!(child(&order(Change::Traced), Duration::from_secs(1)).traced);
    }
}
