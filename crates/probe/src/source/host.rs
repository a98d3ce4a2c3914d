//! The running machine, or the files of another one below a root.
//!
//! First what can be read without asking the driver, with a snapshot of the device nodes, which
//! driver libraries may change; then, as soon as that is in, the probes that ask the driver, side
//! by side. All of it in children: this process reads nothing of the driver and loads nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use facts::Layer;
use facts::raw::{ItemName, RawItem, RawSet};
use facts::wire::{Outcome, Record};

use super::plan::{
    self, ACTIVE, ACTIVE_LIMIT, BESIDE, CALM_LIMIT, CUINIT, GATES, STUCK, Trial, is_asked_for,
};
use crate::supervise::{ChildSpec, Finished, Supervisor, Waiting};

/// How often the caller is told who is waited for.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Time after which the driver is asked even though a reading of files has not come back. The
/// probes that ask it run under guard, so nothing is lost but the order.
const GATE_PATIENCE: Duration = Duration::from_millis(500);
/// Taken off the deadline, so that giving up on a child that cannot be killed (0.4 s) and telling
/// the verdict end within half a second after it.
pub(super) const DEADLINE_MARGIN: Duration = Duration::from_millis(100);
/// Kept for reading the kernel log once more after a hang; killing and reading take 0.15 s.
const LOG_RESERVE: Duration = Duration::from_millis(250);
/// How long a probe must have run before it counts as hanging, and how much of its time is left
/// when tasks that do not get on are looked for: two looks take 0.25 s, where tasks run up to a
/// second, and scanning a large machine a quarter of one.
const HANG_SIGN: Duration = Duration::from_millis(700);
const STUCK_RESERVE: Duration = Duration::from_millis(1500);
/// Name under which is told what was not run, and why.
const PLAN: &str = "plan";
/// What this process reads itself when the system would not start a child: its own limits, who it
/// is, and whether the kernel knows the driver. These are the kernel's own files, which never wait
/// for a driver.
const OWN: [&str; 3] = ["/proc/self/limits", "/proc/self/status", "/proc/devices"];
/// The probe that is repeated at the end, since a failing driver writes to the log.
const KERNEL_LOG: &str = "kernel-log";

/// What to collect from a machine.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Root of another machine's files. Then only files are read and nothing is asked.
    pub root: Option<PathBuf>,
    /// Time for everything; the collection ends at most 0.4 s later.
    pub deadline: Duration,
    /// How often cuInit is tried when it does not succeed; 0 leaves it out.
    pub trials: u32,
    /// Go beyond cuInit: context, memory, a kernel.
    pub context: bool,
    /// Look for tasks of the machine that do not get on, whether or not a probe hangs.
    pub stuck: bool,
    /// Experiments may follow: further trials after a hang leave them time.
    pub experiments: bool,
    /// Only what tells of these layers; all when empty.
    pub layers: Vec<Layer>,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            root: None,
            deadline: Duration::from_secs(20),
            trials: 3,
            context: false,
            stuck: false,
            experiments: false,
            layers: Vec::new(),
        }
    }
}

/// Collects from the machine. `progress` is told about every 0.1 s who is still waited for, and at
/// the end that nobody is.
pub fn collect_host(options: &HostOptions, progress: &mut dyn FnMut(&[Waiting])) -> RawSet {
    let mut collection = Collection::new(options);
    collection.start_calm();
    collection.run(progress)
}

/// Collects what surrounds a program that is being looked at otherwise: what can be read without
/// asking the driver. The set is no whole one, so that what is missing in it says nothing.
pub fn collect_surroundings(deadline: Duration) -> RawSet {
    let options = HostOptions { deadline, ..HostOptions::default() };
    let mut collection = Collection::new(&options);
    // Past the stage at which the driver is asked.
    collection.stage = Stage::LogAgain;
    collection.start_calm();
    let mut set = collection.run(&mut |_| {});
    set.live = false;
    set
}

/// Runs cuInit once more, as trial number `trial`, and goes on to a context, memory and a kernel:
/// what a collection without [`HostOptions::context`] leaves out.
pub fn collect_context(
    options: &HostOptions,
    trial: u32,
    progress: &mut dyn FnMut(&[Waiting]),
) -> RawSet {
    let options = HostOptions { context: true, trials: trial, ..options.clone() };
    let mut collection = Collection::new(&options);
    collection.stage = Stage::Driver;
    collection.trials_done = trial.saturating_sub(1);
    // Two pairs of looks at one task would be taken for one.
    collection.stuck_looks.for_hang = options.stuck;
    let limit = collection.left().min(ACTIVE_LIMIT);
    collection.start(CUINIT, trial, limit);
    collection.run(progress)
}

