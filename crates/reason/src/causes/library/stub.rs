//! `library.stub`

use facts::model::cuda::{Stage, TrialResult};
use facts::model::library::LibraryKind;
use facts::{Facts, Layer};

use super::{folder, mapped, path_holds, right_one, search_path_without};
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "library.stub",
    layer: Layer::Library,
    claim: "the toolkit's link-time stub is loaded in place of the driver library",
    explanation: "The toolkit carries a small libcuda.so in a folder named stubs, so that programs \
        can be linked on machines without a driver. It has every function, and each of them \
        answers 34. It is meant for the linker alone. When its folder is in LD_LIBRARY_PATH, in \
        ld.so.conf or behind a link named libcuda.so.1, the loader finds it before the driver's \
        own library, and nothing works although nvidia-smi is fine.",
    explains: &[SymptomId::CudaInitFails, SymptomId::CudaContextFails, SymptomId::FrameworkNoGpu],
    specializes: &["library.bundled-driver"],
    look_alikes: &[
        LookAlike { id: "library.missing", tell: "no libcuda is found at all, and dlopen says so" },
        LookAlike {
            id: "library.compat-shadows",
            tell: "cuInit answers 803, and the mapped path holds /compat/",
        },
    ],
    references: &[
        "https://github.com/numba/numba/issues/9732",
        "https://github.com/NVIDIA/warp/issues/219",
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let stub_code =
        facts.cuda.plain().find(|trial| trial.failure_code() == Some(code::STUB_LIBRARY));
    if let Some(trial) = stub_code {
        let statement = format!("{} answers 34, which only the stub does", trial.what);
        weighing.confirms(statement, &trial.origin);
    }
    if let Some(file) = mapped(facts) {
        let stub = file.kind == LibraryKind::Stub || path_holds(file, "/stubs/");
        if stub {
            weighing.supports(Strong, format!("libcuda comes from {}", file.path), &file.origin);
            // Programs that do not know the code of the stub say only that it failed.
            let failed = facts.cuda.plain().find(|trial| trial.result == TrialResult::Failed);
            if let Some(trial) = failed {
                weighing.supports(Moderate, "CUDA does not start", &trial.origin);
            }
        } else if stub_code.is_none() {
            let statement = format!("libcuda comes from {}, which is no stub", file.path);
            weighing.rules_out(statement, &file.origin);
        }
    }
    search_path(facts, &mut weighing);
    if weighing.support.is_empty() {
        other_code(facts, &mut weighing);
    } else if mapped(facts).is_none() {
        weighing.needs(Need::LibcudaMapped);
    }
    weighing
}

/// A stubs folder on the search path is how it mostly comes about; by itself it does no harm while
/// the driver's library is found first.
fn search_path(facts: &Facts, weighing: &mut Weighing) {
    let Some(seen) = facts.process.env.get("LD_LIBRARY_PATH") else {
        return;
    };
    if seen.value.contains("/stubs") {
        weighing.supports(Weak, "LD_LIBRARY_PATH names a stubs folder", &seen.origin);
    }
}

/// The stub answers 34 and nothing else.
fn other_code(facts: &Facts, weighing: &mut Weighing) {
    let answered = facts.cuda.plain().find(|trial| trial.stage >= Stage::Init);
    if let Some(trial) = answered
        && let Some(number) = trial.failure_code()
        && trial.stage <= Stage::Count
    {
        let statement = format!("cuInit answers {number}, and the stub answers 34 to everything");
        weighing.rules_out(statement, &trial.origin);
    } else if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program in question");
    if let Some(command) = search_path_without(facts, "/stubs") {
        remedy = remedy.step_to(
            Place::Program,
            command,
            "the stubs belong into the linker's LIBRARY_PATH or -L, not into LD_LIBRARY_PATH",
        );
    }
    if let Some(file) = mapped(facts).filter(|file| path_holds(file, "/stubs/")) {
        remedy = remedy
            .step_to(
                Place::Here,
                format!("grep -rn {} /etc/ld.so.conf /etc/ld.so.conf.d/", folder(&file.path)),
                "when it is named there, delete that line and run ldconfig",
            )
            .step_to(
                Place::Here,
                format!("find {} -name 'libcuda.so.1' -type l -delete", folder(&file.path)),
                "a link that some build made so that the stub is found at run time",
            );
    } else {
        remedy = remedy.step_to(
            Place::Here,
            "ldconfig -p | grep libcuda; echo \"$LD_LIBRARY_PATH\"",
            "shows where the stub is found; take that folder out",
        );
    }
    if let Some(own) = right_one(facts) {
        remedy = remedy.step_to(
            Place::Program,
            format!("export LD_LIBRARY_PATH={}", folder(&own.path)),
            "where the driver's own library lies",
        );
    }
    remedy
        .undo("set LD_LIBRARY_PATH to its former value; ln -s libcuda.so libcuda.so.1 in the stubs folder")
        .verify("ldd of the program, or /proc/PID/maps, shows a libcuda outside stubs, and cuInit answers 0")
        .will_not_help("reinstalling the toolkit: it brings the same stub")
        .will_not_help("reinstalling the driver: its library is there and is not found first")
}
