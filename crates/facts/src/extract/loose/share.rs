//! Sharing of GPUs in texts: the MPS daemon's log and what is said of it, compute modes, MIG.

use super::Line;
use super::pattern::{captures, group, matches, pattern};
use crate::model::Facts;
use crate::model::share::MpsStatement;
use crate::observed::{Observed, Seen, clean_excerpt};

pattern! {
    /// `[2024-04-25 02:10:31.040 Control    74] Accepting connection...`
    DAEMON_LOG = r"^\s*\[\d{4}-\d\d-\d\d [\d:.]+ (?:Control|Server|Other)\s+\d+\] (?P<text>.*)$"
}
pattern! { BINARY = r"(?i)MPS Control binary version: (?P<cuda>\d{4,6})" }
pattern! { LOG_FAILURE = r"(?i)\b(?:exited with status [1-9]\d*|fail(?:ed|ure)|error|incompatib\w+|mismatch|not supported|denied|rejected|version)\b" }
pattern! { PROCESS = r"(?:^|\s|/)nvidia-cuda-mps-(?:control|server)\b" }
pattern! {
    RUNS = r"(?i)\bMPS\b[^.\n]{0,30}\b(?:control )?(?:daemon|server)\b[^.\n]{0,40}\b(?:running|runs|ran|started|is up|active|on the host)\b|\b(?:start\w*|run(?:s|ning)?)\b[^.\n]{0,30}\bMPS\b|\bMPS (?:is )?(?:running|active|enabled|on)\b|\bnvidia-cuda-mps-control\b[^\n]{0,6} -d\b"
}
pattern! { STOPPED = r"(?i)\b(?:no|without|not running|isn['’]t running|stopped?|never used?|don['’]t use|quit)\b[^.\n]{0,20}\bMPS\b|\bMPS\b[^.\n]{0,20}\b(?:not running|isn['’]t running|off|stopped|disabled)\b|\becho quit\b" }
pattern! { PIPE_ABSENT = r"(?i)(?:cannot access|cannot open|no such file or directory)\b?.{0,20}(?P<path>/\S*(?:nvidia-mps|/mps)\S*?)['’:]|(?P<other>/\S*nvidia-mps[\w/.\-]*)\b[^\n]{0,30}(?:No such file|does not exist|doesn['’]t exist|is missing|not there|not mounted)|\bno\b[^.\n]{0,24}\b(?:CUDA_MPS_PIPE_DIRECTORY|/tmp/nvidia-mps)\b" }
pattern! { PIPE_SEEN = r"^\s*(?:[cpsd-][rwx-]{9}\S*\s.*\s)?(?P<path>/\S*nvidia-mps(?:/\S*)?)\s*$" }
pattern! { ONLY_WITH = r"(?i)\b(?:only (?:when|while|if|with)|as soon as|when(?:ever)?|while)\b[^.\n]{0,40}\bMPS\b|\b(?:works?|fine|succeeds|initiali[sz]es|returns)\b[^.\n]{0,40}\b(?:without|when .{0,20}(?:not|isn['’]t)|after (?:stopping|quitting|killing)|once .{0,20}(?:stopped|gone|unset))\b[^.\n]{0,30}\bMPS\b|\bwithout MPS\b[^.\n]{0,40}\b(?:works?|fine|initiali[sz]es|succeeds|ok)\b|\bunset CUDA_MPS_PIPE_DIRECTORY\b[^.\n]{0,40}\b(?:works?|cures?|fixes)\b" }
pattern! { HOST_LIBRARY = r"(?i)\b(?:host|driver|system)(?:'s| driver's|s)?\b[^.\n]{0,30}\blibcuda\b[^.\n]{0,80}\b(?:cures?|works?|fix(?:es|ed)?|solve[sd]|helps?|fine|no hang)\b|\bJULIA_CUDA_USE_COMPAT\s*=\s*false\b|\b(?:remov|delet|dropp|disabl)\w+\b[^.\n]{0,30}\bcompat\b[^.\n]{0,60}\b(?:cures?|works?|fix(?:es|ed)?|solve[sd]|helps?)\b|\bLD_LIBRARY_PATH\b[^.\n]{0,60}\b(?:cures?|works?|fix(?:es|ed)?|solve[sd]|helps?)\b" }
pattern! { SHARED = r"(?i)\bworks?\b[^.\n]{0,40}\b(?:daemon|MPS|it)\b[^.\n]{0,30}\b(?:inside|in|within)\b[^.\n]{0,16}\bcontainer\b|\b--ipc[= ]host\b[^.\n]{0,60}\b(?:works?|fix(?:es|ed)?|cures?|helps?)\b|\b(?:mount|shar)\w+\b[^.\n]{0,30}\bnvidia-mps\b[^.\n]{0,60}\b(?:works?|fix(?:es|ed)?|cures?|helps?)\b" }
pattern! {
    /// Compute mode in the words of nvidia-smi, NVML or a person.
    MODE = r"(?i)\bcompute[ _-]?m(?:ode)?\b\.?[^\n]{0,40}?\b(?P<mode>E\. Process|E\. Thread|Exclusive[ _]Process|Exclusive[ _]Thread|Exclusive|Prohibited)\b|\bin (?P<other>exclusive[ _-]?process|exclusive[ _-]?thread|prohibited) (?:compute )?mode\b|\b(?:GPUs?|devices?|cards?|they|it)\b[^.\n]{0,16}\b(?:set|put|switched|configured)\b[^.\n]{0,12}\b(?:to|in|into|as)\b (?P<set>exclusive[ _-]?process|exclusive[ _-]?thread|prohibited)\b|\bcudaComputeMode(?P<constant>ExclusiveProcess|Exclusive|Prohibited)\b"
}
pattern! {
    /// The cell of nvidia-smi's table, in a row that somebody cut out of it.
    CELL = r"\|\s+(?:\d+%|N/A)\s+(?P<mode>E\. Process|E\. Thread|Prohibited)\s*\|"
}
pattern! {
    /// A framework reaches for a device that CUDA did not list.
    INDEX = r"device >= 0 && device < num_gpus|\bdevice_index\b.{0,40}\bINTERNAL ASSERT FAILED|\bdevice=\S* ?, ?num_gpus=\d*"
}
pattern! {
    /// MIG mode in words, and as nvidia-smi says that it set it.
    MIG_ON = r"(?i)\bMIG(?: mode)?\b[^.\n]{0,16}\b(?:is|was|has been|are|got)\b[^.\n]{0,12}\b(?:enabled|switched on|turned on|on|active)\b|\bEnabled MIG Mode for GPU\b|\b(?:with|after) MIG(?: mode)? (?:enabled|on)\b|\b(?:enabled|enabling|turned on) MIG\b"
}
pattern! { MIG_NOT = r"(?i)\b(?:not|n['’]t|disabled?|off|without|if|whether|when you)\b" }
pattern! { NO_INSTANCE = r"(?i)\bNo MIG devices found\b|\bno (?:MIG|GPU|compute) (?:instances?|devices? (?:were |was |are )?(?:found|made|created|exist))\b|\bno MIG devices?\b" }