/// A file of the kernel's own, if it can be read.
fn own(path: &str) -> Option<RawItem> {
    let bytes = std::fs::read(path).ok()?;
    Some(RawItem::new(ItemName::File(path.to_owned()), bytes))
}

impl Collection<'_> {
    /// Goes on until nobody is waited for.
    fn run(mut self, progress: &mut dyn FnMut(&[Waiting])) -> RawSet {
        while !self.supervisor.is_idle() {
            let waiting: Vec<Waiting> = self.supervisor.waiting().collect();
            progress(&waiting);
            if let Some(finished) = self.supervisor.next_finished(TICK) {
                self.take(finished);
            }
            self.go_on();
        }
        progress(&[]);
        self.into_set()
    }
}

/// How far a collection has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Files are read.
    Files,
    /// The driver is asked, or it was found that there is none.
    Driver,
    /// The kernel log is read once more.
    LogAgain,
}

/// The looks for tasks that do not get on.
#[derive(Default)]
struct StuckLooks {
    count: u32,
    /// Whether there was one because a probe hangs.
    for_hang: bool,
}

struct Collection<'a> {
    options: &'a HostOptions,
    supervisor: Supervisor,
    started: Instant,
    deadline: Instant,
    /// Gates that are not in yet.
    gates: Vec<&'static str>,
    stage: Stage,
    shows_nvidia: bool,
    trials_done: u32,
    /// Whether any trial so far failed or hung.
    a_trial_failed: bool,
    trouble: bool,
    stuck_looks: StuckLooks,
    finished: Vec<Finished>,
    notes: Vec<String>,
}

