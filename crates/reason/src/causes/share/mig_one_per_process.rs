//! `share.mig-one-per-process`

use facts::model::framework::FrameworkMessage;
use facts::{Facts, Layer, Observed, Origin};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "share.mig-one-per-process",
    layer: Layer::Share,
    claim: "MIG is on: a process sees at most one instance, and none where none was made",
    explanation: "With MIG mode on a GPU exists for CUDA only as its instances, and CUDA lists at \
        most one of them to a process, whatever NVML counts: the one that CUDA_VISIBLE_DEVICES \
        names first, else the first of all. Frameworks that count by NVML then reach for a second \
        device and fail in an assertion, or see one GPU where seven are listed. A GPU whose mode is \
        on and on which nobody has made an instance offers no device at all.",
    explains: &[
        SymptomId::GpuMissing,
        SymptomId::CudaInitFails,
        SymptomId::CudaContextFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["process.visible-devices"],
    look_alikes: &[
        LookAlike {
            id: "process.visible-devices",
            tell: "MIG mode is off, and the variable names what is not there",
        },
        LookAlike {
            id: "process.index-remapped",
            tell: "MIG mode is off; a library renumbers devices after the start",
        },
        LookAlike {
            id: "share.compute-mode",
            tell: "46 with a mode other than Default, and MIG off",
        },
    ],
    references: &[
        "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
        "https://github.com/pytorch/pytorch/issues/130181",
        "https://github.com/pytorch/pytorch/issues/131650",
        "https://github.com/pytorch/pytorch/issues/102715",
        "https://github.com/pytorch/pytorch/issues/107300",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(on) = mig_on(facts) else {
        let off = facts.nvml.gpus.iter().all(|gpu| gpu.value.mig == Some(false));
        match facts.nvml.gpus.first() {
            Some(first) if off && !facts.share.index_beyond_count.is_empty() => {
                weighing.rules_out("MIG mode is off on every GPU", &first.origin);
            }
            _ if !facts.share.index_beyond_count.is_empty() => {
                weighing.needs(Need::MigDevices);
            }
            _ => return Weighing::not_applicable(),
        }
        return weighing;
    };
    no_instance(facts, &on, &mut weighing);
    one_of_many(facts, &mut weighing);
    if weighing.support.is_empty() {
        return weighing;
    }
    weighing.supports(Moderate, "MIG mode is on", &on);
    weighing
}

/// Where it was seen that MIG mode is on.
fn mig_on(facts: &Facts) -> Option<Origin> {
    let gpu = facts.nvml.gpus.iter().find(|gpu| gpu.value.mig == Some(true));
    let device = facts.share.mig_devices.as_seen().map(|seen| seen.origin.clone());
    // nvidia-smi draws the table of MIG devices, the empty one too, only when the mode is on.
    let none = facts.share.mig_devices.absent();
    let table = none.filter(|origin| origin.excerpt.contains("No MIG devices found")).cloned();
    let told = facts.share.mig_mode_told.as_seen().filter(|seen| seen.value);
    let told = told.map(|seen| seen.origin.clone());
    gpu.map(|gpu| gpu.origin.clone()).or(device).or(table).or(told)
}

/// The mode is on, and nobody made an instance (or none is given to this process): CUDA finds
/// nothing.
fn no_instance(facts: &Facts, on: &Origin, weighing: &mut Weighing) {
    if facts.share.mig_devices.is_seen() {
        return;
    }
    let nothing = readings::init_failed_with(facts, code::NO_DEVICE)
        .map(|trial| trial.origin.clone())
        .or_else(|| {
            let zero = facts.cuda.count.as_seen().filter(|count| count.value == 0)?;
            Some(zero.origin.clone())
        })
        .or_else(|| {
            let available = facts.framework.torch_available.as_seen()?;
            (!available.value).then(|| available.origin.clone())
        })
        .or_else(|| facts.framework.said(&FrameworkMessage::FindsNoGpu).cloned());
    let Some(nothing) = nothing else { return };
    let every = facts.nvml.gpus.iter().all(|gpu| gpu.value.mig == Some(true));
    let statement = "MIG mode is on and there is no MIG device";
    match &facts.share.mig_devices {
        Observed::Absent(none) if every => {
            weighing.confirms(statement, none);
        }
        Observed::Absent(none) => {
            weighing.supports(Strong, statement, none);
        }
        _ if every => {
            weighing.supports(Strong, "MIG mode is on on every GPU", on);
            weighing.needs(Need::MigDevices);
        }
        _ => return,
    }
    weighing.supports(Moderate, "CUDA finds no device", &nothing);
}

/// Several instances, of which CUDA lists one.
fn one_of_many(facts: &Facts, weighing: &mut Weighing) {
    if let Some(said) = facts.share.index_beyond_count.first() {
        let statement = "the framework reaches for a device that CUDA does not list";
        weighing.supports(Strong, statement, &said.origin);
    }
    let devices = facts.share.mig_devices.value().map_or(0, Vec::len);
    if let Some(count) = facts.cuda.count.as_seen()
        && usize::try_from(count.value).is_ok_and(|count| count < devices)
    {
        let statement = format!("CUDA lists {} of {devices} MIG devices", count.value);
        weighing.confirms(statement, &count.origin);
    }
    let named = facts.process.env("CUDA_VISIBLE_DEVICES");
    if let Observed::Seen(seen) = &named
        && seen.value.matches("MIG-").count() > 1
    {
        let statement = "CUDA_VISIBLE_DEVICES names several MIG devices, of which one counts";
        weighing.supports(Strong, statement, &seen.origin);
    }
    let cured = facts.cuda.trials.iter().find(|trial| {
        let under = trial.under.as_deref().unwrap_or("");
        trial.ok() && under.contains("CUDA_VISIBLE_DEVICES") && under.contains("MIG")
    });
    if let Some(trial) = cured {
        let statement = "it works with CUDA_VISIBLE_DEVICES set to one MIG device";
        weighing.supports(Strong, statement, &trial.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let uuid = facts
        .share
        .mig_devices
        .value()
        .and_then(|devices| devices.iter().find_map(|device| device.uuid.clone()));
    let uuid = uuid.unwrap_or_else(|| "MIG-UUID".to_owned());
    let remedy = Remedy::new(Impact::RestartsProcess, "the program in question");
    let remedy = if facts.share.mig_devices.absent().is_some() {
        remedy
            .step_to(place, "nvidia-smi mig -lgip", "the profiles that this GPU offers")
            .step_to(
                place,
                "nvidia-smi mig -cgi PROFILE -C",
                "makes an instance with its compute instance",
            )
            .step_to(place, "or nvidia-smi -mig 0", "the whole GPU again; some need a reset for it")
    } else {
        remedy
            .step_to(
                Place::Program,
                format!("export CUDA_VISIBLE_DEVICES={uuid}"),
                "before the program starts; one process an instance, UUIDs by nvidia-smi -L",
            )
            .step_to(
                place,
                "or one larger instance, or nvidia-smi -mig 0",
                "where one process needs more than one instance offers",
            )
    };
    remedy
        .undo("unset CUDA_VISIBLE_DEVICES; nvidia-smi -mig 1 and the former instances")
        .verify("torch.cuda.device_count() is 1, and an allocation on cuda:0 works")
        .will_not_help("listing several MIG UUIDs: only the first counts")
        .will_not_help("another PyTorch: CUDA itself lists one instance to a process")
}
