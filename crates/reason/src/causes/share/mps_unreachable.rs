//! `share.mps-unreachable`

use facts::model::process::Lever;
use facts::model::share::MpsStatement;
use facts::{Facts, Layer, Observed};

use super::newer_client;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::stuck;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "share.mps-unreachable",
    layer: Layer::Share,
    claim: "the GPU is under MPS, and this client cannot reach the daemon",
    explanation: "When the multi-process service runs, every CUDA program that sees its pipe folder \
        (CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps) becomes a client and must reach the daemon \
        through it, and the server through shared memory. In a container without that folder or \
        with an IPC namespace of its own, as another user, or with the folder of a daemon that has \
        ended, CUDA answers 805; 806 and 807 tell of a server that died or does not accept. \
        A daemon that takes the connection and does not answer, because it serves another user \
        first or is stuck itself, leaves cuInit waiting on the socket. Nothing is wrong with GPU or driver.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaContextFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "share.mps-version-skew",
            tell: "libcuda in the client is newer than the driver: a compat library",
        },
        LookAlike { id: "share.compute-mode", tell: "the code is 46, and no MPS runs" },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/mps/index.html",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/714",
        "https://github.com/NVIDIA/k8s-device-plugin/issues/1614",
    ],
    weigh,
    remedy,
};

/// CUDA_ERROR_MPS_CONNECTION_FAILED, _RPC_FAILURE, _SERVER_NOT_READY (cuda.h).
const CODES: [i64; 3] = [805, 806, 807];

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let refused = CODES.iter().find_map(|code| {
        facts
            .cuda
            .plain()
            .find(|trial| trial.failure_code() == Some(*code))
            .map(|trial| (*code, trial))
    });
    let Some((code, trial)) = refused else {
        waits_for_daemon(facts, &mut weighing);
        by_experiment(facts, &mut weighing);
        return weighing;
    };
    in_vain(facts, &mut weighing);
    let newer = newer_client(facts);
    let statement = match code {
        805 => "CUDA answers 805: the MPS client cannot connect",
        806 => "CUDA answers 806: a call to the MPS server failed",
        _ => "CUDA answers 807: the MPS server does not accept",
    };
    weighing.supports(Strong, statement, &trial.origin);
    if code == CODES[0] && newer.is_none() {
        let statement = "only a client of MPS is answered so: a pipe folder is set or there";
        weighing.supports(Weak, statement, &trial.origin);
        proof(facts, &mut weighing);
    }
    surroundings(facts, &mut weighing);
    if let Some((own, driver, origin)) = newer {
        let statement = format!("libcuda {own} is newer than driver {driver}");
        weighing.objects(Moderate, statement, &origin);
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.objects(Weak, "CUDA works in another run", origin);
    }
    weighing
}

/// The daemon's pipe is there, and cuInit waits at it.
fn waits_for_daemon(facts: &Facts, weighing: &mut Weighing) {
    let Some((place, call)) = stuck::cuinit_on_socket(facts) else { return };
    let pipe = facts.share.mps_pipe.as_seen();
    let daemon = facts.share.mps_daemon.as_seen().filter(|seen| seen.value);
    let (statement, origin) = match (pipe, daemon) {
        (Some(seen), _) => (format!("an MPS daemon's pipe is at {}", seen.value), &seen.origin),
        (None, Some(seen)) => ("an MPS daemon runs".to_owned(), &seen.origin),
        (None, None) => return,
    };
    weighing.supports(Moderate, statement, origin);
    let statement = format!("cuInit waits for an answer on a socket, outside the driver: {call}");
    weighing.supports(Strong, statement, place.origin);
    if let Some((own, driver, origin)) = newer_client(facts) {
        let statement = format!("libcuda {own} is newer than driver {driver}");
        weighing.objects(Moderate, statement, &origin);
    }
}

/// It fails in some other way while MPS is in reach, and works without: so libcuda behaves with the
/// pipe of a daemon that has ended or does not answer.
fn by_experiment(facts: &Facts, weighing: &mut Weighing) {
    in_vain(facts, weighing);
    let Some((attempt, origin)) = facts.process.tried(|lever| lever == Lever::Mps) else { return };
    if !attempt.helped || !attempt.controlled {
        return;
    }
    let statement = "it fails with the pipe folder of MPS in reach and works without";
    if same_release(facts) {
        weighing.confirms(statement, origin);
    } else {
        weighing.supports(Strong, statement, origin);
    }
    if let Observed::Seen(seen) = facts.process.env("CUDA_MPS_PIPE_DIRECTORY") {
        let statement = format!("CUDA_MPS_PIPE_DIRECTORY={}", seen.value);
        weighing.supports(Moderate, statement, &seen.origin);
    }
    surroundings(facts, weighing);
}

/// It is the same without MPS.
fn in_vain(facts: &Facts, weighing: &mut Weighing) {
    let tried = facts.process.tried(|lever| lever == Lever::Mps);
    if let Some((_, origin)) = tried.filter(|(attempt, _)| attempt.controlled && !attempt.helped) {
        weighing.rules_out("it is the same without the pipe folder of MPS", origin);
    }
}

