//! `firmware.gsp-lacks-chip`

use facts::model::firmware::GspFile;
use facts::{Facts, Layer, Seen};
use nvabi::chip::Chip;

use super::{
    base_name, chips, fails_elsewhere, file_name, files_for_module, gpu_did_not_start, running,
};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "firmware.gsp-lacks-chip",
    layer: Layer::Firmware,
    claim: "the GSP firmware file carries no section for this chip",
    explanation: "A GSP firmware file is an ELF container with one signature section for each chip \
        family that it can start, and the driver takes the one of the GPU at hand. A driver that \
        is older than the GPU lacks its family, and RmInitAdapter fails while it starts the \
        firmware. The name of the file decides nothing: since branch 535 gsp_ga10x.bin serves \
        Ampere, Ada and Hopper as well, and Blackwell from 570 on (gb10x from 560), so a folder \
        with only gsp_ga10x.bin and gsp_tu10x.bin is complete.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed"],
    look_alikes: &[
        LookAlike {
            id: "firmware.gsp-missing",
            tell: "the kernel log says error -2 for the file: it is not there at all",
        },
        LookAlike {
            id: "uvm.hmm",
            tell: "the GPU reports a GSP version, so its firmware runs, and only CUDA fails",
        },
        LookAlike {
            id: "module.needs-open",
            tell: "the proprietary module is loaded on a GPU that only the open one drives",
        },
    ],
    references: &[
        "src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c",
        "kernel-open/common/inc/nv-firmware.h",
        "https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/gsp.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let chips = chips(facts);
    let without_gsp = !chips.is_empty() && chips.iter().all(|chip| chip.value.gsp_family.is_none());
    if without_gsp || fails_elsewhere(facts) {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    if let Some((version, origin)) = running(facts) {
        weighing.rules_out(format!("GSP firmware {version} is running"), &origin);
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    }
    if chips.is_empty() {
        weighing.needs(Need::GpuModel);
    }
    sections(facts, &chips, &mut weighing);
    neighbours(facts, &mut weighing);
    weighing
}

/// What the file that the driver would take says of each chip.
#[derive(PartialEq, Eq)]
enum Carries {
    /// Its family is among the sections.
    Yes,
    /// All sections were read, and it is not.
    No,
    /// The file's sections were not read, or not all of them.
    Unknown,
}

fn carries(file: &GspFile, family: &str) -> Carries {
    match file.families.value() {
        Some(families) if families.iter().any(|found| found == family) => Carries::Yes,
        Some(families) if file.families_complete && !families.is_empty() => Carries::No,
        Some(_) | None => Carries::Unknown,
    }
}

fn sections(facts: &Facts, chips: &[Seen<Chip>], weighing: &mut Weighing) {
    let files = files_for_module(facts);
    let mut carried = Vec::new();
    let mut undecided = chips.is_empty();
    for chip in chips {
        let (Some(family), Some(name)) = (chip.value.gsp_family, file_name(facts, &chip.value))
        else {
            continue;
        };
        let file = files.iter().find(|file| base_name(&file.path) == name);
        match file.map_or(Carries::Unknown, |file| carries(file, family)) {
            Carries::Yes => carried.extend(file.map(|file| (name, family, &file.origin))),
            Carries::No => lacking(facts, (name, family), file, weighing),
            Carries::Unknown => undecided = true,
        }
    }
    if undecided {
        weighing.needs(Need::GspSections);
        return;
    }
    // Only a machine all of whose chips are served is out of the question.
    if weighing.support.is_empty() {
        for (name, family, origin) in carried {
            weighing.rules_out(format!("{name} carries {family}"), origin);
        }
    }
}

/// A family that is not in the file; with a GPU that did not start it is the cause.
fn lacking(
    facts: &Facts,
    (name, family): (&str, &str),
    file: Option<&&GspFile>,
    weighing: &mut Weighing,
) {
    let Some(file) = file else { return };
    let version = file.version.as_ref().map_or(String::new(), |version| format!(" of {version}"));
    let statement = format!("{name}{version} has no .fwsignature_{family}");
    if gpu_did_not_start(facts).is_some() {
        weighing.confirms(statement, &file.origin);
    } else {
        weighing.supports(Strong, statement, &file.origin);
    }
}

fn neighbours(facts: &Facts, weighing: &mut Weighing) {
    if facts.firmware.running.is_empty() && facts.firmware.not_running.is_empty() {
        weighing.needs(Need::GspRunning);
    }
    if let Some(origin) = gpu_did_not_start(facts) {
        weighing.supports(Weak, "the GPU did not start", &origin);
    } else if let Some(gpu) = facts.nvml.gpus.first() {
        weighing.objects(Strong, "NVML lists GPUs, so they were initialised", &gpu.origin);
    }
    if let Some(origin) = readings::logged(facts, &["GSP_FW_MISSING"]) {
        weighing.objects(Strong, "the driver got no firmware image at all", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let first = chips(facts)
        .into_iter()
        .filter_map(|chip| chip.value.first_open_tag)
        .max_by_key(|tag| facts::version::DriverVersion::parse(tag));
    let needed = match first {
        Some(tag) => format!("install driver {tag} or later, module and libraries alike"),
        None => "install a driver that lists this GPU as supported, module and libraries alike"
            .to_owned(),
    };
    Remedy::new(Impact::Reboots, "everything on the machine, for one reboot")
        .step_to(place, needed, "its firmware carries the chip's family")
        .step(place, "reboot")
        .undo("install the former driver again")
        .verify("nvidia-smi -q | grep 'GSP Firmware' prints the new version, and gpudx is healthy")
        .will_not_help("firmware of another release beside this module: the versions must be equal")
        .will_not_help("renaming gsp_ga10x.bin after the chip: the driver asks for that name")
}
