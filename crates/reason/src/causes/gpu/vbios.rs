//! `gpu.vbios`

use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "gpu.vbios",
    layer: Layer::Gpu,
    claim: "the card's own firmware never finishes booting, or its VBIOS is unfit",
    explanation: "Before any driver the card boots firmware of its own from its flash memory. When \
        that does not come to its end (GFW_BOOT with a progress below 0xff), or when the image lacks \
        the tables that the driver's security step needs (FWSEC), RmInitAdapter fails with 0x62, and \
        it looks as though the GSP firmware file were at fault. The file is not even reached. A \
        flashed or damaged VBIOS, a wrong ROM file given to a virtual machine, a board defect or \
        poor power are behind it.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::NvmlFails,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed", "firmware.gsp-timeout", "gpu.needs-reset"],
    look_alikes: &[
        LookAlike {
            id: "firmware.gsp-missing",
            tell: "the kernel could not load the file (error -2), and the card itself has booted",
        },
        LookAlike {
            id: "firmware.gsp-timeout",
            tell: "the GSP ran and stopped answering (Xid 119), or WPR2 is still up",
        },
        LookAlike { id: "gpu.power-cable", tell: "the driver speaks of power cables" },
        LookAlike {
            id: "module.rm-init-failed",
            tell: "no line about GFW_BOOT or FWSEC stands before the failure",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/789",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/943",
        "src/nvidia/src/kernel/gpu/gsp/kernel_gsp_fwsec.c",
        "src/nvidia/src/kernel/gpu/arch/turing/kern_gpu_tu102.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    own_firmware(facts, &mut weighing);
    image(facts, &mut weighing);
    if weighing.support.is_empty() {
        if let Some(origin) = readings::cuda_works(facts) {
            weighing.rules_out("cuInit answers 0", origin);
        }
        return weighing;
    }
    if let Some(event) = facts.log.first(&["FWSEC_VBIOS_NOTE", "GSP_GFW"]) {
        let version = event.get("v").or_else(|| event.get("vb")).unwrap_or("of unknown version");
        weighing.supports(Weak, format!("the VBIOS in question is {version}"), &event.origin);
    }
    if let Some(event) = facts.log.first(&["RMINIT_FAILED"]) {
        weighing.supports(Weak, "RmInitAdapter fails after it", &event.origin);
    }
    if let Some(told) = gpu_state::hypervisor(facts) {
        let statement = "in a guest, a GPU that its host did not reset looks the same";
        weighing.objects(Weak, statement, &told.origin);
    }
    if readings::logged(facts, &["GSP_WPR2_UP"]).is_some()
        || readings::logged(facts, &["FSP_TIMEOUT"]).is_some()
    {
        let origin = readings::logged(facts, &["GSP_WPR2_UP", "FSP_TIMEOUT"]);
        if let Some(origin) = origin {
            let statement = "the GPU is still in the state that an earlier driver left";
            weighing.objects(Strong, statement, origin);
        }
    }
    if !facts.log.read.is_seen() {
        weighing.needs(Need::KernelLog);
    }
    weighing
}

/// The boot that the card does by itself.
fn own_firmware(facts: &Facts, weighing: &mut Weighing) {
    let waits = facts.log.with("GFW_BOOT_WAIT").find(|event| event.get("p") != Some("0xff"));
    if let Some(event) = waits {
        let progress = event.get("p").unwrap_or("?");
        let statement = format!("the card's own boot stands still at progress {progress}");
        weighing.supports(Strong, statement, &event.origin);
    }
    if let Some(event) = facts.log.first(&["GSP_GFW"]) {
        let statement = "the driver waited in vain for the card's own boot";
        weighing.supports(Strong, statement, &event.origin);
    }
}

/// The image in the card's flash memory.
fn image(facts: &Facts, weighing: &mut Weighing) {
    if let Some(event) = facts.log.first(&["FWSEC_INTERFACE"]) {
        let statement = "the VBIOS lacks the interface that the security step needs (FWSEC)";
        weighing.supports(Strong, statement, &event.origin);
    }
    if let Some(event) = facts.log.first(&["VBIOS_ROM"]) {
        let statement = "the driver finds no VBIOS in the card's ROM";
        weighing.supports(Strong, statement, &event.origin);
    }
    if let Some(event) = facts.log.first(&["GSP_FWSEC"]) {
        weighing.supports(Moderate, "the security step from the VBIOS failed", &event.origin);
    }
    let posted = facts
        .log
        .with("RMINIT_FAILED")
        .find(|event| matches!(event.get("code"), Some("0x30" | "0x31" | "0x32")));
    if let Some(event) = posted {
        let statement = "RmInitAdapter fails at the VBIOS";
        weighing.supports(Moderate, statement, &event.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let mut remedy = Remedy::new(Impact::PowerCycle, "everything on the machine while it is off")
        .step_to(
            place,
            "shut down, take the mains away for half a minute, start again",
            "the card boots its firmware only when its power comes back",
        );
    if gpu_state::hypervisor(facts).is_some() {
        remedy = remedy.step_to(
            Place::Hypervisor,
            "give the guest no ROM file (romfile=, <rom file=…/>), or one read from this very card",
            "another card's image lacks what this one needs",
        );
    }
    remedy
        .step_to(
            Place::Machine,
            "check seat and power plugs; try the card in another slot and another machine",
            "poor power and contacts stop the boot as well",
        )
        .step_to(
            Place::Machine,
            "put the maker's own VBIOS for exactly this board back",
            "a flashed image is the first suspect where FWSEC is named",
        )
        .step_to(Place::Machine, "have the card replaced", "when it fails in another machine too")
        .undo("nothing to undo")
        .verify("dmesg has no line about GFW_BOOT or FWSEC, and nvidia-smi lists the GPU")
        .will_not_help("installing the driver or its firmware files again: they are not reached")
        .will_not_help("blacklisting nouveau or switching Secure Boot off")
}
