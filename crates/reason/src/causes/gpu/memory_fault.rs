//! `gpu.memory-fault`

use facts::model::nvml::NvmlGpu;
use facts::{Facts, Layer, Origin, Seen};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine;
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::xid_burst::{self, MEMORY};

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "gpu.memory-fault",
    layer: Layer::Gpu,
    claim: "the GPU's memory has an uncorrectable error, or its spare rows are used up",
    explanation: "A double-bit error in the GPU's memory cannot be repaired. The driver ends the \
        programs that it touched (Xid 48, 94 contained, 95 uncontained), notes the row (63) and \
        replaces it by a spare one at the next reset; when no spare is left it says so (64, or \
        'Remapping Failure Occurred'), and the card is due for replacement. After an uncontained \
        error the GPU refuses new contexts until it is reset. Counters start anew with a reset or a \
        reload, so that a zero says nothing about yesterday.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::CudaContextFails,
        SymptomId::CudaInitFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["gpu.needs-reset", "gpu.xid"],
    look_alikes: &[
        LookAlike { id: "gpu.xid", tell: "the first Xid is none of memory's" },
        LookAlike {
            id: "gpu.needs-reset",
            tell: "the GPU waits for a reset, and nothing shows a memory error",
        },
        LookAlike {
            id: "pci.link-degraded",
            tell: "data are damaged on the way (Xid 32, 80), and the memory counts no error",
        },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/",
        "https://docs.nvidia.com/deploy/xid-errors/",
        "https://docs.nvidia.com/deploy/dynamic-page-retirement/",
        "src/common/sdk/nvidia/inc/nverror.h",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    xids(facts, &mut weighing);
    for gpu in &facts.nvml.gpus {
        health(gpu, &mut weighing);
    }
    if let Some(told) = facts.nvml.memory_errors_told.first() {
        let statement = format!("a program or report says: {}", told.value);
        weighing.supports(Strong, statement, &told.origin);
        weighing.supports(Weak, "the words are those of an uncorrectable error", &told.origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    if let Some(asked) = gpu_state::recovery_action(facts) {
        let statement = format!("the driver asks for a recovery: {}", asked.value);
        weighing.supports(Weak, statement, &asked.origin);
    }
    let unknown = |gpu: &Seen<NvmlGpu>| gpu.value.health.remap_failed.is_none();
    if facts.nvml.gpus.iter().all(unknown) {
        weighing.needs(Need::RemappedRows);
    }
    weighing
}

/// Xids of memory that lead their burst. 63 and 92 are notes of the driver's, by which the GPU
/// goes on; the others are errors.
fn xids(facts: &Facts, weighing: &mut Weighing) {
    for burst in xid_burst::bursts(facts) {
        let Some(lead) = burst.leading() else { continue };
        let memory = burst.xids().iter().find(|xid| MEMORY.contains(&xid.number));
        let Some(first) = memory else { continue };
        let origin = &first.event.origin;
        let statement = xid_burst::named(first.number);
        if !MEMORY.contains(&lead.number) {
            weighing.supports(Moderate, statement, origin);
            let other = format!("{} came first on this GPU", xid_burst::named(lead.number));
            weighing.objects(Moderate, other, &lead.event.origin);
            continue;
        }
        let error = burst
            .xids()
            .iter()
            .find(|xid| MEMORY.contains(&xid.number) && !matches!(xid.number, 63 | 92 | 160 | 168));
        match error {
            Some(error) if error.is_quoted() => {
                weighing.confirms(xid_burst::named(error.number), &error.event.origin);
            }
            Some(error) => {
                let statement = format!("the input tells of {}", xid_burst::named(error.number));
                weighing.supports(Strong, statement, &error.event.origin);
                weighing.supports(
                    Weak,
                    "and of no Xid of another kind before it",
                    &error.event.origin,
                );
            }
            None => {
                weighing.supports(Moderate, statement, origin);
            }
        }
    }
}

/// What NVML counts.
fn health(gpu: &Seen<NvmlGpu>, weighing: &mut Weighing) {
    let name = name(gpu);
    let origin: &Origin = &gpu.origin;
    let health = &gpu.value.health;
    if health.remap_failed == Some(true) {
        weighing.confirms(format!("{name}: replacing a bad row has failed"), origin);
    }
    if health.remap_pending == Some(true) {
        weighing.supports(
            Strong,
            format!("{name}: a bad row waits for a reset to be replaced"),
            origin,
        );
        if health.remapped_uncorrectable.is_some_and(|rows| rows > 0) {
            weighing.supports(
                Moderate,
                format!("{name}: rows were replaced for uncorrectable errors"),
                origin,
            );
        }
    }
    match (health.uncorrectable_volatile, health.uncorrectable_aggregate) {
        (Some(count), _) if count > 0 => {
            weighing.supports(
                Strong,
                format!("{name} counts {count} uncorrectable errors since its last reset"),
                origin,
            );
            weighing.supports(
                Weak,
                "the counter starts anew with each reset, so these are recent",
                origin,
            );
        }
        (_, Some(count)) if count > 0 && !weighing.support.is_empty() => {
            weighing.supports(
                Weak,
                format!("{name} counts {count} uncorrectable errors in its life"),
                origin,
            );
        }
        _ => {}
    }
}

fn name(gpu: &Seen<NvmlGpu>) -> String {
    match (gpu.value.index, gpu.value.address) {
        (Some(index), _) => format!("GPU {index}"),
        (None, Some(address)) => format!("GPU {address}"),
        (None, None) => "the GPU".to_owned(),
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let index = facts
        .nvml
        .gpus
        .iter()
        .find(|gpu| gpu.value.health.remap_pending == Some(true))
        .and_then(|gpu| gpu.value.index)
        .map_or("INDEX".to_owned(), |index| index.to_string());
    let spent = facts.nvml.gpus.iter().any(|gpu| gpu.value.health.remap_failed == Some(true))
        || facts.log.xids().any(|(xid, _)| xid == 64);
    let mut remedy = Remedy::new(Impact::RestartsProcess, "every program on that GPU")
        .step_to(
            place,
            "nvidia-smi -q -d ROW_REMAPPER,ECC,PAGE_RETIREMENT",
            "pending rows, failures and counters, GPU by GPU",
        )
        .step_to(
            place,
            format!("stop what uses the GPU (fuser -v /dev/nvidia*), then nvidia-smi --gpu-reset -i {index}"),
            "the reset puts a spare row in the place of the bad one",
        )
        .step_to(place, "reboot, where the reset is refused", "GPUs on NVLink are reset together");
    if spent {
        remedy =
            remedy.step_to(Place::Machine, "have the card replaced", "its spare rows are used up");
    } else {
        remedy = remedy.step_to(
            place,
            "dcgmi diag -r 3 before work goes back to it; have the card replaced if the error returns",
            "one replaced row is ordinary ageing",
        );
    }
    remedy
        .undo("nothing to undo")
        .verify("nvidia-smi -q -d ROW_REMAPPER shows Pending: No and Remapping Failure Occurred: No, and no new Xid 48, 94 or 95 comes")
        .will_not_help("restarting the program alone after Xid 95: the GPU stays closed until it is reset")
        .will_not_help("nvidia-smi -p 0 or -p 1: clearing counters repairs nothing")
}
