//! `framework.toolkit-mismatch`

use facts::model::framework::FrameworkMessage;
use facts::version::CudaVersion;
use facts::{Facts, Layer, Origin, Seen};

use super::{beneath, framework_cuda};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "framework.toolkit-mismatch",
    layer: Layer::Framework,
    claim: "extension, toolkit and framework were built for different CUDA versions or ABIs",
    explanation: "An extension is compiled with the toolkit at hand against the headers of the \
        framework that is installed, and works with that pair only. After one of them changes, \
        its library no longer loads: an undefined symbol of c10 or torch, or a missing \
        libcudart.so of the other major version. The build itself refuses when nvcc's major \
        version is not torch.version.cuda's; a different minor version is a warning. All this \
        lies above the driver: it never makes cuInit fail.",
    explains: &[SymptomId::FrameworkNoCode, SymptomId::FrameworkNoGpu, SymptomId::CudaInitFails],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "framework.lacks-arch",
            tell: "the library loads and fails at the first kernel with 209",
        },
        LookAlike {
            id: "framework.driver-too-old",
            tell: "error 35, whatever toolkit is installed",
        },
        LookAlike { id: "uvm.hmm", tell: "cuInit itself fails, beneath toolkit and framework" },
    ],
    references: &[
        "https://github.com/Dao-AILab/flash-attention/issues/1832",
        "https://docs.pytorch.org/docs/stable/cpp_extension.html",
        "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    messages(facts, &mut weighing);
    let failing = !weighing.support.is_empty();
    versions(facts, failing, &mut weighing);
    if failing && facts.framework.nvcc.is_unknown() {
        weighing.needs(Need::ToolkitVersion);
    }
    if failing && framework_cuda(facts).is_none() {
        weighing.needs(Need::FrameworkCuda);
    }
    weighing
}

fn messages(facts: &Facts, weighing: &mut Weighing) {
    for (message, origin) in &facts.framework.messages {
        match message {
            FrameworkMessage::ToolkitMismatch { toolkit, framework } => {
                let statement = format!(
                    "the build refuses: the toolkit is {toolkit}, and the framework was compiled with {framework}"
                );
                weighing.confirms(statement, origin);
            }
            FrameworkMessage::UndefinedSymbol { library, symbol } => {
                undefined(library, symbol, origin, weighing);
            }
            FrameworkMessage::MissingCudaLibrary { library } => {
                missing(facts, library, origin, weighing);
            }
            _ => {}
        }
    }
}

/// A symbol of the framework that an extension wants and the installed framework does not have.
fn undefined(library: &str, symbol: &str, origin: &Origin, weighing: &mut Weighing) {
    let of_framework = ["c10", "torch", "at6", "N2at"].iter().any(|part| symbol.contains(part));
    let file = super::file_name(library);
    if super::is_drivers(library) || facts::parse::maps::is_interposer(library) {
        return;
    }
    if of_framework {
        let statement =
            format!("{file} wants a symbol that the installed framework lacks: {symbol}");
        weighing.confirms(statement, origin);
    } else {
        let statement = format!("{file} wants a symbol that its CUDA library lacks: {symbol}");
        weighing.supports(Strong, statement, origin);
        weighing.supports(Weak, "libraries of two CUDA releases are mixed", origin);
    }
}

/// A runtime library of some major version that is not installed.
fn missing(facts: &Facts, library: &str, origin: &Origin, weighing: &mut Weighing) {
    let framework = framework_cuda(facts).map(|(_, seen)| seen.value);
    let wanted = runtime_major(library);
    match (wanted, framework) {
        (Some(wanted), Some(framework)) if wanted != framework.major => {
            let statement = format!(
                "{library} is wanted, of CUDA {wanted}; the framework brings CUDA {}",
                framework.major
            );
            weighing.confirms(statement, origin);
        }
        _ => {
            weighing.supports(Strong, format!("{library} is wanted and not there"), origin);
            weighing.supports(Weak, "something here was built for another CUDA release", origin);
        }
    }
}

/// The CUDA major version in `libcudart.so.11.0` or `libcublas.so.12`.
fn runtime_major(library: &str) -> Option<u32> {
    let versioned = ["libcudart", "libcublas", "libcublasLt"];
    if !versioned.iter().any(|name| library.starts_with(name)) {
        return None;
    }
    let suffix = library.rsplit_once(".so.")?.1;
    suffix.split('.').next()?.parse().ok()
}