/// Most lines of one kind.
const LIMIT: usize = 256;

pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    const MARKS: [&str; 16] = [
        "MPS",
        "mps",
        "ompute",
        "xclusive",
        "rohibited",
        "MIG",
        "num_gpus",
        "libcuda",
        "COMPAT",
        "compat",
        "LD_LIBRARY_PATH",
        "ipc",
        " Control ",
        " Server ",
        "E. ",
        "daemon",
    ];
    if !MARKS.iter().any(|mark| line.text.contains(mark)) {
        return;
    }
    daemon(line, prose, facts);
    if prose {
        statements(line, facts);
        mode(line, facts);
    }
    if matches(&INDEX, line.text) && facts.share.index_beyond_count.len() < LIMIT {
        facts.mentions_gpu = true;
        let said = Seen::new(clean_excerpt(line.text), line.origin());
        facts.share.index_beyond_count.push(said);
    }
    let on = captures(&MIG_ON, line.text).and_then(|found| found.get(0));
    if prose && on.is_some_and(|said| !matches(&MIG_NOT, said.as_str())) {
        facts.mentions_gpu = true;
        facts.share.mig_mode_told.or_better(Observed::seen(true, line.origin()));
    }
    if matches(&NO_INSTANCE, line.text) {
        facts.share.mig_devices.or_better(Observed::Absent(line.origin()));
    }
}

fn daemon(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    if let Some(text) = group(&DAEMON_LOG, line.text, "text") {
        facts.mentions_gpu = true;
        facts.share.mps_daemon.or_better(Observed::seen(true, line.origin()));
        if let Some(cuda) = group(&BINARY, text, "cuda").and_then(|cuda| cuda.parse().ok()) {
            facts.share.mps_cuda = Observed::seen(cuda, line.origin());
        } else if matches(&LOG_FAILURE, text) && facts.share.mps_failures.len() < LIMIT {
            // "User did not send valid credentials" stands before every client that works, too.
            facts.share.mps_failures.push(Seen::new(clean_excerpt(text), line.origin()));
        }
        return;
    }
    if line.text.contains("nvidia-cuda-mps-")
        && matches(&PROCESS, line.text)
        && !matches(&STOPPED, line.text)
    {
        facts.mentions_gpu = true;
        facts.share.mps_daemon.or_better(Observed::seen(true, line.origin()));
    }
    if let Some(found) = captures(&PIPE_ABSENT, line.text) {
        let known = found.name("path").or(found.name("other")).is_some();
        if known || prose {
            facts.share.mps_pipe.or_better(Observed::Absent(line.origin()));
        }
    } else if let Some(path) = group(&PIPE_SEEN, line.text, "path") {
        facts.share.mps_pipe.or_better(Observed::seen(path.to_owned(), line.origin()));
    }
}

