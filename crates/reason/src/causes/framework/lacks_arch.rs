//! `framework.lacks-arch`

use facts::model::framework::FrameworkMessage;
use facts::{Facts, Layer, Observed, Seen};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "framework.lacks-arch",
    layer: Layer::Framework,
    claim: "the framework's build has no code for this GPU's compute capability",
    explanation: "GPU code is compiled for compute capabilities. Machine code for sm_90 runs on \
        9.0 and later minor versions of 9, never on 10 or 12; only PTX (compute_90) can be \
        translated for what is newer. A build without either loads, counts the GPU, even says \
        is_available() True, and fails at the first kernel with 209, \"no kernel image is \
        available\". Blackwell needs a build with CUDA 12.8 or newer, and builds with 13.0 have \
        dropped everything before Turing (7.5).",
    explains: &[SymptomId::FrameworkNoCode, SymptomId::CudaContextFails],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "framework.ptx-too-new",
            tell: "error 222: there is PTX, and the driver is too old for it",
        },
        LookAlike {
            id: "framework.driver-too-old",
            tell: "error 35 at the first call of the runtime, before any kernel",
        },
        LookAlike {
            id: "framework.toolkit-mismatch",
            tell: "a library does not load at all: undefined symbol, or a missing libcudart",
        },
    ],
    references: &[
        "https://github.com/pytorch/pytorch/issues/167244",
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#binary-compatibility",
        "https://docs.nvidia.com/cuda/blackwell-compatibility-guide/",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    for (message, origin) in &facts.framework.messages {
        match message {
            FrameworkMessage::CapabilityNotCompatible { capability, .. } => {
                let statement = format!("the framework says that it has no code for {capability}");
                weighing.confirms(statement, origin);
            }
            FrameworkMessage::NoKernelImage => {
                let statement = "no kernel image is available for this GPU";
                weighing.supports(Strong, statement, origin);
            }
            _ => {}
        }
    }
    if let Some(trial) =
        facts.cuda.plain().find(|trial| trial.failure_code() == Some(code::NO_BINARY_FOR_GPU))
    {
        weighing.supports(Strong, "error 209: no binary for this GPU", &trial.origin);
    }
    coverage(facts, &mut weighing);
    weighing
}

/// What the build carries against what the GPUs are.
fn coverage(facts: &Facts, weighing: &mut Weighing) {
    let gpus = capabilities(facts);
    let failing = !weighing.support.is_empty();
    if gpus.is_empty() {
        if failing {
            weighing.needs(Need::GpuModel);
        }
        return;
    }
    let Some(build) = Build::of(facts) else {
        if failing {
            weighing.needs(Need::FrameworkArch);
        }
        return;
    };
    if let Some(gpu) = gpus.iter().find(|gpu| build.value.runs_on(gpu.value) == Some(false)) {
        let (major, minor) = gpu.value;
        let statement =
            format!("{} does not cover compute capability {major}.{minor}", build.value.shown);
        match (failing, build.value.listed) {
            (true, true) => weighing.confirms(statement, &build.origin),
            _ => weighing.supports(Strong, statement, &build.origin),
        };
        let statement = format!("the GPU has compute capability {major}.{minor}");
        weighing.supports(Moderate, statement, &gpu.origin);
        return;
    }
    let covered = gpus.iter().all(|gpu| build.value.runs_on(gpu.value) == Some(true));
    if let (true, Some(gpu)) = (covered, gpus.first()) {
        let (major, minor) = gpu.value;
        let statement = format!("{} covers compute capability {major}.{minor}", build.value.shown);
        if failing {
            // The framework has code, and an extension or another package may have none.
            weighing.objects(Moderate, statement, &build.origin);
        } else {
            weighing.rules_out(statement, &build.origin);
        }
    }
}

/// The GPUs' compute capabilities: as CUDA tells them, as the framework complained, or by product.
fn capabilities(facts: &Facts) -> Vec<Seen<(u32, u32)>> {
    let by_cuda = facts.cuda.devices.iter();
    let mut found: Vec<Seen<(u32, u32)>> = by_cuda
        .filter_map(|device| Some(Seen::new(device.value.capability?, device.origin.clone())))
        .collect();
    if found.is_empty() {
        found.extend(facts.framework.messages.iter().filter_map(|(message, origin)| {
            let FrameworkMessage::CapabilityNotCompatible { capability, .. } = message else {
                return None;
            };
            Some(Seen::new(Code::parse(capability)?.capability, origin.clone()))
        }));
    }
    if found.is_empty() {
        let chips = readings::chips(facts).into_iter();
        found.extend(chips.map(|chip| Seen::new(chip.value.capability, chip.origin)));
    }
    if found.is_empty() {
        found.extend(facts.host.gpu_names.iter().filter_map(|name| {
            let product = nvabi::pci_id::by_product_name(&name.value)?;
            Some(Seen::new(product.capability, name.origin.clone()))
        }));
    }
    found
}

/// One entry of an architecture list.
struct Code {
    capability: (u32, u32),
    /// PTX and not machine code.
    ptx: bool,
    /// `a`: runs on this capability alone; `f`: on this and later ones of its family.
    exact: bool,
}

