//! `kernel.lacks-sva`

use facts::{Facts, Layer, Observed, Origin};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "kernel.lacks-sva",
    layer: Layer::Kernel,
    claim: "the kernel lacks the shared virtual addressing that a coherent GPU needs",
    explanation: "GB10 and the GPUs beside Grace walk the processor's page tables themselves (ATS), \
        and the kernel must offer that through the SMMU: CONFIG_ARM_SMMU_V3_SVA, which brings \
        CONFIG_IOMMU_SVA. Where a distribution's arm64 kernel is built without it, nvidia_uvm finds \
        a GPU that offers ATS and a kernel that does not, and answers NV_ERR_INVALID_DEVICE to \
        UVM_REGISTER_GPU. libcuda makes 3 of it, nothing is logged even with uvm_debug_prints=1, \
        and nvidia-smi works.",
    explains: &[SymptomId::CudaInitFails, SymptomId::FrameworkNoGpu],
    specializes: &["uvm.hmm"],
    look_alikes: &[
        LookAlike {
            id: "uvm.hmm",
            tell: "not a coherent GPU, or addressing mode HMM; uvm_disable_hmm=1 cures it",
        },
        LookAlike {
            id: "module.needs-open",
            tell: "the proprietary module is loaded, and nvidia-smi lists no GPU",
        },
        LookAlike { id: "process.fork-after-init", tell: "cuInit answers 0 in a fresh process" },
    ],
    references: &[
        "https://github.com/Start9Labs/start-technologies/pull/3693",
        "https://github.com/siderolabs/talos/issues/14087",
        "kernel-open/nvidia-uvm/uvm_ats_sva.h",
        "drivers/iommu/arm/Kconfig",
    ],
    weigh,
    remedy,
};

/// What names of coherent GPUs hold: GB10, and the boards with a Grace processor.
const COHERENT: [&str; 7] = ["GB10", "GH200", "GB200", "GB300", "Grace", "DGX Spark", "GX10"];

/// GB10's device id.
const GB10: u16 = 0x2e12;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some((name, origin)) = coherent(facts) else {
        let arm = facts.host.arch.value().is_some_and(|arch| arch == "aarch64");
        if arm && readings::init_failed_with(facts, code::NOT_INITIALIZED).is_some() {
            weighing.needs(Need::GpuModel);
        }
        return weighing;
    };
    if let Some(works) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", works);
        return weighing;
    }
    let failing = answer(facts, &mut weighing);
    let lacking = kernel(facts, failing, &mut weighing);
    modes(facts, &mut weighing);
    register(facts, &mut weighing);
    if failing || lacking {
        weighing.supports(Weak, format!("{name} shares the processor's page tables"), &origin);
    }
    weighing
}

/// A coherent GPU: its name and where it was seen.
fn coherent(facts: &Facts) -> Option<(String, Origin)> {
    let named = |name: &str| COHERENT.iter().any(|part| has_word(name, part));
    let listed = facts.nvml.gpus.iter().find_map(|gpu| {
        let name = gpu.value.name.as_deref()?;
        named(name).then(|| (name.to_owned(), gpu.origin.clone()))
    });
    let board = || {
        let boards = readings::boards(facts);
        let found = boards.into_iter().find(|board| named(&board.value.name))?;
        Some((found.value.name, found.origin))
    };
    let told = || {
        let found = facts.host.gpu_names.iter().find(|name| named(&name.value))?;
        Some((found.value.clone(), found.origin.clone()))
    };
    let by_id = || {
        let found = facts.host.gpu_ids.iter().find(|id| id.value == GB10)?;
        Some(("GB10".to_owned(), found.origin.clone()))
    };
    listed.or_else(board).or_else(told).or_else(by_id)
}

/// `GB10` is no part of `GB100`.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let next = text.get(at + word.len()..).and_then(|rest| rest.chars().next());
        next.is_none_or(|ch| !ch.is_ascii_digit())
    })
}

fn answer(facts: &Facts, weighing: &mut Weighing) -> bool {
    if let Some(trial) = readings::init_failed_with(facts, code::NOT_INITIALIZED) {
        let statement =
            "cuInit answers 3, which is what libcuda makes of any refusal of UVM_REGISTER_GPU";
        weighing.supports(Moderate, statement, &trial.origin);
        return true;
    }
    if let Some((other, trial)) = readings::init_failure(facts) {
        weighing.objects(Strong, format!("cuInit answers {other}, not 3"), &trial.origin);
    } else {
        weighing.needs(Need::CudaInit);
    }
    false
}

/// The kernel's configuration decides. Returns whether it lacks the feature.
fn kernel(facts: &Facts, failing: bool, weighing: &mut Weighing) -> bool {
    for name in ["ARM_SMMU_V3_SVA", "IOMMU_SVA"] {
        match facts.host.config(name) {
            Observed::Seen(seen) if seen.value.is_on() => {
                weighing.rules_out(format!("the kernel has CONFIG_{name}"), &seen.origin);
                return false;
            }
            Observed::Seen(seen) => {
                lacking(name, failing, &seen.origin, weighing);
                return true;
            }
            Observed::Absent(origin) => {
                lacking(name, failing, &origin, weighing);
                return true;
            }
            Observed::Denied(..) | Observed::Unknown(_) => {}
        }
    }
    weighing.needs(Need::KernelSva);
    false
}

fn lacking(name: &str, failing: bool, origin: &Origin, weighing: &mut Weighing) {
    let statement = format!("the kernel is built without CONFIG_{name}");
    if failing {
        weighing.confirms(statement, origin);
    } else {
        weighing.supports(Strong, statement, origin);
    }
}

/// The addressing mode that nvidia-smi shows: ATS where all is well.
fn modes(facts: &Facts, weighing: &mut Weighing) {
    for gpu in &facts.nvml.gpus {
        match gpu.value.addressing_mode.as_deref() {
            Some("ATS") => {
                weighing.rules_out("nvidia-smi shows addressing mode ATS", &gpu.origin);
            }
            Some("None") => {
                weighing.supports(Moderate, "nvidia-smi shows addressing mode None", &gpu.origin);
            }
            Some(_) | None => {}
        }
    }
}

fn register(facts: &Facts, weighing: &mut Weighing) {
    for failure in &facts.cuda.uvm_failures {
        let (call, status) = &failure.value;
        if call == "UVM_REGISTER_GPU" && status.contains("INVALID_DEVICE") {
            let statement = "UVM_REGISTER_GPU answers NV_ERR_INVALID_DEVICE";
            weighing.supports(Strong, statement, &failure.origin);
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::Reboots, "everything on the machine")
        .step_to(
            place,
            "grep -E 'ARM_SMMU_V3_SVA|IOMMU_SVA' /boot/config-*",
            "an installed kernel that has both set may be enough",
        )
        .step_to(
            place,
            "install the vendor's kernel (DGX OS: linux-nvidia), or build one with CONFIG_ARM_SMMU_V3_SVA=y",
            "the setting brings CONFIG_IOMMU_SVA with it",
        )
        .step_to(place, "reboot", "")
        .undo("boot the earlier kernel")
        .verify("nvidia-smi -q | grep Addressing prints ATS, and gpudx is healthy")
        .will_not_help("uvm_disable_hmm=1: on these machines UVM uses ATS and not HMM")
        .will_not_help("another driver release or framework: the kernel lacks the interface")
}