fn statements(line: &Line<'_>, facts: &mut Facts) {
    if matches(&RUNS, line.text) && !matches(&STOPPED, line.text) {
        facts.share.mps_daemon.or_better(Observed::seen(true, line.origin()));
    }
    let table = [
        (&ONLY_WITH, MpsStatement::OnlyWithMps),
        (&HOST_LIBRARY, MpsStatement::WorksWithHostLibrary),
        (&SHARED, MpsStatement::WorksWhenShared),
    ];
    for (pattern, statement) in table {
        let known = facts.share.mps_statements.iter().any(|seen| seen.value == statement);
        if matches(pattern, line.text) && !known {
            facts.share.mps_statements.push(Seen::new(statement, line.origin()));
        }
    }
}

fn mode(line: &Line<'_>, facts: &mut Facts) {
    let word = match (captures(&MODE, line.text), group(&CELL, line.text, "mode")) {
        (Some(found), _) => {
            let named =
                ["mode", "other", "set", "constant"].iter().find_map(|name| found.name(name));
            named.map_or("", |m| m.as_str()).to_lowercase()
        }
        (None, Some(cell)) => cell.to_lowercase(),
        (None, None) => return,
    };
    let mode = if word.contains("prohibited") {
        "Prohibited"
    } else if word.contains("thread") {
        "Exclusive_Thread"
    } else {
        "Exclusive_Process"
    };
    facts.mentions_gpu = true;
    facts.share.compute_mode_told.or_better(Observed::seen(mode.to_owned(), line.origin()));
}

#[cfg(test)]
mod tests {
    use super::super::lines_of;
    use super::*;

    #[test]
    fn the_daemons_log() {
        let facts = lines_of(
            "[2026-05-31 23:46:49.893 Control 11107] CUDA MPS Control binary version: 13030\n\
             [2026-05-31 23:46:50.001 Control 11107] Server 97 exited with status 1\n\
             [2026-05-31 23:46:50.002 Control 11107] User did not send valid credentials\n",
        );
        assert_eq!(facts.share.mps_daemon.value(), Some(&true));
        assert_eq!(facts.share.mps_cuda.value(), Some(&13030));
        assert_eq!(facts.share.mps_failures.len(), 1);
        let facts = lines_of("root 311 0.0 Ssl 10:01 0:00 nvidia-cuda-mps-control -d");
        assert_eq!(facts.share.mps_daemon.value(), Some(&true));
        assert!(lines_of("echo quit | nvidia-cuda-mps-control").share.mps_daemon.is_unknown());
        let gone = lines_of("ls: cannot access '/tmp/nvidia-mps': No such file or directory");
        assert!(gone.share.mps_pipe.absent().is_some());
        assert!(lines_of("/tmp/nvidia-mps/control").share.mps_pipe.is_seen());
    }

    #[test]
    fn statements_modes_and_assertions() {
        for (text, wanted) in [
            ("it hangs only while the MPS pipe directory is visible", MpsStatement::OnlyWithMps),
            ("with the host driver's libcuda first it works", MpsStatement::WorksWithHostLibrary),
            (
                "works when the daemon is started inside the container",
                MpsStatement::WorksWhenShared,
            ),
        ] {
            let said: Vec<_> =
                lines_of(text).share.mps_statements.into_iter().map(|seen| seen.value).collect();
            assert_eq!(said, [wanted], "{text}");
        }
        assert_eq!(
            lines_of("the MPS daemon is running there").share.mps_daemon.value(),
            Some(&true)
        );
        for (text, wanted) in [
            ("Compute M. column: E. Process", "Exclusive_Process"),
            ("the GPU is in prohibited mode", "Prohibited"),
            ("The GPU was set to Exclusive Process", "Exclusive_Process"),
            (
                "| N/A   38C    P0    56W / 300W |    312MiB / 16160MiB |      0%   E. Thread |",
                "Exclusive_Thread",
            ),
        ] {
            let told = lines_of(text).share.compute_mode_told;
            assert_eq!(told.value().map(String::as_str), Some(wanted), "{text}");
        }
        let said =
            lines_of("RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED");
        assert_eq!(said.share.index_beyond_count.len(), 1);
        assert!(lines_of("|  No MIG devices found   |").share.mig_devices.absent().is_some());
    }
}
