//! Causes in NVSwitch, NVLink and the fabric manager, and the questions that they share.

use facts::model::fabric::ManagerLine;
use facts::{Facts, Observed, Origin, Seen};

use crate::evidence::Strength::Moderate;
use crate::readings::{self, code};
use crate::weigh::Weighing;

pub(super) mod manager_misconfigured;
pub(super) mod manager_missing;
pub(super) mod manager_version_skew;
pub(super) mod multicast;
pub(super) mod nvlink_down;
pub(super) mod vm_partition;

/// What a machine shows whose fabric does not come up, whichever way it went wrong.
fn fabric_waits(facts: &Facts, weighing: &mut Weighing) {
    if let Some(trial) = readings::init_failed_with(facts, code::SYSTEM_NOT_READY) {
        weighing.supports(Moderate, "cuInit answers 802, system not ready", &trial.origin);
    }
    if let Some(state) = unfinished(facts) {
        let statement = format!("the GPUs' fabric state is '{}'", state.value);
        weighing.supports(Moderate, statement, &state.origin);
    }
}

/// Where it was seen that the daemon is there and was started: it or its start script has printed
/// something.
fn started(facts: &Facts) -> Option<&Origin> {
    let by_itself = |line: &&Seen<ManagerLine>| !matches!(line.value, ManagerLine::ModuleTold(_));
    facts.fabric.manager_lines.iter().find(by_itself).map(|line| &line.origin)
}

/// The fabric state of a GPU that is not registered yet.
fn unfinished(facts: &Facts) -> Option<Seen<String>> {
    let waits = |word: &str| matches!(word, "In Progress" | "Not Started");
    let reported = facts.nvml.gpus.iter().find_map(|gpu| {
        let word = gpu.value.fabric_state.as_deref().filter(|word| waits(word))?;
        Some(Seen::new(word.to_owned(), gpu.origin.clone()))
    });
    reported.or_else(|| facts.fabric.states.iter().find(|state| waits(&state.value)).cloned())
}

/// Where it was seen that a GPU is registered with the fabric.
fn completed(facts: &Facts) -> Option<&Origin> {
    let done = facts.nvml.gpus.iter().find(|gpu| {
        let status = gpu.value.fabric_status.as_deref();
        gpu.value.fabric_state.as_deref() == Some("Completed")
            && status.is_none_or(|status| status == "Success")
    });
    done.map(|gpu| &gpu.origin)
}

/// Where the bus was listed and holds no switch.
fn no_switch_on_bus(facts: &Facts) -> Option<&Origin> {
    match &facts.pci.devices {
        Observed::Seen(seen) if facts.pci.nvswitches().next().is_none() => Some(&seen.origin),
        _ => None,
    }
}

/// A board that sits on NVSwitch machines, listed or told.
fn switch_board(facts: &Facts) -> Option<Seen<String>> {
    let listed = readings::boards(facts)
        .into_iter()
        .find(|board| manager_missing::is_switch_board(&board.value))
        .map(|board| Seen::new(board.value.name, board.origin));
    listed.or_else(|| {
        let told = facts.host.gpu_names.iter().find(|name| {
            ["A100", "H100", "H200", "H800", "H20", "B200", "B300", "GB200"]
                .iter()
                .any(|board| name.value.contains(board))
                && !["PCIe", "NVL"].iter().any(|kind| name.value.contains(kind))
        });
        told.cloned()
    })
}

/// Whether the switches are of the fifth NVLink, which are managed through InfiniBand; where a
/// board that has them was seen or told.
fn fifth(facts: &Facts) -> Option<Origin> {
    if manager_missing::fifth_nvlink(facts) {
        return readings::boards(facts).first().map(|board| board.origin.clone());
    }
    let told = facts.host.gpu_names.iter().find(|name| {
        ["B200", "B300", "B100", "GB200", "GB300"].iter().any(|board| name.value.contains(board))
    });
    told.map(|name| name.origin.clone())
}
