//! What is written. Consumers treat every field as optional and every enumeration as open.

use schemars::JsonSchema;
use serde::Serialize;

/// A differential diagnosis of one machine's NVIDIA stack.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "gpudx/report/1")]
pub struct ReportV1 {
    /// Always `gpudx/report/1`.
    pub schema: &'static str,
    /// The version of gpudx that wrote the report.
    pub gpudx: &'static str,
    /// What was read: `this machine`, or the input's name.
    pub input: String,
    /// True when gpudx looked at the machine itself.
    pub live: bool,
    /// State of the whole.
    pub state: State,
    /// The machine, as far as it is known.
    pub machine: Machine,
    /// What is wrong as a user meets it.
    pub symptoms: Vec<Symptom>,
    /// Causes in play, the best first.
    pub causes: Vec<Cause>,
    /// Tempting causes that were ruled out, with the observation that rules each out.
    pub ruled_out: Vec<RuledOut>,
    /// Causes that could not be judged.
    pub unknown: Vec<Unknown>,
    /// General causes that a more specific one replaces.
    pub explained_away: Vec<ExplainedAway>,
    /// The observations that would best separate what is left, the best first.
    pub next: Vec<Next>,
    /// One line a layer, bottom to top.
    pub layers: Vec<Layer>,
    /// Runs of cuInit that changed one thing each, in the order in which they were listed.
    pub experiments: Vec<Experiment>,
    /// Every run of every probe.
    pub probes: Vec<Probe>,
    /// Tasks of the machine that do not get on, those of probes aside.
    pub tasks: Vec<Task>,
    /// Remarks on the input.
    pub notes: Vec<Note>,
    /// Lines that name the driver and matched no known form.
    pub not_understood: Vec<Origin>,
}

/// State of the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// CUDA answers, and no symptom was seen.
    Healthy,
    /// A symptom was seen, and a cause is at least likely.
    Fault,
    /// A symptom without a likely cause, or too little could be seen.
    Undetermined,
    /// Nothing of NVIDIA's is here, and nothing asks for it.
    NoGpu,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Machine {
    /// Host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Kernel release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// The container that the process is in, when it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The hypervisor, when the machine is a guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// Models of GPUs and how many there are of each.
    pub gpus: Vec<GpuModel>,
}

/// A model of GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GpuModel {
    /// Product name without the maker's.
    pub name: String,
    /// How many there are.
    pub count: usize,
}

/// Where something was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Origin {
    /// The raw item: a path, `$ command`, `probe:NAME#TRIAL` or `text:NAME`.
    pub item: String,
    /// The file that the user handed over and that the item was cut from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// First line, from 1; left out for the whole item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// What stood there, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Seconds since the Unix epoch when it was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<u64>,
}

/// A piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Evidence {
    /// What was seen.
    pub statement: String,
    /// How much it says.
    pub strength: Strength,
    /// Where it was seen.
    pub origin: Origin,
}

/// How much a piece of evidence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// Fits, and fits many other causes as well.
    Weak,
    /// Expected under this cause and not under most others.
    Moderate,
    /// Hardly to be seen without this cause.
    Strong,
    /// It alone makes the cause certain, or impossible.
    Decisive,
}

/// A symptom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Symptom {
    /// Such as `cuda.init-hangs`.
    pub id: &'static str,
    /// The code that came with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// One line.
    pub summary: String,
    /// Where it was seen.
    pub origin: Origin,
    /// Ids of the causes that explain it, the best first; empty when nothing does.
    pub explained_by: Vec<&'static str>,
}

/// How certain a cause in play is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// An observation that only this cause makes.
    Confirmed,
    /// The working hypothesis.
    Likely,
    /// Some evidence, not enough to act on.
    Possible,
}

/// A cause in play.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cause {
    /// `layer.fault`, kept for ever.
    pub id: &'static str,
    /// How certain it is.
    pub verdict: Verdict,
    /// One sentence that names the fault.
    pub claim: &'static str,
    /// Evidence for it.
    #[serde(rename = "for")]
    pub support: Vec<Evidence>,
    /// Evidence against it.
    pub against: Vec<Evidence>,
    /// What puts it right.
    pub remedy: Remedy,
}

/// A remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Remedy {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What it costs.
    pub impact: Impact,
    /// What is stopped or lost, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stops: String,
    /// How to undo it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub undo: String,
    /// How to see that it worked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub verify: String,
    /// Tempting measures that will not help.
    pub will_not_help: Vec<String>,
}

/// A step of a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Step {
    /// Where to run it.
    #[serde(rename = "where")]
    pub place: Place,
    /// The command, or an instruction where there is none.
    pub run: String,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Where a step is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Where gpudx was run.
    Here,
    /// On the container's host.
    Host,
    /// Inside the container.
    Container,
    /// Where the container is started.
    Engine,
    /// On the hypervisor.
    Hypervisor,
    /// In the guest.
    Guest,
    /// In the program or its environment.
    Program,
    /// In the firmware setup, or by hand.
    Machine,
}

/// What a remedy costs, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Impact {
    /// Nothing is stopped.
    None,
    /// A process is restarted.
    RestartsProcess,
    /// A container is recreated.
    RecreatesContainer,
    /// A service is restarted.
    RestartsService,
    /// A kernel module is reloaded.
    ReloadsModule,
    /// The machine reboots.
    Reboots,
    /// The machine is switched off and on.
    PowerCycle,
    /// Hardware is touched.
    Hardware,
}

