//! `process.open-files-huge`

use facts::model::process::Lever;
use facts::model::task::Hang;
use facts::{Facts, Layer, Observed, Seen};

use super::limits::by_engine;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::stuck;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.open-files-huge",
    layer: Layer::Process,
    claim: "a limit of about a billion open files makes the driver's start crawl",
    explanation: "NVIDIA's persistence daemon is asked over an RPC library that allocates tables \
        with one entry for each file that the process might open. Container engines whose unit \
        says LimitNOFILE=infinity hand on the kernel's maximum, about 2^30, so that the tables \
        take 4 and 48 GiB of address space, and setting them up takes many seconds at every start \
        of nvidia-smi or CUDA. A program that closes each descriptor that it might have, before it \
        starts another, takes minutes in the same way. Without the daemon, or outside the \
        container, nothing is slow.",
    explains: &[SymptomId::CudaInitSlow, SymptomId::CudaInitHangs],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "sandbox.cli-timeout",
            tell: "persistence is off and it is just as slow outside the container",
        },
        LookAlike {
            id: "uvm.hmm",
            tell: "it does not end at all, and the process is stuck in a call of nvidia_uvm",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1053",
        "https://github.com/containerd/containerd/pull/8924",
        "https://docs.docker.com/reference/cli/docker/container/run/#ulimit",
    ],
    weigh,
    remedy,
};

const NAME: &str = "Max open files";

/// From here on the tables take gigabytes. The 2^20 that many engines give is harmless.
const HUGE: u64 = 1 << 26;

/// Bytes for each possible descriptor in the two tables (measured: 4 GiB and 48 GiB for 2^30).
const BYTES_EACH: [u64; 2] = [4, 48];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let huge = huge(facts);
    if huge.is_none() {
        not_huge(facts, &mut weighing);
        return weighing;
    }
    let slow = slow(facts);
    let tables = tables(facts);
    let hang = stuck::cuinit(facts);
    if slow.is_none() && tables.is_none() && hang.is_none() {
        // The limit alone is no fault.
        weighing.needs(Need::StartTime);
        return weighing;
    }
    if let Some(limit) = &huge {
        // Many loops keep a processor busy; a start that ends after many seconds is rarer.
        let strength = if slow.is_some() || tables.is_some() { Strong } else { Moderate };
        weighing.supports(strength, limit.value.clone(), &limit.origin);
    }
    if let Some((place, hang)) = hang {
        busy(&place, hang, &mut weighing);
    }
    if let Some(slow) = &slow {
        weighing.supports(Moderate, slow.value.clone(), &slow.origin);
    }
    if let Some(tables) = &tables {
        weighing.confirms(tables.value.clone(), &tables.origin);
    }
    daemon(facts, &mut weighing);
    cured(facts, &mut weighing);
    weighing
}

/// Going through a billion descriptors keeps a processor busy, in user space or with calls that
/// return at once. One that sleeps, or is in a call of the driver's, does something else.
fn busy(place: &stuck::Place<'_>, hang: Hang, weighing: &mut Weighing) {
    match hang {
        Hang::RepeatsCalls | Hang::BusyInUserSpace => {
            let statement = "cuInit does not come back, and is in no call of the driver: it is \
                busy, as going through a billion descriptors is";
            weighing.supports(Moderate, statement, place.origin);
        }
        Hang::SleepsInKernel | Hang::WakesInKernel | Hang::SpinsInKernel | Hang::Waits => {
            let statement = format!("cuInit does not come back, and {}", hang.words());
            weighing.rules_out(statement, place.origin);
        }
        Hang::Stopped | Hang::Ended => {}
    }
}

/// The limit as far as it is huge; "no limit" means the kernel's maximum.
fn huge(facts: &Facts) -> Option<Seen<String>> {
    let highest = facts.process.highest_limit(NAME)?;
    let statement = match highest.value {
        Some(limit) if limit >= HUGE => format!("the limit of open files is {limit}"),
        Some(_) => return None,
        None => "open files are not limited, which means about a billion".to_owned(),
    };
    Some(Seen::new(statement, highest.origin))
}

