//! `module.rm-init-failed`

use facts::model::log::LogEvent;
use facts::{Facts, Layer};
use nvabi::rm_init::{self, RmInitTriple};

use super::gpus_down;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "module.rm-init-failed",
    layer: Layer::Module,
    claim: "the driver cannot bring the GPU up (RmInitAdapter failed)",
    explanation: "When a GPU is first opened, the nvidia module runs RmInitAdapter, some thirty steps \
        from mapping its registers to starting its firmware. If one fails, the log has a triple: the \
        step, the status it failed with, and a line of the driver's source. Every later open tries \
        again, so that the first failure since the boot tells most: those after it often only meet \
        what the first left behind, such as 'WPR2 already up'. This cause stands for failures that \
        no more particular cause explains.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "firmware.gsp-missing",
            tell: "step 0x61, and the loader's error -2 before it",
        },
        LookAlike {
            id: "firmware.gsp-timeout",
            tell: "Xid 119 or a heartbeat line before it, or WPR2 up at the first attempt since boot",
        },
        LookAlike {
            id: "module.needs-open",
            tell: "the line 'requires use of the NVIDIA open kernel modules' before it",
        },
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "the GPU's registers read as all ones, or a line says that it fell off the bus",
        },
        LookAlike { id: "gpu.vbios", tell: "a GFW_BOOT or FWSEC line before it" },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/876",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1332",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/789",
        "src/nvidia/arch/nvalloc/unix/src/osinit.c",
    ],
    weigh,
    remedy,
};

/// Lines of steps that fail for reasons outside this catalogue: the GPU's security processor, and
/// confidential computing.
const UNSETTLED: [&str; 6] =
    ["FSP_FAIL", "FSP_TIMEOUT", "FSP_FUSE", "CC_SPDM", "CC_DMA_DECRYPT", "CC_FATAL"];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let first = facts.log.with("RMINIT_FAILED").next();
    let any = first.or_else(|| facts.log.with("RM_INIT_ADAPTER").next());
    let Some(event) = any else {
        if !facts.log.read.is_seen() && gpus_down(facts).is_some() {
            weighing.needs(Need::KernelLog);
        }
        return weighing;
    };
    if let Some(origin) = came_up(facts) {
        weighing.rules_out("every GPU came up later", &origin);
        return weighing;
    }
    match triple(event) {
        Some(triple) => {
            weighing.supports(Strong, decoded(facts, event, &triple), &event.origin);
        }
        None => {
            weighing.supports(Moderate, "rm_init_adapter failed, without a triple", &event.origin);
        }
    }
    company(facts, &mut weighing);
    weighing
}

/// Where it was seen that no GPU is lacking after all.
fn came_up(facts: &Facts) -> Option<facts::Origin> {
    let works = readings::cuda_works(facts)?;
    let on_bus = facts.pci.gpus().count();
    let listed = facts.nvml.gpus.len().max(facts.nvml.count.value().map_or(0, |n| *n as usize));
    (listed >= on_bus.max(1)).then(|| works.clone())
}

fn triple(event: &LogEvent) -> Option<RmInitTriple> {
    let text = format!("{}:{}:{}", event.get("code")?, event.get("status")?, event.get("line")?);
    rm_init::decode_triple(&text)
}

/// The triple in words.
fn decoded(facts: &Facts, event: &LogEvent, triple: &RmInitTriple) -> String {
    let branch = readings::driver_version(facts).map(|seen| seen.value.branch());
    let step = triple.step(branch).map_or_else(
        || format!("step {:#04x}", triple.code),
        |step| format!("step {:#04x} ({}: {})", triple.code, step.name, step.meaning),
    );
    let status = triple.status_name().map_or_else(
        || format!("status {:#04x}", triple.status_code),
        |name| format!("{:#04x} ({name})", triple.status_code),
    );
    let gpu = event.device.map_or(String::new(), |address| format!(" of {address}"));
    format!("RmInitAdapter{gpu} failed at {step} with {status}")
}

/// What stands beside it.
fn company(facts: &Facts, weighing: &mut Weighing) {
    if let Some(origin) = readings::logged(facts, &["RM_INIT_ADAPTER"]) {
        weighing.supports(Weak, "the GPU could not be opened", origin);
    }
    if facts.nvml.gpus.is_empty()
        && let Some((number, origin)) = readings::nvml_failure(facts)
    {
        weighing.supports(Weak, format!("NVML answers {number}"), &origin);
    }
    if let Some(trial) = readings::init_failed_with(facts, readings::code::NO_DEVICE) {
        weighing.supports(Weak, "cuInit answers 100, no device", &trial.origin);
    }
    if let Some(seen) = facts.nvml.count.as_seen().filter(|seen| seen.value == 0) {
        weighing.supports(Weak, "NVML counts no GPU", &seen.origin);
    }
    if let Some(odd) = readings::odd_gpu(facts) {
        weighing.supports(Weak, odd.value, &odd.origin);
    }
    if let Some(event) = facts.log.first(&UNSETTLED) {
        let text = facts::observed::clean_excerpt(&event.text);
        let statement = format!("the failure began elsewhere, and not settled is why: {text}");
        weighing.objects(Moderate, statement, &event.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let first = facts.log.with("RMINIT_FAILED").next().and_then(triple);
    let branch = readings::driver_version(facts).map(|seen| seen.value.branch());
    let causes = first.and_then(|triple| triple.step(branch)).map_or("", |step| step.causes);
    let remedy = Remedy::new(Impact::PowerCycle, "everything on the machine")
        .step_to(
            place,
            "dmesg | grep -iE 'nvrm|nvidia' | head -60",
            "from the first line since boot: the first failure tells most, the later ones repeat",
        )
        .step_to(
            Place::Machine,
            "switch the machine off, unplug it for half a minute, switch it on",
            "a warm reboot keeps the state of a GPU whose firmware hangs",
        );
    let remedy = if causes.is_empty() {
        remedy
    } else {
        remedy.step_to(place, format!("check what this step depends on: {causes}"), "")
    };
    let remedy = match first {
        // A regression of the firmware image that was bisected on a laptop's GB206.
        Some(RmInitTriple { code: 0x62, status_code: 0x1f, .. }) => remedy.step_to(
            place,
            "try driver 570.172.08",
            "0x62:0x1f on laptop Blackwell came with 570.190 and is in later branches as well",
        ),
        _ => remedy.step_to(
            place,
            "try the newest release of this driver branch, then of the next",
            "several such failures were faults of single releases",
        ),
    };
    remedy
        .undo("install the earlier release again")
        .verify("dmesg has no new RmInitAdapter line after nvidia-smi -L, which lists the GPU")
        .will_not_help("another CUDA toolkit or framework: the GPU does not start beneath them")
        .will_not_help("chmod or new device nodes: the open reaches the driver and fails there")
}
