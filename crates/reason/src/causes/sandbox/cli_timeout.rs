//! `sandbox.cli-timeout`

use facts::model::engine::EngineFault;
use facts::{Facts, Layer, Origin};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.cli-timeout",
    layer: Layer::Sandbox,
    claim: "the container hook gives up before the GPUs are up",
    explanation: "With persistence off and no client at work the driver puts every GPU to rest, and \
        the next client waits until all of them have been brought up again: some seconds each on \
        large machines. The hook asks a process of its own and waits for it no longer than \
        libnvidia-container's own clock says, then ends with 'driver rpc error: timed out'. \
        nvidia-smi has no such clock, so it works, slowly.",
    explains: &[SymptomId::ContainerRefused, SymptomId::CudaInitSlow],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "firmware.gsp-timeout",
            tell: "nvidia-smi hangs or fails as well, and Xid 119 is logged",
        },
        LookAlike {
            id: "module.deadlock",
            tell: "nvidia-smi never returns, and a task is in state D",
        },
        LookAlike {
            id: "sandbox.engine-blind",
            tell: "the hook fails at once: load library failed",
        },
        LookAlike {
            id: "process.open-files-huge",
            tell: "persistence is on, and a service walks through a billion descriptors",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/202",
        "https://github.com/NVIDIA/nvidia-docker/issues/644",
        "https://github.com/NVIDIA/nvidia-docker/issues/1657",
        "https://docs.nvidia.com/deploy/driver-persistence/index.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let timed_out = engine::fault(facts, |fault| match fault {
        EngineFault::HookTimedOut => Some(()),
        _ => None,
    });
    let Some(seen) = timed_out else { return weighing };
    weighing.supports(Strong, "the container hook timed out waiting for the driver", &seen.origin);
    persistence(facts, &mut weighing);
    if let Some(origin) = engine::cured_by(facts, &["persistence", "nvidia-smi -pm", "-pm 1"]) {
        weighing.confirms("it works with persistence on", origin);
    }
    if let Some(origin) = facts.sandbox.engine.slow_tools.first().map(|seen| &seen.origin) {
        weighing.supports(Moderate, "nvidia-smi takes many seconds", origin);
    } else {
        weighing.needs(Need::HookTiming);
    }
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(Weak, "nvidia-smi answers on the host", &origin);
    }
    hangs(facts, &mut weighing);
    weighing
}

fn persistence(facts: &Facts, weighing: &mut Weighing) {
    let gpus = &facts.nvml.gpus;
    let off = gpus.iter().find(|gpu| gpu.value.persistence == Some(false));
    let on = gpus.iter().find(|gpu| gpu.value.persistence == Some(true));
    match (off, on) {
        (Some(gpu), _) => {
            weighing.supports(Moderate, "persistence mode is off", &gpu.origin);
        }
        (None, Some(gpu)) => {
            weighing.objects(Moderate, "persistence mode is on", &gpu.origin);
        }
        (None, None) => {
            let told = &facts.sandbox.engine.persistence;
            if let Some(origin) = engine::told(told, false) {
                weighing.supports(Moderate, "persistence mode is off", origin);
            } else if let Some(origin) = engine::told(told, true) {
                weighing.objects(Moderate, "persistence mode is on", origin);
            }
        }
    }
}

/// A driver that hangs makes the hook time out as well, and then that is the cause.
fn hangs(facts: &Facts, weighing: &mut Weighing) {
    const HANGS: [&str; 5] =
        ["GSP_RPC_TIMEOUT", "GSP_RPC_TIMEOUT_OLD", "GSP_HEARTBEAT", "FALLEN_BUS", "HUNG_TASK"];
    let logged: Option<&Origin> = readings::logged(facts, &HANGS);
    let hung = facts.nvml.hung().next().map(|query| &query.origin);
    if let Some(origin) = logged.or(hung) {
        weighing.objects(Strong, "the driver itself hangs", origin);
    }
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::None, "nothing")
        .step_to(
            Place::Host,
            "systemctl enable --now nvidia-persistenced",
            "keeps every GPU up between clients, also after the next boot",
        )
        .step_to(
            Place::Host,
            "nvidia-smi -pm 1",
            "until the next boot, where there is no such service",
        )
        .undo("systemctl disable --now nvidia-persistenced")
        .verify("time nvidia-smi -L takes well under a second, and the container starts")
        .will_not_help("reinstalling docker or the toolkit: its clock is the same")
        .will_not_help("resetting the GPUs: they answer, only late")
}