/// The client's libcuda is of the driver's own release, so that no version stands between it and
/// the daemon.
fn same_release(facts: &Facts) -> bool {
    let driver = readings::driver_version(facts);
    let own = facts.library.cuda.value().and_then(|file| file.version.as_ref());
    matches!((driver, own), (Some(driver), Some(own)) if own.same_release(&driver.value))
}

/// 805 has several reasons: a daemon that ended, another user's, one of another version. That this
/// client cannot reach one that runs is certain when it is seen not to have the way there.
fn proof(facts: &Facts, weighing: &mut Weighing) {
    let runs = facts.share.mps_daemon.as_seen().filter(|seen| seen.value);
    let Some(daemon) = runs else { return };
    if let Observed::Absent(origin) = &facts.share.mps_pipe {
        let statement = "an MPS daemon runs, and its pipe folder is not visible here";
        weighing.confirms(statement, origin);
    }
    if let Some(started) = facts.sandbox.started_with.as_seen().filter(|seen| !shares(&seen.value))
    {
        let statement =
            "an MPS daemon runs, and the container was started without its pipe folder and IPC";
        weighing.confirms(statement, &started.origin);
    }
    let told = facts.share.mps_statements.iter();
    if let Some(said) = told.clone().find(|said| said.value == MpsStatement::WorksWhenShared) {
        weighing.confirms("it works when daemon and client share pipe and IPC", &said.origin);
        weighing.supports(Weak, "an MPS daemon runs", &daemon.origin);
    }
}

/// Whether an engine's command line gives the container what a client needs of the daemon.
fn shares(started: &str) -> bool {
    started.contains("ipc=host") && started.contains("mps")
}

/// Daemon, pipe and container.
fn surroundings(facts: &Facts, weighing: &mut Weighing) {
    match &facts.share.mps_pipe {
        Observed::Absent(origin) => {
            weighing.supports(Strong, "the pipe folder of MPS is not visible here", origin);
        }
        Observed::Seen(_) => {}
        Observed::Denied(..) | Observed::Unknown(_) => {
            weighing.needs(Need::MpsDaemon);
        }
    }
    if let Some(seen) = facts.share.mps_daemon.as_seen().filter(|seen| seen.value) {
        weighing.supports(Moderate, "an MPS daemon runs", &seen.origin);
    }
    if let Some(started) = facts.sandbox.started_with.as_seen()
        && !shares(&started.value)
    {
        let statement = "the container was started without the pipe folder and the host's IPC";
        weighing.supports(Moderate, statement, &started.origin);
    }
    let told = facts.share.mps_statements.iter();
    if let Some(said) = told.clone().find(|said| said.value == MpsStatement::WorksWhenShared) {
        weighing.supports(
            Strong,
            "it works when daemon and client share pipe and IPC",
            &said.origin,
        );
    }
    if let Some(failure) = facts.share.mps_failures.first() {
        weighing.supports(Weak, format!("MPS logs: {}", failure.value), &failure.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let pipe = facts.process.env("CUDA_MPS_PIPE_DIRECTORY");
    let pipe = pipe.value().map_or("/tmp/nvidia-mps", String::as_str).to_owned();
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the clients in question");
    if machine::in_container(facts) {
        remedy.impact = Impact::RecreatesContainer;
        remedy = remedy.step_to(
            Place::Engine,
            format!("docker run --gpus … --ipc=host -v {pipe}:{pipe} -e CUDA_MPS_PIPE_DIRECTORY={pipe} …"),
            "the client needs the pipe folder and the IPC namespace of the daemon, and its user id",
        );
    } else {
        remedy = remedy.step_to(
            Place::Here,
            format!("ls -ld {pipe}; export CUDA_MPS_PIPE_DIRECTORY={pipe}"),
            "the folder of the daemon that runs; its user must be the client's, or root's daemon",
        );
    }
    if stuck::cuinit_on_socket(facts).is_some() {
        remedy = remedy.step_to(
            Place::Host,
            format!(
                "export CUDA_MPS_PIPE_DIRECTORY={pipe}; for server in $(echo get_server_list | \
                 nvidia-cuda-mps-control); do ps -o pid,user,etime,cmd -p $server; done"
            ),
            "one user's programs at a time: another user's wait until those have ended; no answer \
             here means that the daemon itself is stuck",
        );
    }
    remedy
        .step_to(
            Place::Host,
            "or stop MPS: echo quit | nvidia-cuda-mps-control",
            "clients end; GPUs are shared by time slices again",
        )
        .undo("nvidia-cuda-mps-control -d")
        .verify("cuInit answers 0; the daemon's control.log shows a new client")
        .will_not_help("another toolkit or driver in the container: the pipe is what it lacks")
        .will_not_help("restarting the container alone: it is as blind as before")
}
