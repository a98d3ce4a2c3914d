//! Experiments: runs of cuInit, each of which changes one thing against the run that fails.

use std::fmt;

use super::cuda::{Stage, TrialResult};
use super::process::Limit;
use crate::observed::Origin;

/// A limit of a process that an experiment sets. Its name is that of /proc/PID/limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limited {
    /// Open files.
    OpenFiles,
    /// Processes and threads of the user.
    Processes,
    /// Address space in bytes.
    AddressSpace,
}

impl Limited {
    /// All of them.
    pub const ALL: [Limited; 3] = [Limited::OpenFiles, Limited::Processes, Limited::AddressSpace];

    /// The name in /proc/PID/limits.
    pub fn name(self) -> &'static str {
        match self {
            Limited::OpenFiles => "Max open files",
            Limited::Processes => "Max processes",
            Limited::AddressSpace => "Max address space",
        }
    }

    /// The word in a record and on a probe's command line.
    pub fn word(self) -> &'static str {
        match self {
            Limited::OpenFiles => "open-files",
            Limited::Processes => "processes",
            Limited::AddressSpace => "address-space",
        }
    }
}

/// The one thing that a run changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// Nothing: the same once more in a fresh process. The control of all others.
    Nothing,
    /// Without libraries that are preloaded, audited or injected by variables, and without those
    /// of /etc/ld.so.preload where this process may hide that file from its child.
    WithoutHooks,
    /// Without CUDA_VISIBLE_DEVICES, so that every GPU is visible.
    AllGpus,
    /// Without CUDA_MPS_PIPE_DIRECTORY, and away from the usual pipe folder where that exists.
    WithoutMps,
    /// With another libcuda, by its path.
    Library(String),
    /// With the soft limit set to this; `None` for no limit.
    Limit(Limited, Limit),
    /// As another user, by number, with that user's groups.
    User(u32),
    /// With this GPU alone visible, by its UUID.
    OneGpu(String),
    /// Under the tracer, which changes timing.
    Traced,
    /// With this value of CUDA_MODULE_LOADING.
    ModuleLoading(String),
}

impl Change {
    /// The kind in a record and in JSON, without what it is set to.
    pub fn kind(&self) -> &'static str {
        match self {
            Change::Nothing => "nothing",
            Change::WithoutHooks => "without-hooks",
            Change::AllGpus => "all-gpus",
            Change::WithoutMps => "without-mps",
            Change::Library(_) => "library",
            Change::Limit(..) => "limit",
            Change::User(_) => "user",
            Change::OneGpu(_) => "one-gpu",
            Change::Traced => "traced",
            Change::ModuleLoading(_) => "module-loading",
        }
    }

    /// In words that go on from "it works …".
    pub fn words(&self) -> String {
        match self {
            Change::Nothing => "once more as it is".to_owned(),
            Change::WithoutHooks => "without preloaded and injected libraries".to_owned(),
            Change::AllGpus => "without CUDA_VISIBLE_DEVICES".to_owned(),
            Change::WithoutMps => "without the MPS pipe folder".to_owned(),
            Change::Library(path) => format!("with the libcuda at {path}"),
            Change::Limit(limited, value) => {
                let what = limited.name().trim_start_matches("Max ");
                match value {
                    Some(value) => format!("with the limit of {what} at {value}"),
                    None => format!("without a limit of {what}"),
                }
            }
            Change::User(uid) => format!("as user {uid}"),
            Change::OneGpu(uuid) => format!("with {uuid} alone visible"),
            Change::Traced => "under the tracer".to_owned(),
            Change::ModuleLoading(value) => format!("with CUDA_MODULE_LOADING={value}"),
        }
    }

    /// Reads the form that [`fmt::Display`] writes. `None` for an unknown form.
    pub fn parse(text: &str) -> Option<Change> {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        let value = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        Some(match kind {
            "nothing" => Change::Nothing,
            "without-hooks" => Change::WithoutHooks,
            "all-gpus" => Change::AllGpus,
            "without-mps" => Change::WithoutMps,
            "library" => Change::Library(value()?),
            "limit" => {
                let (word, number) = rest.split_once(' ')?;
                let limited = Limited::ALL.into_iter().find(|limited| limited.word() == word)?;
                let limit = match number {
                    "unlimited" => None,
                    number => Some(number.parse().ok()?),
                };
                Change::Limit(limited, limit)
            }
            "user" => Change::User(rest.parse().ok()?),
            "one-gpu" => Change::OneGpu(value()?),
            "traced" => Change::Traced,
            "module-loading" => Change::ModuleLoading(value()?),
            _ => return None,
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Change::Library(text) | Change::OneGpu(text) | Change::ModuleLoading(text) => {
                write!(f, " {text}")
            }
            Change::Limit(limited, Some(value)) => write!(f, " {} {value}", limited.word()),
            Change::Limit(limited, None) => write!(f, " {} unlimited", limited.word()),
            Change::User(uid) => write!(f, " {uid}"),
            Change::Nothing
            | Change::WithoutHooks
            | Change::AllGpus
            | Change::WithoutMps
            | Change::Traced => Ok(()),
        }
    }
}

/// What a change made of the result, against the runs without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It fails without the change and works with it.
    Works,
    /// It works without the change and fails with it.
    Fails,
    /// It fails in another way.
    Differs,
    /// It is the same.
    Same,
    /// Nothing can be said: the run came to no result, or the runs without the change do not agree
    /// among themselves.
    Unclear,
}

impl Effect {
    /// The word in JSON and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Works => "works",
            Effect::Fails => "fails",
            Effect::Differs => "differs",
            Effect::Same => "same",
            Effect::Unclear => "unclear",
        }
    }
}

/// How far a run came and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The stage at which it ended.
    pub stage: Stage,
    /// How.
    pub result: TrialResult,
    /// The call that decided.
    pub what: String,
}

/// One experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Its number; the trial of its probe.
    pub number: u32,
    /// What was changed.
    pub change: Change,
    /// Why it was worth making.
    pub why: String,
    /// What came of it; `None` when it was not made, or came to no result.
    pub run: Option<Run>,
    /// Why there is no result.
    pub hindered: Option<String>,
    /// Its wall time in seconds.
    pub seconds: f64,
    /// What the change made of the result.
    pub effect: Effect,
    /// The driver call that the tracer saw in flight at the end, for a traced run.
    pub in_flight: Option<String>,
    /// The record of the run.
    pub origin: Origin,
}

impl Experiment {
    /// True when the run left a process behind that cannot be killed.
    pub fn left_behind(&self) -> bool {
        let hung = self.run.as_ref().map(|run| run.result);
        hung == Some(TrialResult::Hung { killable: Some(false) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_round_trip_through_records() {
        for change in [
            Change::Nothing,
            Change::WithoutHooks,
            Change::AllGpus,
            Change::WithoutMps,
            Change::Library("/opt/a b/libcuda.so.1".to_owned()),
            Change::Limit(Limited::OpenFiles, Some(65_536)),
            Change::Limit(Limited::AddressSpace, None),
            Change::User(1000),
            Change::OneGpu("GPU-1234".to_owned()),
            Change::Traced,
            Change::ModuleLoading("EAGER".to_owned()),
        ] {
            assert_eq!(Change::parse(&change.to_string()), Some(change));
        }
        for text in ["", "library", "limit open-files", "limit rss 1", "user x", "reboot"] {
            assert_eq!(Change::parse(text), None, "{text}");
        }
    }
}