impl<'a> Collection<'a> {
    fn new(options: &'a HostOptions) -> Collection<'a> {
        let started = Instant::now();
        let margin = DEADLINE_MARGIN.min(options.deadline / 10);
        let deadline = started + options.deadline.saturating_sub(margin);
        Collection {
            options,
            supervisor: Supervisor::new(deadline),
            started,
            deadline,
            gates: Vec::new(),
            stage: Stage::Files,
            shows_nvidia: false,
            trials_done: 0,
            a_trial_failed: false,
            trouble: false,
            stuck_looks: StuckLooks::default(),
            finished: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The machine's own root, or none of it.
    fn is_live(&self) -> bool {
        self.options.root.as_deref().is_none_or(|root| root == Path::new("/"))
    }

    fn start_calm(&mut self) {
        // Policy and environment are those of this process, which say nothing of another machine.
        let own = ["sandbox", "process"];
        for probe in GATES.into_iter().chain(BESIDE) {
            let fits = self.is_live() || !own.contains(&probe);
            if fits && self.start(probe, 1, CALM_LIMIT) && GATES.contains(&probe) {
                self.gates.push(probe);
            }
        }
        if self.options.stuck && self.is_live() {
            self.look_for_stuck();
        }
    }

    /// Looks for tasks of the machine that do not get on: when that was asked for, and once when a
    /// probe is about to be given up, while what it waits for can still be seen.
    fn look_for_stuck(&mut self) {
        self.stuck_looks.count += 1;
        self.start(STUCK, self.stuck_looks.count, CALM_LIMIT);
    }

    fn someone_hangs(&self) -> bool {
        self.supervisor.waiting().any(|waiting| {
            let left = waiting.limit.saturating_sub(waiting.elapsed);
            waiting.probe != STUCK && waiting.elapsed >= HANG_SIGN && left <= STUCK_RESERVE
        })
    }

    /// Starts a probe if its layers were asked for.
    fn start(&mut self, probe: &str, trial: u32, limit: Duration) -> bool {
        if !is_asked_for(probe, &self.options.layers) {
            return false;
        }
        let mut spec = ChildSpec::probe(probe, trial, limit);
        if let (Some(root), false) = (&self.options.root, self.is_live()) {
            spec = spec.with_argument("--root").with_argument(root);
        }
        if probe == CUINIT {
            // Compiling the embedded kernel would leave a cache in the user's home.
            spec.environment.push(("CUDA_CACHE_DISABLE".into(), "1".into()));
            if self.options.context {
                spec = spec.with_argument("--context");
            }
        }
        self.supervisor.start(spec);
        true
    }

    fn take(&mut self, mut finished: Finished) {
        if finished.probe == CUINIT && finished.trial > 1 {
            // What a trial maps into its process is the same each time and was told by the first.
            finished.items.retain(|item| matches!(item.name, ItemName::Probe { .. }));
        }
        self.gates.retain(|gate| *gate != finished.probe);
        self.shows_nvidia |= finished.items.iter().any(plan::shows_nvidia);
        if finished.probe == CUINIT {
            self.take_trial(&finished);
        } else if ACTIVE.contains(&finished.probe.as_str()) {
            self.trouble |= finished.end.outcome != Outcome::Returned;
        }
        if [KERNEL_LOG, STUCK].contains(&finished.probe.as_str()) && finished.trial > 1 {
            if finished.end.outcome != Outcome::Returned {
                return;
            }
            self.finished.retain(|earlier| earlier.probe != finished.probe);
        }
        self.finished.push(finished);
    }

    /// Time that the driver may still take.
    fn left(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        left.saturating_sub(LOG_RESERVE)
    }

    fn take_trial(&mut self, finished: &Finished) {
        self.trials_done += 1;
        let mut verdict = plan::judge(finished);
        if verdict == Trial::Settled && self.a_trial_failed {
            // It works sometimes: how often is the finding, so that the others are made as well.
            verdict = Trial::Failed;
        }
        self.a_trial_failed |= verdict != Trial::Settled;
        self.trouble |= verdict != Trial::Settled;
        let mut left = self.left();
        if self.options.experiments {
            let (done, wanted) = (self.trials_done, self.options.trials);
            left -= plan::kept_for_experiments(verdict, done, wanted, left);
        }
        let next = plan::next_trial(verdict, self.trials_done, self.options.trials, left);
        if let Some(limit) = next {
            self.start(CUINIT, self.trials_done + 1, limit);
        }
    }

    /// Asks the driver as soon as the gates are in, and reads the log again at the end of trouble.
    fn go_on(&mut self) {
        let patience_is_over = self.started.elapsed() >= GATE_PATIENCE;
        let files_are_in = self.gates.is_empty() || patience_is_over;
        if self.stage == Stage::Files && self.is_live() && files_are_in {
            self.stage = Stage::Driver;
            if self.shows_nvidia || !self.gates.is_empty() {
                self.ask_driver();
            } else {
                self.notes
                    .push("nothing of NVIDIA's was found, so no library was asked".to_owned());
            }
        }
        if self.is_live() && !self.stuck_looks.for_hang && self.someone_hangs() {
            self.stuck_looks.for_hang = true;
            self.look_for_stuck();
        }
        if self.stage == Stage::Driver && self.trouble && self.supervisor.is_idle() {
            self.stage = Stage::LogAgain;
            self.start(KERNEL_LOG, 2, CALM_LIMIT);
        }
    }

    fn ask_driver(&mut self) {
        let limit = self.left().min(ACTIVE_LIMIT);
        // The slowest first: it decides how long everything takes.
        if self.options.trials > 0 {
            self.start(CUINIT, 1, plan::first_trial(self.options.trials, self.left()));
        }
        for probe in ACTIVE {
            self.start(probe, 1, limit);
        }
    }

    fn into_set(self) -> RawSet {
        let mut set = RawSet::new();
        set.live = self.is_live();
        let kept_from_starting = |finished: &Finished| {
            finished.end.outcome == Outcome::NotStarted && finished.end.code.is_some()
        };
        if set.live && self.finished.iter().any(kept_from_starting) {
            OWN.iter().filter_map(|path| own(path)).for_each(|item| set.push(item));
        }
        for item in self.finished.into_iter().flat_map(|finished| finished.items) {
            set.push(item);
        }
        let mut lines = Vec::new();
        for value in self.notes {
            let note = Record::Note { key: "skipped".to_owned(), value };
            lines.extend(serde_json::to_vec(&note).unwrap_or_default());
            lines.push(b'\n');
        }
        if !lines.is_empty() {
            let name = ItemName::Probe { name: PLAN.to_owned(), trial: 1 };
            set.push(RawItem::new(name, lines));
        }
        set
    }
}
