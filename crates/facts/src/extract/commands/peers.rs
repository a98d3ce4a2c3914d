//! Programs that move data between GPUs: what it means when one of them did not end, and what CUDA
//! answered to a question asked in Python.

use super::Output;
use crate::extract::loose::peer_switches;
use crate::model::Facts;
use crate::model::p2p::{PeerResult, PeerRun};
use crate::observed::Seen;

/// Looks at any command's output; it claims none.
pub(super) fn apply(output: &Output<'_>, facts: &mut Facts) {
    if output.line.contains("can_device_access_peer") {
        access(output, facts);
    }
    let program = output.command.program();
    let tests = ["p2pBandwidthLatencyTest", "simpleP2P", "nvbandwidth"];
    let moves = program.ends_with("_perf") || tests.contains(&program) || {
        let mpi = matches!(program, "mpirun" | "mpiexec" | "srun" | "torchrun");
        mpi && output.line.contains("reduce")
    };
    let interrupted = output.text.lines().any(|line| line.trim_start().starts_with("^C"));
    if moves && (output.timed_out() || interrupted) {
        facts.mentions_gpu = true;
        let run = PeerRun {
            what: program.to_owned(),
            result: PeerResult::Hung,
            under: peer_switches(output.line),
        };
        facts.p2p.runs.push(Seen::new(run, output.item.origin_at(0, output.line)));
    }
}

/// `print(torch.cuda.can_device_access_peer(0, 1))`.
fn access(output: &Output<'_>, facts: &mut Facts) {
    for (number, line) in crate::parse::numbered(output.text).take(64) {
        for word in line.split_whitespace() {
            if let "True" | "False" = word {
                let seen =
                    Seen::new((String::new(), word == "True"), output.item.origin_at(number, line));
                facts.p2p.access.push(seen);
            }
        }
    }
}