impl Code {
    /// Reads `sm_90`, `sm_90a`, `sm_100f`, `compute_120`.
    fn parse(name: &str) -> Option<Code> {
        let (ptx, digits) = match name.trim().strip_prefix("sm_") {
            Some(digits) => (false, digits),
            None => (true, name.trim().strip_prefix("compute_")?),
        };
        let exact = digits.ends_with('a');
        let number: u32 = digits.trim_end_matches(['a', 'f']).parse().ok()?;
        (10..1000).contains(&number).then_some(Code {
            capability: (number / 10, number % 10),
            ptx,
            exact,
        })
    }

    fn runs_on(&self, gpu: (u32, u32)) -> bool {
        if self.exact {
            return self.capability == gpu;
        }
        let older_or_same = self.capability <= gpu;
        older_or_same && (self.ptx || self.capability.0 == gpu.0)
    }
}

/// The framework's build, as far as it tells what code it carries.
struct Build {
    /// What to call it: the list, or the version.
    shown: String,
    /// True when the list is the framework's own and not one by version.
    listed: bool,
    codes: Vec<Code>,
    torch: Option<(String, (u32, u32))>,
}

impl Build {
    fn of(facts: &Facts) -> Option<Seen<Build>> {
        let Observed::Seen(torch) = &facts.framework.torch else {
            return None;
        };
        let version = torch.value.version.clone().unwrap_or_default();
        let cuda = torch.value.cuda.flatten().map(|cuda| (cuda.major, cuda.minor));
        if let Some(list) = torch.value.arch_list.as_ref().filter(|list| !list.is_empty()) {
            let shown = format!("the build's list ({})", list.join(" "));
            let codes = list.iter().filter_map(|name| Code::parse(name)).collect();
            let build = Build { shown, listed: true, codes, torch: None };
            return Some(Seen::new(build, torch.origin.clone()));
        }
        let cuda = cuda?;
        let shown = format!("torch {version} with CUDA {}.{}", cuda.0, cuda.1);
        let build = Build { shown, listed: false, codes: Vec::new(), torch: Some((version, cuda)) };
        Some(Seen::new(build, torch.origin.clone()))
    }

    /// Whether it has code for a GPU; `None` where neither list nor table tells.
    fn runs_on(&self, gpu: (u32, u32)) -> Option<bool> {
        let Some((version, cuda)) = &self.torch else {
            return Some(self.codes.iter().any(|code| code.runs_on(gpu)));
        };
        let known = nvabi::torch_build::runs_on(version, *cuda, gpu);
        known.or_else(|| {
            // What the compiler cannot compile for, the build cannot hold, later PTX aside.
            let compiled = nvabi::arch::compiled_for(cuda.0, cuda.1)?;
            let possible = compiled.iter().any(|able| able.0 == gpu.0 && able.1 <= gpu.1);
            (!possible).then_some(false)
        })
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let gpus = capabilities(facts);
    let gpu = gpus.iter().map(|gpu| gpu.value).max();
    let tag = gpu.map_or("cu128", wheel_tag);
    let arch = gpu.map_or("MAJOR.MINOR".to_owned(), |(major, minor)| format!("{major}.{minor}"));
    let old = gpu.is_some_and(|gpu| gpu < (7, 5));
    let install = if old {
        "pip install 'torch<2.11' --index-url https://download.pytorch.org/whl/cu126".to_owned()
    } else {
        format!("pip install --upgrade torch --index-url https://download.pytorch.org/whl/{tag}")
    };
    Remedy::new(Impact::RestartsProcess, "the program in question")
        .step_to(Place::Program, install, "a build with code for this GPU")
        .step_to(
            Place::Program,
            format!("TORCH_CUDA_ARCH_LIST=\"{arch}\" pip install --no-build-isolation --no-cache-dir PACKAGE"),
            "for an extension that is compiled here; CMake calls it CMAKE_CUDA_ARCHITECTURES",
        )
        .undo("install the former version again")
        .verify("python3 -c 'import torch; print(torch.ones(2).cuda() * 2)' prints a tensor")
        .will_not_help("a newer driver: the code is missing from the build, and cuInit works")
        .will_not_help("a newer toolkit on disk: wheels are compiled already")
}

/// The oldest wheel index of PyTorch whose compiler knows this capability.
fn wheel_tag(gpu: (u32, u32)) -> &'static str {
    let knows = |major, minor| {
        nvabi::arch::compiled_for(major, minor).is_some_and(|able| able.contains(&gpu))
    };
    if knows(12, 6) {
        "cu126"
    } else if knows(12, 8) {
        "cu128"
    } else {
        "cu130"
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn machine_code_stays_within_its_major_capability_and_ptx_does_not() {
        for (code, gpu, runs) in [
            ("sm_90", (9, 0), true),
            ("sm_90", (12, 0), false),
            ("sm_80", (8, 9), true),
            ("sm_89", (8, 6), false),
            ("sm_90a", (9, 0), true),
            ("sm_100a", (10, 3), false),
            ("sm_100f", (10, 3), true),
            ("compute_90", (12, 0), true),
            ("compute_120", (9, 0), false),
            ("compute_90a", (12, 0), false),
        ] {
            assert_eq!(Code::parse(code).map(|code| code.runs_on(gpu)), Some(runs), "{code}");
        }
        for text in ["sm_", "sm_9", "90", "gfx1100"] {
            assert!(Code::parse(text).is_none(), "{text}");
        }
    }
}
