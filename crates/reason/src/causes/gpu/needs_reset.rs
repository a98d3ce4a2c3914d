//! `gpu.needs-reset`

use facts::model::nvml::NvmlResult;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::xid_burst;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "gpu.needs-reset",
    layer: Layer::Gpu,
    claim: "the driver keeps the GPU closed until it is reset",
    explanation: "After some faults the driver no longer trusts a GPU: it goes on listing it, with \
        all counters at zero, and refuses every new context with 46 (busy or unavailable) or 101, \
        though no process holds it. The field 'GPU Recovery Action' and Xid 154 say what it wants: a \
        reset, a drain, a reboot. The Xid that led there may have gone by while nobody watched.",
    explains: &[
        SymptomId::CudaContextFails,
        SymptomId::CudaInitFails,
        SymptomId::GpuFaulted,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "share.compute-mode",
            tell: "the compute mode is exclusive or prohibited, and another process holds the GPU",
        },
        LookAlike {
            id: "platform.vgpu-unlicensed",
            tell: "the GPU is a virtual one, and its licence is not there",
        },
        LookAlike { id: "gpu.memory-fault", tell: "Xid 48, 94 or 95, or a pending row, tells why" },
        LookAlike { id: "gpu.xid", tell: "the log has the Xid that led there" },
    ],
    references: &[
        "https://github.com/scitix/sichek/pull/121",
        "https://docs.nvidia.com/deploy/xid-errors/",
        "https://docs.nvidia.com/deploy/nvml-api/",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(origin) = gpu_state::no_recovery_asked(facts) {
        weighing.rules_out("the GPUs' recovery action is None", &origin);
    }
    asked(facts, &mut weighing);
    logged(facts, &mut weighing);
    refused(facts, &mut weighing);
    if let Some(odd) = readings::odd_gpu(facts) {
        weighing.supports(Moderate, odd.value, &odd.origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    led_by(facts, &mut weighing);
    if gpu_state::recovery_action(facts).is_none() && weighing.against.is_empty() {
        weighing.needs(Need::RecoveryAction);
    }
    weighing
}

/// What the driver asks for.
fn asked(facts: &Facts, weighing: &mut Weighing) {
    if let Some(asked) = gpu_state::recovery_action(facts) {
        let statement = format!("the driver asks for a recovery of the GPU: {}", asked.value);
        weighing.confirms(statement, &asked.origin);
    }
    let locked = facts.nvml.queries.iter().find(|query| query.result == NvmlResult::Code(16));
    if let Some(query) = locked {
        weighing.confirms("NVML answers 16: the GPU requires a reset", &query.origin);
    }
    let required = facts.nvml.gpus.iter().find(|gpu| gpu.value.health.reset_required == Some(true));
    if let Some(gpu) = required {
        weighing.confirms("nvidia-smi says: reset required", &gpu.origin);
    }
}

/// The driver's own status in a failed assertion: the GPU stays closed until it is reset.
fn logged(facts: &Facts, weighing: &mut Weighing) {
    if let Some(event) = gpu_state::reset_required_logged(facts) {
        let statement = "the driver logged the status NV_ERR_RESET_REQUIRED";
        weighing.supports(Strong, statement, &event.origin);
    }
}

/// A GPU that refuses contexts although nobody is on it.
fn refused(facts: &Facts, weighing: &mut Weighing) {
    let refused = facts.cuda.plain().find(|trial| {
        matches!(trial.failure_code(), Some(code::DEVICE_UNAVAILABLE | code::INVALID_DEVICE))
    });
    let Some(trial) = refused else { return };
    let number = trial.failure_code().unwrap_or_default();
    let strength = if number == code::DEVICE_UNAVAILABLE { Moderate } else { Weak };
    let statement = format!("a context is refused with {number}");
    weighing.supports(strength, statement, &trial.origin);
    if let Some(origin) = gpu_state::vgpu_guest(facts) {
        weighing.objects(Strong, "the GPU is a virtual one, for which a licence decides", &origin);
    }
    let exclusive = facts
        .nvml
        .gpus
        .iter()
        .find(|gpu| gpu.value.compute_mode.as_deref().is_some_and(|mode| mode != "Default"));
    if let Some(gpu) = exclusive {
        weighing.objects(Strong, "the compute mode allows one process or none", &gpu.origin);
    }
    let idle = facts.nvml.gpus.iter().find(|gpu| {
        let health = &gpu.value.health;
        health.utilization_percent == Some(0)
            && gpu.value.memory_mib.is_some_and(|(used, _)| used < 512)
    });
    if let Some(gpu) = idle {
        weighing.supports(Weak, "nothing runs on the GPU", &gpu.origin);
    }
}

/// The Xid that led there is the cause, and this its consequence.
fn led_by(facts: &Facts, weighing: &mut Weighing) {
    for burst in xid_burst::bursts(facts) {
        let Some(lead) = burst.leading() else { continue };
        if lead.number != xid_burst::RECOVERY_ACTION {
            let statement = format!("{} led there", xid_burst::named(lead.number));
            weighing.objects(Strong, statement, &lead.event.origin);
        }
    }
    if let Some(origin) =
        readings::context_failure(facts).is_none().then(|| readings::cuda_works(facts)).flatten()
    {
        weighing.objects(Moderate, "CUDA works on a GPU", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let action = gpu_state::recovery_action(facts).map(|seen| seen.value).unwrap_or_default();
    let index = facts
        .nvml
        .gpus
        .iter()
        .find(|gpu| gpu.value.recovery_action.as_deref().is_some_and(|action| action != "None"))
        .and_then(|gpu| gpu.value.index)
        .map_or("INDEX".to_owned(), |index| index.to_string());
    let reboot = action.contains("eboot");
    let impact = if reboot { Impact::Reboots } else { Impact::RestartsProcess };
    let remedy = Remedy::new(impact, "every program on that GPU")
        .step_to(
            place,
            "stop what uses the GPU: fuser -v /dev/nvidia*; systemctl stop nvidia-persistenced nvidia-dcgm",
            "a reset is refused while anybody holds the GPU",
        );
    let remedy = if reboot {
        remedy.step_to(place, "reboot", "the driver asks for no less")
    } else {
        remedy
            .step_to(
                place,
                format!("nvidia-smi --gpu-reset -i {index}"),
                "what the driver asks for",
            )
            .step_to(
                place,
                "reboot, where the reset is refused",
                "GPUs on NVLink are reset together",
            )
    };
    remedy
        .undo("nothing to undo")
        .verify("nvidia-smi -q | grep 'Recovery Action' prints None, and a context can be made")
        .will_not_help("killing or restarting the program: the GPU refuses the next one as well")
        .will_not_help("looking at ECC and remapped-row counters: they start anew with the driver and may all be 0")
        .will_not_help("nvidia-smi -c DEFAULT: the compute mode is not what refuses")
}
