//! `share.mps-version-skew`

use facts::model::library::LibraryKind;
use facts::model::process::Lever;
use facts::model::share::MpsStatement;
use facts::{Facts, Layer, Observed};

use super::newer_client;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::stuck;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "share.mps-version-skew",
    layer: Layer::Share,
    claim: "the MPS daemon refuses a client whose libcuda is newer than itself",
    explanation: "An MPS client speaks to daemon and server by libcuda's own protocol, so its \
        libcuda must not be newer than theirs, which are the host driver's. Images with a \
        forward-compatibility library, and Julia's CUDA.jl by itself, load a newer one: without \
        MPS that works, under MPS the daemon rejects the client, and cuInit waits for ever or \
        answers 807. It fails only while the pipe folder is visible.",
    explains: &[
        SymptomId::CudaInitHangs,
        SymptomId::CudaInitFails,
        SymptomId::CudaContextFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["library.compat-shadows", "share.mps-unreachable"],
    look_alikes: &[
        LookAlike {
            id: "share.mps-unreachable",
            tell: "805 at once, with the host driver's own libcuda",
        },
        LookAlike { id: "uvm.hmm", tell: "it hangs on the host without MPS as well" },
        LookAlike { id: "library.compat-shadows", tell: "803 or 804, with or without MPS" },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/mps/index.html",
        "https://docs.nvidia.com/deploy/cuda-compatibility/",
        "https://github.com/JuliaGPU/CUDA.jl/issues/2696",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let daemon = facts.share.mps_daemon.as_seen();
    let tried = facts.process.tried(|lever| lever == Lever::Mps);
    let without = facts.process.helped_by(Lever::Mps).cloned();
    let only = said(facts, MpsStatement::OnlyWithMps).or(without);
    let pipe = facts.process.env("CUDA_MPS_PIPE_DIRECTORY");
    if daemon.is_none() && only.is_none() && !pipe.is_seen() {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    let hang = readings::init_hang(facts);
    let refused = readings::init_failed_with(facts, 807);
    if hang.is_none() && refused.is_none() && only.is_none() {
        return Weighing::not_applicable();
    }
    if let Some(trial) = hang.or(refused) {
        weighing.supports(Weak, "cuInit does not come back, or answers 807", &trial.origin);
    }
    if let Some(seen) = daemon.filter(|seen| seen.value) {
        weighing.supports(Moderate, "an MPS daemon runs", &seen.origin);
    } else if let Observed::Seen(seen) = &pipe {
        weighing.supports(Moderate, "CUDA_MPS_PIPE_DIRECTORY is set", &seen.origin);
    }
    if let Some((_, origin)) = tried.filter(|(attempt, _)| attempt.controlled && !attempt.helped) {
        weighing.rules_out("it is the same without the pipe folder of MPS", origin);
    }
    if let Some(origin) = only {
        weighing.supports(Strong, "it fails only while MPS is in reach", &origin);
    }
    if let Some(origin) = said(facts, MpsStatement::WorksWithHostLibrary) {
        weighing.supports(Strong, "it works with the host driver's libcuda", &origin);
    }
    on_socket(facts, &mut weighing);
    versions(facts, &mut weighing);
    if let Some(seen) = daemon.filter(|seen| !seen.value) {
        weighing.rules_out("no MPS daemon runs", &seen.origin);
    }
    weighing
}

/// A client that the daemon does not answer waits on a socket, and in no call of the driver's.
fn on_socket(facts: &Facts, weighing: &mut Weighing) {
    if let Some((place, call)) = stuck::cuinit_on_socket(facts) {
        // A daemon that serves somebody else, or hangs itself, leaves its client waiting as well.
        let compat =
            facts.library.cuda.value().is_some_and(|file| file.kind == LibraryKind::Compat);
        let strength = if compat || newer_client(facts).is_some() { Moderate } else { Weak };
        weighing.supports(strength, format!("cuInit waits on a socket: {call}"), place.origin);
    } else if let Some((place, _)) = stuck::cuinit(facts)
        && place.stuck.is_in_driver()
    {
        let call = place.stuck.call.as_deref().unwrap_or_default();
        let statement = format!("the stuck task is in the driver: {call}");
        weighing.objects(Strong, statement, place.origin);
    }
}

fn said(facts: &Facts, statement: MpsStatement) -> Option<facts::Origin> {
    let mut all = facts.share.mps_statements.iter();
    all.find(|said| said.value == statement).map(|said| said.origin.clone())
}

/// The client's libcuda against the daemon's side.
fn versions(facts: &Facts, weighing: &mut Weighing) {
    if let Some((own, driver, origin)) = newer_client(facts) {
        let statement = format!("libcuda {own} in the client is newer than driver {driver}");
        weighing.supports(Strong, statement, &origin);
        return;
    }
    let driver = readings::driver_version(facts);
    match (facts.library.cuda.as_seen(), driver) {
        (Some(library), Some(driver)) if library.value.version.as_ref() == Some(&driver.value) => {
            let statement = format!("libcuda {} = driver", driver.value);
            weighing.rules_out(statement, &library.origin);
        }
        (Some(library), _) if library.value.kind == LibraryKind::Compat => {
            weighing.supports(Moderate, "the client loads a compat libcuda", &library.origin);
            weighing.needs(Need::ModuleVersion);
        }
        _ => {
            let compat = facts.library.others.iter().find(|file| file.kind == LibraryKind::Compat);
            if let Some(file) = compat {
                weighing.supports(Weak, "a compat libcuda lies in reach", &file.origin);
            }
            weighing.needs(Need::LibcudaMapped);
        }
    }
}

fn remedy(_facts: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsProcess, "the program in question")
        .step_to(
            Place::Program,
            "export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:$LD_LIBRARY_PATH, or remove /usr/local/cuda/compat from it",
            "the host driver's libcuda comes first",
        )
        .step_to(Place::Program, "export JULIA_CUDA_USE_COMPAT=false", "for CUDA.jl, which brings its own")
        .step_to(Place::Host, "or upgrade the host's driver to the compat library's branch, and restart MPS", "")
        .undo("the former LD_LIBRARY_PATH")
        .verify("cuInit answers 0 under MPS; grep libcuda /proc/PID/maps shows the driver's version")
        .will_not_help("uvm_disable_hmm or other module options: without MPS the same host starts CUDA")
        .will_not_help("a longer timeout: the client waits for ever")
}