/// A cause that was ruled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuledOut {
    /// The cause.
    pub id: &'static str,
    /// What rules it out.
    pub evidence: Vec<Evidence>,
}

/// A cause that could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unknown {
    /// The cause.
    pub id: &'static str,
    /// The observations that would decide it.
    pub needs: Vec<&'static str>,
}

/// A general cause that a more specific one replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExplainedAway {
    /// The general cause.
    pub id: &'static str,
    /// The specific one.
    pub by: &'static str,
}

/// An observation worth making.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Next {
    /// What to observe, and with which command.
    pub observe: &'static str,
    /// The causes that it would tell apart.
    pub separates: Vec<&'static str>,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Layer {
    /// Its name, such as `cuda`.
    pub layer: &'static str,
    /// How it is.
    pub status: LayerStatus,
    /// One line on it.
    pub summary: String,
}

/// How a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerStatus {
    /// It was looked at and is as it should be.
    Ok,
    /// A symptom or a likely cause lies here.
    Fault,
    /// It could not be looked at.
    Unknown,
    /// A fault beneath keeps it from being judged.
    Blocked,
    /// It does not exist on this machine.
    NotApplicable,
}

/// A run of cuInit in a child that changes one thing against the run that fails.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Experiment {
    /// Its number; its run stands among the probes as trial of `experiment`.
    pub trial: u32,
    /// What was changed: `without-hooks`, `one-gpu`, `traced`, or `nothing` for the control.
    pub change: &'static str,
    /// The same in words, with what it was set to.
    pub description: String,
    /// What called for it.
    pub why: String,
    /// What the change made of the result.
    pub effect: Effect,
    /// What came of the run, or why there is nothing.
    pub result: String,
    /// Wall time.
    pub seconds: f64,
    /// The record of the run.
    pub origin: Origin,
}

/// What a change made of the result, against the runs without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It fails without the change and works with it.
    Works,
    /// It works without the change and fails with it.
    Fails,
    /// It fails in another way.
    Differs,
    /// It is the same.
    Same,
    /// The runs without the change do not agree among themselves.
    Unclear,
    /// It was not made, or came to no result.
    None,
}

/// One run of one probe.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Probe {
    /// Its name, such as `cuinit`.
    pub probe: String,
    /// Counts from 1.
    pub trial: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Exit status, signal or errno, as the outcome says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Wall time.
    pub seconds: f64,
    /// The call that was entered and did not return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<String>,
    /// Where it was stuck, when it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// Particulars of its end.
    pub notes: Vec<String>,
    /// True when it ran under a tracer, which changes timing.
    pub traced: bool,
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran to its end.
    Returned,
    /// A signal that gpudx did not send ended it.
    Crashed,
    /// The deadline passed; it was killed.
    TimedOut,
    /// The deadline passed, and SIGKILL does not end it.
    Unkillable,
    /// It could not be started.
    NotStarted,
    /// It ended, but what it wrote is not a whole report.
    Malformed,
}

/// A task of the machine that does not get on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Task {
    /// Where it stands.
    #[serde(flatten)]
    pub stuck: Stuck,
    /// For how many seconds at least it slept, when the kernel's watchdog says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched_s: Option<u64>,
    /// Lines of the kernel log about it, or about a GPU near the time at which it fell asleep.
    pub log: Vec<Origin>,
    /// Where it was found.
    pub origin: Origin,
}

/// How a task hangs, as samples over a short time tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hang {
    /// Asleep in state D; no signal ends that.
    SleepsInKernel,
    /// In state D at each look, and awake in between.
    WakesInKernel,
    /// System time grows, user time does not.
    SpinsInKernel,
    /// User and system time grow.
    RepeatsCalls,
    /// User time grows, system time does not.
    BusyInUserSpace,
    /// Asleep such that a signal ends it.
    Waits,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Ended, or about to.
    Ended,
}

/// Where a task is stuck, a probe's or another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stuck {
    /// Process id.
    pub pid: u32,
    /// The thread that was stuck.
    pub tid: u32,
    /// The task's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The way it hangs, where the samples tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang: Option<Hang>,
    /// State letter: R, S, D, T, Z.
    pub state: String,
    /// Kernel function that it waits in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wchan: Option<String>,
    /// Kernel stack, innermost frame first.
    pub stack: Vec<String>,
    /// The system call it is in, decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// User time as a share of the time between two looks, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_share: Option<f64>,
    /// System time as a share of the time between two looks, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_share: Option<f64>,
    /// How often it went off a processor between two looks; 0 for one that slept throughout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
    /// Seconds since it last ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asleep_s: Option<f64>,
    /// Seconds since it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_s: Option<f64>,
    /// True when SIGKILL was sent to it and is still pending.
    pub kill_pending: bool,
    /// Nodes of the driver that the process holds open.
    pub descriptors: Vec<String>,
    /// Threads of others with the same top frames.
    pub same_place: Vec<u32>,
    /// What could not be read, and which privilege would show it.
    pub not_readable: Vec<String>,
}

/// A remark on the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Note {
    /// The remark.
    pub text: String,
    /// What it is about.
    pub origin: Origin,
}