fn not_huge(facts: &Facts, weighing: &mut Weighing) {
    if slow(facts).is_none() {
        return;
    }
    match facts.process.highest_limit(NAME) {
        Some(Seen { value: Some(limit), origin }) => {
            weighing.rules_out(format!("the limit of open files is only {limit}"), &origin);
        }
        Some(Seen { value: None, .. }) | None => {
            weighing.needs(Need::Limits);
        }
    }
}

fn slow(facts: &Facts) -> Option<Seen<String>> {
    let starts = &facts.process.slow_starts;
    let measured = starts.iter().find_map(|seen| {
        let seconds = seen.value.1.filter(|seconds| *seconds >= SLOW_SECONDS)?;
        let statement = format!("{} takes {seconds:.0} s", seen.value.0);
        Some(Seen::new(statement, seen.origin.clone()))
    });
    let told = || {
        let seen = starts.iter().find(|seen| seen.value.1.is_none())?;
        Some(Seen::new(format!("{} is slow", seen.value.0), seen.origin.clone()))
    };
    if let Some(slow) = measured.or_else(told) {
        return Some(slow);
    }
    let trial = facts
        .cuda
        .plain()
        .find(|trial| trial.ok() && trial.seconds.is_some_and(|seconds| seconds >= SLOW_SECONDS))?;
    let seconds = trial.seconds.unwrap_or_default();
    Some(Seen::new(format!("{} takes {seconds:.0} s", trial.what), trial.origin.clone()))
}

/// A healthy start takes a second or two.
const SLOW_SECONDS: f64 = 5.0;

/// Two mappings of exactly the size that the limit makes the tables.
fn tables(facts: &Facts) -> Option<Seen<String>> {
    let limit = facts.process.highest_limit(NAME)?.value?;
    let sizes = BYTES_EACH.map(|bytes| limit.saturating_mul(bytes));
    let fits = |bytes: u64, size: u64| bytes.abs_diff(size) < size / 64;
    let found = |size: u64| facts.process.giant_mappings.iter().find(|seen| fits(seen.value, size));
    let [small, large] = sizes.map(found);
    let (small, large) = (small?, large?);
    let statement = format!(
        "it maps tables of {} and {} bytes, one entry for each file it might open",
        small.value, large.value
    );
    Some(Seen::new(statement, large.origin.clone()))
}

fn daemon(facts: &Facts, weighing: &mut Weighing) {
    match &facts.process.persistenced {
        Observed::Seen(seen) if seen.value => {
            weighing.supports(Moderate, "nvidia-persistenced runs", &seen.origin);
        }
        Observed::Seen(seen) => {
            weighing.objects(Strong, "nvidia-persistenced does not run", &seen.origin);
        }
        Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => {}
    }
}

fn cured(facts: &Facts, weighing: &mut Weighing) {
    let lower = |lever| matches!(lever, Lever::OpenFiles(value) if value.is_none_or(|v| v < HUGE));
    let Some((attempt, origin)) = facts.process.tried(lower) else { return };
    if attempt.helped && attempt.controlled {
        weighing.confirms("it starts with a lower limit of open files and hangs with this", origin);
    } else if attempt.helped {
        weighing.supports(Strong, "it starts quickly with a lower limit of open files", origin);
    } else {
        weighing.objects(Weak, "a lower limit of open files does not help", origin);
    }
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
            "for one container",
        )
    } else {
        remedy.step_to(Place::Program, "ulimit -n 65536", "in the shell or script that starts it")
    };
    remedy
        .step_to(
            Place::Host,
            "systemctl edit containerd docker, with [Service] and LimitNOFILE=1024:524288, then restart them",
            "for every container; restarts containers unless live-restore is on",
        )
        .undo("start it with the former limit; systemctl revert containerd docker")
        .verify("ulimit -n inside prints the new value, and time nvidia-smi is about a second")
        .will_not_help("stopping nvidia-persistenced: GPUs then take seconds to wake at every first use")
        .will_not_help("another driver or toolkit version: the table follows the limit")
}
