//! `platform.vgpu-unlicensed`

use facts::model::platform::LicenseWord;
use facts::{Facts, Layer, Observed};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "platform.vgpu-unlicensed",
    layer: Layer::Platform,
    claim: "the licence for the virtual GPU was not obtained",
    explanation: "A vGPU works at full speed for some minutes after boot; without a licence it is \
        then slowed down, and after that the driver makes no more contexts: CUDA answers 46, 'all \
        CUDA-capable devices are busy or unavailable', on an idle GPU that nvidia-smi shows as \
        healthy. The daemon nvidia-gridd asks for the licence with a token or from a server, and a \
        network, a clock, a token or a server that changed is what it usually fails at. In a cloud \
        this is often the provider's to put right.",
    explains: &[
        SymptomId::CudaContextFails,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitSlow,
        SymptomId::FrameworkNoGpu,
        SymptomId::NvmlFails,
    ],
    specializes: &["gpu.needs-reset"],
    look_alikes: &[
        LookAlike {
            id: "share.compute-mode",
            tell: "the compute mode is exclusive, and another process holds the GPU",
        },
        LookAlike {
            id: "gpu.needs-reset",
            tell: "a whole GPU, for which the driver asks for a recovery",
        },
        LookAlike {
            id: "platform.vgpu-version-skew",
            tell: "host and guest refuse each other by version, and the GPU never works",
        },
    ],
    references: &[
        "https://github.com/DDMAL/Rodan/issues/1332",
        "https://github.com/Azure/AKS/issues/4870",
        "https://github.com/NVIDIA/gpu-operator/issues/628",
        "https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide/",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let guest = gpu_state::vgpu_guest(facts);
    let Some(guest) = guest else { return Weighing::not_applicable() };
    let mut weighing = Weighing::new();
    let refused =
        facts.cuda.plain().find(|trial| trial.failure_code() == Some(code::DEVICE_UNAVAILABLE));
    let status = status(facts, refused.is_some(), &mut weighing);
    if let Some(trial) = refused {
        weighing.supports(
            Moderate,
            "a context is refused with 46, busy or unavailable",
            &trial.origin,
        );
        idle(facts, &mut weighing);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    weighing.supports(Moderate, "the GPU is a virtual one", &guest);
    if readings::context_failure(facts).is_none()
        && let Some(origin) = readings::cuda_works(facts)
    {
        weighing.objects(Moderate, "CUDA works", origin);
    }
    if !status {
        weighing.needs(Need::VgpuLicense);
    }
    weighing
}

/// What is shown or logged of the licence; true when something is.
fn status(facts: &Facts, refused: bool, weighing: &mut Weighing) -> bool {
    let shown =
        facts.nvml.gpus.iter().find_map(|gpu| Some((gpu.value.license.as_deref()?, &gpu.origin)));
    if let Some((status, origin)) = shown.filter(|(status, _)| *status != "N/A") {
        let lower = status.to_lowercase();
        if lower.starts_with("licensed") {
            weighing.rules_out(format!("nvidia-smi: licence status '{status}'"), origin);
        } else if lower.starts_with("unlicensed") && refused && !lower.contains("unrestricted") {
            weighing.confirms(format!("nvidia-smi: licence status '{status}'"), origin);
        } else if lower.starts_with("unlicensed") {
            weighing.supports(Strong, format!("nvidia-smi: licence status '{status}'"), origin);
        }
        return true;
    }
    let last = facts.platform.licenses.last();
    let Some(last) = last else { return false };
    let (word, said) = &last.value;
    match word {
        LicenseWord::Licensed => {
            weighing.rules_out("nvidia-gridd acquired its licence", &last.origin);
        }
        LicenseWord::Refused => {
            weighing.supports(Strong, format!("the licence daemon says: {said}"), &last.origin);
        }
        LicenseWord::Unlicensed => {
            weighing.supports(Strong, "the input says that the licence is not there", &last.origin);
        }
    }
    true
}

/// Nothing else explains the refusal: the mode is open and nobody works on the GPU.
fn idle(facts: &Facts, weighing: &mut Weighing) {
    let mode = facts
        .nvml
        .gpus
        .iter()
        .find_map(|gpu| Some((gpu.value.compute_mode.as_deref()?, &gpu.origin)));
    match mode {
        Some(("Default", origin)) => {
            weighing.supports(Weak, "the compute mode is Default", origin);
        }
        Some((mode, origin)) => {
            weighing.objects(Strong, format!("the compute mode is {mode}"), origin);
        }
        None => {}
    }
    if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(Weak, "NVML shows the GPU as healthy", &origin);
    }
    if let Observed::Seen(seen) = &facts.nvml.init
        && let Some(asked) = gpu_state::recovery_action(facts)
    {
        weighing.objects(
            Strong,
            "the driver asks for a recovery",
            if asked.origin.line > 0 { &asked.origin } else { &seen.origin },
        );
    }
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsService, "nothing that works now")
        .step_to(Place::Guest, "nvidia-smi -q | grep -A2 'Licensed Product'; journalctl -u nvidia-gridd -b", "the status, and why it was refused")
        .step_to(
            Place::Guest,
            "put a valid client token into /etc/nvidia/ClientConfigToken/, set FeatureType in /etc/nvidia/gridd.conf, check the clock",
            "tokens expire, and a wrong time makes a valid one invalid",
        )
        .step_to(Place::Guest, "systemctl restart nvidia-gridd", "asks again")
        .step_to(
            Place::Hypervisor,
            "in a cloud, ask the provider; else look at the licence server: reachable on its port, licences left",
            "the guest cannot put a server right",
        )
        .undo("nothing to undo")
        .verify("nvidia-smi -q prints 'License Status: Licensed', and a context can be made")
        .will_not_help("restarting the program or killing others: nobody holds the GPU")
        .will_not_help("another driver, toolkit or framework in the guest")
        .will_not_help("nvidia-smi -c DEFAULT: the compute mode is not what refuses")
}
