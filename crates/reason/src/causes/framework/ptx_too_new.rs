//! `framework.ptx-too-new`

use facts::model::framework::FrameworkMessage;
use facts::version::CudaVersion;
use facts::{Facts, Layer, Seen};

use super::framework_cuda;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong};
use crate::machine;
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "framework.ptx-too-new",
    layer: Layer::Framework,
    claim: "the program's PTX is newer than the driver understands",
    explanation: "A program without machine code for this GPU carries PTX, which the driver \
        compiles when a kernel is first loaded. The driver knows PTX up to its own CUDA version, \
        and compatibility within a major version does not cover it: everything starts, memory is \
        allocated, and the first kernel answers 222, \"the provided PTX was compiled with an \
        unsupported toolchain\". It comes of compiling with a toolkit newer than the CUDA version \
        that nvidia-smi shows.",
    explains: &[SymptomId::FrameworkNoCode, SymptomId::CudaContextFails, SymptomId::FrameworkNoGpu],
    specializes: &["framework.lacks-arch"],
    look_alikes: &[
        LookAlike {
            id: "framework.lacks-arch",
            tell: "209: neither machine code nor PTX for this GPU",
        },
        LookAlike {
            id: "framework.driver-too-old",
            tell: "35 at the first call of the runtime, across major versions",
        },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
        "https://github.com/li-plus/chatglm.cpp/issues/12",
        "https://github.com/ComputationalRadiationPhysics/cuda_memtest/issues/31",
        "https://github.com/ggml-org/llama.cpp/issues/1648",
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
        .find(|(message, _)| *message == FrameworkMessage::PtxTooNew);
    let trial =
        facts.cuda.plain().find(|trial| trial.failure_code() == Some(code::UNSUPPORTED_PTX));
    let origin = message.map(|(_, origin)| origin).or(trial.map(|trial| &trial.origin));
    let Some(origin) = origin else {
        return Weighing::not_applicable();
    };
    let driver = readings::driver_cuda(facts);
    let builder = builder(facts);
    let newer = match (&builder, &driver) {
        (Some((_, builder)), Some(driver)) => Some(builder.value > driver.value),
        _ => None,
    };
    let statement = "error 222: the PTX was compiled with an unsupported toolchain";
    if newer == Some(false) {
        weighing.supports(Strong, statement, origin);
    } else {
        weighing.confirms(statement, origin);
    }
    match (builder, driver) {
        (Some((name, builder)), Some(driver)) if newer == Some(true) => {
            let statement = format!(
                "{name} is of CUDA {}, the driver supports {}",
                builder.value, driver.value
            );
            weighing.supports(Strong, statement, &driver.origin);
        }
        (Some((name, builder)), Some(driver)) => {
            // What is on disk need not be what built the program.
            let statement = format!(
                "{name} is of CUDA {}, which the driver with {} knows",
                builder.value, driver.value
            );
            weighing.objects(Moderate, statement, &builder.origin);
        }
        (None, _) => {
            weighing.needs(Need::ToolkitVersion);
        }
        (_, None) => {
            weighing.needs(Need::DriverCuda);
        }
    }
    weighing
}

/// What probably compiled the program: the newest of compiler, toolkits and framework.
fn builder(facts: &Facts) -> Option<(String, Seen<CudaVersion>)> {
    let mut found: Vec<(String, Seen<CudaVersion>)> = Vec::new();
    if let Some(nvcc) = facts.framework.nvcc.as_seen() {
        found.push(("nvcc".to_owned(), nvcc.clone()));
    }
    found.extend(facts.framework.toolkits.iter().map(|toolkit| {
        let (path, version) = &toolkit.value;
        (path.clone(), Seen::new(*version, toolkit.origin.clone()))
    }));
    found.extend(framework_cuda(facts));
    found.into_iter().max_by_key(|(_, version)| version.value)
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let builder = builder(facts).map(|(_, seen)| seen.value);
    let minimum = builder.and_then(|cuda| nvabi::toolkit::minimum_driver(cuda.major, cuda.minor));
    let arch = readings::chips(facts).first().map(|chip| chip.value.capability);
    let arch = arch.map_or("native".to_owned(), |(major, minor)| format!("sm_{major}{minor}"));
    let bundled = builder.map_or(String::new(), |cuda| format!(" for CUDA {cuda}"));
    let toolkit = readings::driver_cuda(facts)
        .map_or("the driver's CUDA version".to_owned(), |seen| format!("CUDA {}", seen.value));
    let note = minimum.map_or(String::new(), |minimum| {
        format!(
            "the branch that came with that toolkit; {minimum} alone satisfies only the runtime"
        )
    });
    Remedy::new(
        Impact::Reboots,
        "with a new driver every GPU program; with a new build only this one",
    )
    .step_to(
        Place::Program,
        format!("build with -arch={arch} (CMAKE_CUDA_ARCHITECTURES, TORCH_CUDA_ARCH_LIST)"),
        "machine code for this GPU: no PTX is compiled then",
    )
    .step_to(
        Place::Program,
        format!("or build with the toolkit of {toolkit} or older"),
        "its PTX is known",
    )
    .step_to(place, format!("or install a driver{bundled} or newer, and reboot"), &note)
    .undo("the former build or driver")
    .verify("the first kernel runs")
    .will_not_help("a newer toolkit on disk: it makes PTX that is newer still")
    .will_not_help("minor-version compatibility: it does not cover PTX")
}
