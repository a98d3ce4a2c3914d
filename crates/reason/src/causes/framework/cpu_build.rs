//! `framework.cpu-build`

use facts::model::framework::FrameworkMessage;
use facts::{Facts, Layer, Observed};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "framework.cpu-build",
    layer: Layer::Framework,
    claim: "the framework is a build without CUDA",
    explanation: "The package that is installed holds no CUDA code, so it never asks the driver \
        anything: is_available() is False on a healthy machine, and .cuda() says \"Torch not \
        compiled with CUDA enabled\". A resolver takes such a build when no CUDA build fits the \
        Python, platform or version asked for, when another package pins it, or when the index or \
        channel offers no other. The version ends in +cpu, or torch.version.cuda is None.",
    explains: &[SymptomId::FrameworkNoGpu, SymptomId::FrameworkNoCode],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "framework.driver-too-old",
            tell: "torch.version.cuda is a version, and the message names the driver's",
        },
        LookAlike {
            id: "framework.lacks-arch",
            tell: "is_available() is True, and the first kernel fails",
        },
        LookAlike {
            id: "library.missing",
            tell: "torch.version.cuda is a version, and libcuda.so.1 cannot be loaded",
        },
    ],
    references: &[
        "https://pytorch.org/get-started/locally/",
        "https://github.com/pytorch/pytorch/issues/30664",
        "https://github.com/valeoai/xmuda/issues/19",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let message = facts
        .framework
        .messages
        .iter()
        .find(|(message, _)| *message == FrameworkMessage::NotCompiledWithCuda);
    if let Some((_, origin)) = message {
        weighing.confirms("the framework says that it was built without CUDA", origin);
    }
    no_accelerator(facts, &mut weighing);
    let unavailable = facts.framework.torch_available.value() == Some(&false);
    if let Observed::Seen(torch) = &facts.framework.torch {
        let version = torch.value.version.as_deref().unwrap_or("");
        let by_version = version.contains("+cpu").then_some(None);
        match torch.value.cuda.or(by_version) {
            Some(None) => {
                let statement = match version {
                    "" => "torch.version.cuda is None".to_owned(),
                    version => format!("torch {version} is a build without CUDA"),
                };
                if unavailable || message.is_some() {
                    weighing.confirms(statement, &torch.origin);
                } else {
                    weighing.supports(Strong, statement, &torch.origin);
                }
            }
            Some(Some(cuda)) => {
                let statement = format!("torch is built for CUDA {cuda}");
                if message.is_none() {
                    weighing.rules_out(statement, &torch.origin);
                } else {
                    // Another package than PyTorch may be the one without.
                    weighing.objects(Weak, statement, &torch.origin);
                }
            }
            None if unavailable && message.is_none() => {
                weighing.needs(Need::FrameworkCuda);
            }
            None => {}
        }
    } else if unavailable && message.is_none() {
        weighing.needs(Need::FrameworkCuda);
    }
    if !weighing.support.is_empty()
        && let Some(origin) = readings::nvml_works(facts)
    {
        weighing.supports(Weak, "nvidia-smi works: the driver is not what is lacking", &origin);
    }
    weighing
}

/// JAX finds no accelerator. Where another framework lists the GPU in the same surroundings, it is
/// JAX's own package that lacks CUDA.
fn no_accelerator(facts: &Facts, weighing: &mut Weighing) {
    let Some(origin) = facts.framework.said(&FrameworkMessage::NoAccelerator) else { return };
    let listed = facts.framework.gpu_listed.as_seen().map(|seen| &seen.origin);
    let strength = if listed.is_some() { Strong } else { Weak };
    weighing.supports(strength, "the framework finds no GPU and goes on without", origin);
    if let Some(other) = listed.or_else(|| readings::cuda_works(facts)) {
        weighing.supports(Moderate, "another framework lists the GPU", other);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let conda = facts.framework.messages.iter().any(|(_, origin)| origin.excerpt.contains("_cpu"));
    let index = match readings::driver_cuda(facts).map(|seen| (seen.value.major, seen.value.minor))
    {
        Some(cuda) if cuda >= (13, 0) => "cu130",
        Some((12, 8..)) => "cu128",
        Some((12, _)) => "cu126",
        Some((11, _)) => "cu118",
        _ => "cu128",
    };
    let pip = format!(
        "pip uninstall -y torch; pip install torch --index-url https://download.pytorch.org/whl/{index}"
    );
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program in question").step_to(
        Place::Program,
        pip,
        "a build with CUDA for this driver; keep to one index",
    );
    if conda {
        remedy = remedy.step_to(
            Place::Program,
            "or conda install -c conda-forge 'pytorch=*=*cuda*'",
            "the build string asks for CUDA; a conflict then says what stands in its way",
        );
    }
    remedy
        .undo("install the former package again")
        .verify("python3 -c 'import torch; print(torch.version.cuda, torch.cuda.is_available())' prints a version and True")
        .will_not_help("another toolkit or driver: the package itself has no CUDA code")
        .will_not_help("CUDA_VISIBLE_DEVICES or LD_LIBRARY_PATH: nothing in this build reads them")
}
