//! How a traced program got on with the daemon of MPS: libcuda connects to the socket `control` in
//! its pipe folder and waits there for an answer.

use super::Standing;
use crate::model::Facts;
use crate::observed::{Errno, Observed, Origin};
use crate::parse::strace::{Connection, Strace, Wait};

/// Enters whether the daemon's pipe was there.
pub(super) fn apply(strace: &Strace, origin: &dyn Fn(u32) -> Origin, facts: &mut Facts) {
    let mut tried = strace.connections.iter().filter(|tried| folder(&tried.path, facts).is_some());
    // The last one is what the program went by.
    let Some(Connection { line, path, failure }) = tried.next_back().cloned() else { return };
    let origin = origin(line);
    let pipe = match failure {
        None => Observed::seen(folder(&path, facts).unwrap_or_default(), origin),
        Some(Errno::ENOENT) => Observed::Absent(origin),
        Some(errno) => Observed::Denied(errno, origin),
    };
    facts.share.mps_pipe.or_better(pipe);
}

/// Where a program stands that waits for the daemon.
pub(super) fn waits(strace: &Strace, facts: &Facts) -> Option<Standing> {
    let wait = strace.waits.iter().rfind(|wait| folder(&wait.path, facts).is_some())?;
    let Wait { line, thread, call, path } = wait;
    Some(Standing {
        line: *line,
        thread: *thread,
        in_flight: (call.clone(), Some(path.clone())),
        place: format!("{call} on socket {path}"),
        of_cuda: true,
    })
}

/// The pipe folder that a socket's path lies in, if it is one.
fn folder(path: &str, facts: &Facts) -> Option<String> {
    let folder = path.strip_suffix("/control")?;
    let set = facts.process.env("CUDA_MPS_PIPE_DIRECTORY");
    let is_set = set.value().is_some_and(|known| known.trim_end_matches('/') == folder);
    (is_set || folder.contains("mps")).then(|| folder.to_owned())
}
