//! `process.open-files-low`

use facts::model::process::{Lever, Refusal};
use facts::{Errno, Facts, Layer, Origin};

use super::limits::{ample, by_engine, gpus, init_failed, lowest, tried};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.open-files-low",
    layer: Layer::Process,
    claim: "the limit of open files is too low for the driver library",
    explanation: "cuInit opens the control node, the UVM node, several descriptors for each GPU and \
        some files of /proc and /sys. When the process may open no more, libcuda does not say so: \
        it answers 304 or 100 depending on how far it came, and NVML answers 17 or simply counts \
        fewer GPUs, or none. Everything else about the machine is sound, and the same program \
        works from a shell with the usual limit.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::NvmlFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "node.missing",
            tell: "a node is absent or does not open at all, whatever the limits are",
        },
        LookAlike {
            id: "process.threads",
            tell: "cuInit answers 304 with plenty of open files allowed and few processes",
        },
        LookAlike {
            id: "sandbox.proc-hidden",
            tell: "cuInit answers 304 and /proc is not mounted",
        },
        LookAlike {
            id: "process.visible-devices",
            tell: "cuInit answers 100 with CUDA_VISIBLE_DEVICES set, and NVML counts every GPU",
        },
    ],
    references: &[
        "https://man7.org/linux/man-pages/man2/getrlimit.2.html",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html",
        "https://docs.docker.com/reference/cli/docker/container/run/#ulimit",
    ],
    weigh,
    remedy,
};

const NAME: &str = "Max open files";

/// At this limit cuInit still failed on a machine with two GPUs (driver 580, measured).
const FAILS_WITH: u64 = 24;

/// What cuInit needs at most: some descriptors, and several for each GPU.
fn needed(facts: &Facts) -> u64 {
    24 + 12 * gpus(facts)
}

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some((code, origin)) = failure(facts) else { return weighing };
    let refused = facts.process.refused(Refusal::OpenFile);
    if let Some(refused) = refused {
        weighing.supports(Strong, "a program was refused one more open file", refused);
    } else if let Some(seen) = ample(facts, NAME, needed(facts)).filter(|_| !raised(facts)) {
        let limit = seen.value.map_or("unlimited".to_owned(), |limit| limit.to_string());
        weighing.rules_out(format!("the limit of open files is {limit}"), &seen.origin);
        return weighing;
    }
    if let Some(seen) = lowest(facts, NAME) {
        let statement = format!("the limit of open files is {}", seen.value);
        if seen.value <= FAILS_WITH {
            weighing.confirms(format!("{statement}, with which cuInit cannot do"), &seen.origin);
        } else if seen.value < needed(facts) {
            weighing.supports(Strong, statement, &seen.origin);
        } else if refused.is_some() && seen.value <= 4096 {
            weighing.supports(Moderate, statement, &seen.origin);
        }
    } else {
        weighing.needs(Need::Limits);
    }
    if !weighing.support.is_empty() {
        weighing.supports(Moderate, code, &origin);
        if let Some(origin) = readings::all_nodes_open(facts) {
            weighing.supports(Weak, "every node opens by itself", &origin);
        }
    }
    tried(
        facts,
        |lever| matches!(lever, Lever::OpenFiles(value) if value.is_none_or(|value| value > FAILS_WITH)),
        "it works with more open files allowed",
        "more open files do not help",
        &mut weighing,
    );
    weighing
}

/// An experiment has shown that a higher limit is what it takes.
fn raised(facts: &Facts) -> bool {
    let tried = facts.process.tried(|lever| matches!(lever, Lever::OpenFiles(_)));
    tried.is_some_and(|(attempt, _)| attempt.helped && attempt.controlled)
}

/// A failure that lack of descriptors gives.
fn failure(facts: &Facts) -> Option<(String, Origin)> {
    // 999 is what cuInit makes of an EMFILE from nvidia-uvm alone (cuinit_fault_matrix).
    let codes = [code::OPERATING_SYSTEM, code::NO_DEVICE, code::UNKNOWN];
    if let Some((code, origin)) = init_failed(facts, &codes) {
        return Some((format!("cuInit answers {code}"), origin));
    }
    if let Some(origin) = readings::nvml_failed_with(facts, code::NVML_OPERATING_SYSTEM) {
        return Some(("NVML answers 17".to_owned(), origin));
    }
    let fewer = facts.nvml.count.as_seen().filter(|seen| u64::from(seen.value) < gpus(facts));
    if let Some(fewer) = fewer {
        return Some((format!("NVML counts only {} GPUs", fewer.value), fewer.origin.clone()));
    }
    let (run, errno) = super::limits::blind(facts)?;
    let too_low = errno == Errno::EMFILE;
    too_low.then(|| ("no probe can be started here: EMFILE".to_owned(), run.origin.clone()))
}

fn remedy(facts: &Facts) -> Remedy {
    let remedy = Remedy::new(
        if by_engine(facts) { Impact::RecreatesContainer } else { Impact::RestartsProcess },
        "the program in question",
    );
    let remedy = if by_engine(facts) {
        remedy.step_to(
            Place::Engine,
            "docker run --ulimit nofile=65536:65536 …",
            "or ulimits: nofile: 65536 in a compose file",
        )
    } else {
        remedy
            .step_to(Place::Program, "ulimit -n 65536", "in the shell or script that starts it")
            .step_to(
                Place::Here,
                "systemctl edit SERVICE, with [Service] and LimitNOFILE=65536, then systemctl restart SERVICE",
                "where a service starts it",
            )
    };
    remedy
        .undo("start it with the former limit")
        .verify("grep 'open files' /proc/PID/limits shows the new value, and cuInit answers 0")
        .will_not_help("limits.conf alone: it reaches new logins, not services or containers")
        .will_not_help("reinstalling the driver: it works from a shell with the usual limit")
}