/// nvcc against the framework. Only a difference with something failing above cuInit counts.
fn versions(facts: &Facts, failing: bool, weighing: &mut Weighing) {
    let nvcc = facts.framework.nvcc.as_seen();
    let framework = framework_cuda(facts);
    let below = beneath(facts);
    if let (Some(nvcc), Some((name, cuda))) = (nvcc, &framework) {
        compare(nvcc, name, cuda, failing, below.is_some(), weighing);
        return;
    }
    let Some((number, trial)) = below.filter(|_| !failing) else {
        return;
    };
    if nvcc.is_some() || framework.is_some() {
        let statement =
            format!("cuInit answers {number}, and it fails beneath toolkit and framework");
        weighing.rules_out(statement, &trial.origin);
    }
}

fn compare(
    nvcc: &Seen<CudaVersion>,
    name: &str,
    cuda: &Seen<CudaVersion>,
    failing: bool,
    below: bool,
    weighing: &mut Weighing,
) {
    let (toolkit, framework) = (nvcc.value, cuda.value);
    let relation = if toolkit == framework { "=" } else { "against" };
    let compared = format!("toolkit {toolkit} {relation} {name} {framework}");
    if !failing && below {
        let statement = if toolkit == framework {
            format!("{toolkit} = {framework}, and cuInit fails beneath both")
        } else {
            format!("{compared}, but cuInit fails beneath both")
        };
        weighing.rules_out(statement, &nvcc.origin);
    } else if toolkit == framework && !failing {
        weighing.rules_out(compared, &nvcc.origin);
    } else if toolkit == framework {
        weighing.objects(Moderate, compared, &nvcc.origin);
    } else if toolkit.major != framework.major && failing {
        weighing.supports(Strong, compared, &nvcc.origin);
    } else if failing {
        weighing.supports(Weak, compared, &nvcc.origin);
    } else if toolkit.major != framework.major {
        weighing.supports(Weak, compared, &nvcc.origin);
        weighing.needs(Need::CudaInit);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let cuda = framework_cuda(facts).map(|(_, seen)| seen.value);
    let shown = cuda.map_or("VERSION".to_owned(), |cuda| cuda.to_string());
    let package = extension(facts).unwrap_or_else(|| "PACKAGE".to_owned());
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program in question").step_to(
        Place::Program,
        format!("pip uninstall -y {package} && pip install --no-cache-dir {package}"),
        "the wheel whose tag names this torch and CUDA, such as +cu12torch2.8",
    );
    let fitting = facts.framework.toolkits.iter().find(|kit| Some(kit.value.1) == cuda);
    remedy = match fitting {
        Some(kit) => remedy.step_to(
            Place::Program,
            format!("CUDA_HOME={} pip install --no-build-isolation --no-cache-dir {package}", kit.value.0),
            "compiles it with the toolkit that fits and lies here already",
        ),
        None => remedy.step_to(
            Place::Program,
            format!("CUDA_HOME=/usr/local/cuda-{shown} pip install --no-build-isolation --no-cache-dir {package}"),
            "compiles it with the toolkit of the framework's version, once that is installed",
        ),
    };
    remedy
        .undo("install the former versions again: pip freeze before the change lists them")
        .verify("python3 -c 'import torch, MODULE' says nothing, with the extension's module for MODULE")
        .will_not_help("another driver: all of this lies above it")
        .will_not_help("links from libcudart.so.12 to libcudart.so.13: their interfaces differ")
}

/// The package whose library does not load, by the file's name.
fn extension(facts: &Facts) -> Option<String> {
    const PACKAGES: [(&str, &str); 6] = [
        ("flash_attn", "flash-attn"),
        ("xformers", "xformers"),
        ("vllm", "vllm"),
        ("sgl_kernel", "sgl-kernel"),
        ("bitsandbytes", "bitsandbytes"),
        ("torchvision", "torchvision"),
    ];
    let library = facts.framework.messages.iter().find_map(|(message, _)| match message {
        FrameworkMessage::UndefinedSymbol { library, .. } => Some(library.as_str()),
        _ => None,
    })?;
    let known = PACKAGES.iter().find(|(part, _)| library.contains(part))?;
    Some(known.1.to_owned())
}
