//! What people say that they changed about the process, and whether it helped.

use super::super::Line;
use super::super::pattern::{Lazy, captures, matches, pattern};
use super::LIMIT;
use crate::model::Facts;
use crate::model::process::{Attempt, Lever};
use crate::observed::Seen;

pattern! {
    OPEN_FILES = r"(?i)(?:--ulimit[ =]|\bulimits?:? ?\{? ?)nofile\s*[=:]\s*(?P<a>\d+)|\bulimit -[SH]{0,2}n (?P<b>\d+|unlimited)|\b(?:LimitNOFILE|--nofile)=(?P<c>\d+)|\b(?:open[- ]files?|nofile|descriptor)\b[^\n.]{0,24}\blimit\b"
}
pattern! { ADDRESS_SPACE = r"(?i)\bulimit -[SH]{0,2}v unlimited|\b(?:without|lift\w*|remov\w+|drop\w*|rais\w+)\b[^\n.]{0,32}(?:ulimit -v|\bulimit\b(?: line)?|address[- ]space|virtual memory limit|RLIMIT_AS|h_vmem)|--as=unlimited" }
pattern! { THREADS = r"(?i)\bulimit -[SH]{0,2}u (?:\d+|unlimited)|--pids-limit[ =]-?\d+|\b(?:rais\w+|lift\w*|increas\w+|without)\b[^\n.]{0,32}(?:ulimit -u|nproc|pids?[- ]limit|process limit|TasksMax)|\bTasksMax=infinity" }
pattern! { LOCKED = r"(?i)--ulimit[ =]memlock=-1|\bulimit -[SH]{0,2}l unlimited|\bLimitMEMLOCK=infinity|\bIPC_LOCK\b|\b(?:rais\w+|lift\w*|increas\w+|unlimited)\b[^\n.]{0,32}(?:memlock|locked[- ]memory)|\bmemlock\b[^\n.]{0,24}\bunlimited" }
pattern! { SHARED = r"(?i)--shm[-_]size|\bshm_size\b|--ipc[= ]?host|\bmedium: Memory\b|\bemptyDir\b[^\n]{0,40}/dev/shm|\b(?:larger|bigger|rais\w+|increas\w+|enlarg\w+|remount\w*)\b[^\n.]{0,24}(?:/dev/shm|shm\b|shared memory)" }
pattern! {
    /// A sentence about how it is without a lever tells nothing of what the lever does.
    LACKING = r"(?i)\b(?:without|no|lack\w*|missing|omit\w*|forgot\w*|forgetting)\b[^\n.]{0,12}(?:--shm[-_]size|\bshm_size\b|--ipc|--ulimit)"
}
pattern! { INTERPOSER = r"(?i)\bCUDA_DISABLE_CONTROL\s*=\s*(?:true|1)|\bunset LD_PRELOAD|\bLD_PRELOAD=(?:['\x22]{2}|\s|$)|\b(?:without|remov\w+|unset\w*|dropp\w+|empty\w*|clear\w*|disabl\w+|no)\b[^\n.]{0,24}(?:LD_PRELOAD|preload\w*|interpos\w+|libvgpu|ld\.so\.preload|HAMi\b)|\benv -u LD_PRELOAD" }
pattern! { INDEX = r"(?i)\bCUDA_VISIBLE_DEVICES\s*=\s*\d+\b[^\n]{0,60}\b(?:index|device|cuda:|gpu|id|ordinal)\W{0,3}(?:is |to |= ?)?0\b|\b(?:index|device|cuda:|gpu id|ordinal)\W{0,3}0\b[^\n]{0,60}\bCUDA_VISIBLE_DEVICES\s*=\s*\d+" }
pattern! { WSL_LIBRARIES = r"(?i)\bLD_LIBRARY_PATH\S*/usr/lib/wsl|/usr/lib/wsl/lib\b[^\n]{0,60}\bLD_LIBRARY_PATH|\b(?:purg|remov|uninstall)\w+\b[^\n]{0,60}(?:libnvidia-compute|nvidia-driver|cuda-drivers|linux driver)" }
pattern! { OTHER_IMAGE = r"(?i)\b(?:another|other|different|older|newer|base|official|plain|previous|stock)\b[^\n.]{0,24}\b(?:image|container|tag)s?\b[^\n.]{0,60}\b(?:works?|fine|ok|good|succeeds|runs)\b|\b(?:image|container|tag)s?\b[^\n.]{0,40}\bon the same (?:host|machine|node|box|server)\b[^\n.]{0,24}\b(?:works?|fine|ok|good|succeeds|runs)\b|(?:之前|以前|旧|老|其他|别的)[^\n。]{0,12}镜像[^\n。]{0,8}(?:正常|可以|没问题|能用)" }
pattern! { MPS = r"(?i)\b(?:unset|without|remov\w+|env -u)\b[^\n.]{0,12}\bCUDA_MPS_PIPE_DIRECTORY\b|\bCUDA_MPS_PIPE_DIRECTORY\b (?:is )?(?:unset|removed)|\b(?:without|stopp\w+|quitt?\w*|kill\w+|disabl\w+)\b(?: the)? MPS\b" }
pattern! { VISIBLE = r"(?i)\b(?:unset\w*|without|remov\w+|env -u)\b[^\n.]{0,12}\bCUDA_VISIBLE_DEVICES\b|\bCUDA_VISIBLE_DEVICES\b (?:is |being )?(?:unset|removed|not set)" }
pattern! { DRIVER_LIBRARY = r"(?i)\b(?:unset\w*|without|env -u)\b[^\n.]{0,12}\bLD_LIBRARY_PATH\b|\bcompat\b[^\n.]{0,24}\b(?:removed|gone|deleted|disabled|out of|taken out)\b|\b(?:without|remov\w+|delet\w+|dropp\w+|disabl\w+)\b[^\n.]{0,24}\bcompat\b|\b(?:host|driver|system)(?:'s)? (?:own )?libcuda\b|\bLD_PRELOAD\b[^\n.]{0,60}\blibcuda\b|\blibcuda\b[^\n]{0,60}\bLD_PRELOAD\b|\b(?:using|with|via|through) LD_PRELOAD\b[^\n.]{0,12}\bload\b|\bLD_LIBRARY_PATH\S*(?:/run/opengl-driver|/usr/lib(?:64)?/nvidia|/usr/local/nvidia)" }
pattern! { ROOT = r"(?i)\b(?:as root|(?:with|under|using) sudo|(?:as|use|using|with|under|for) (?:the )?root (?:user|account))\b|^\W*sudo\b" }
pattern! {
    /// A program that systemd starts works when a person starts it.
    OUTSIDE_UNIT = r"(?i)\bas (?:a |my |the )?(?:normal |regular |same |own )?user\b|\bmanually\b|\bby hand\b|\bfrom (?:the |a |my )?(?:shell|terminal|command[- ]line|console|prompt)\b|\binteractively\b|\boutside (?:of )?(?:the |a )?(?:service|unit|systemd)\b"
}
pattern! {
    /// What starts programs in the background, and daemons that are such programs.
    SERVICE = r"(?i)\b(?:services?|systemd|units?|daemons?|jellyfin|plex|emby|ollama|frigate|tdarr|boinc|jenkins|cron)\b"
}
pattern! { COMPUTE_MODE = r"(?i)\bnvidia-smi\b[^\n.]{0,24}(?: -c|--compute-mode)[ =]?(?:0|DEFAULT)\b|\bcompute[- ]mode\b[^\n.]{0,24}\bdefault\b" }
pattern! {
    /// The groups that distributions give the driver's nodes to.
    NODE_GROUP = r"(?i)\b(?:video|vglusers)\b['\x22`]? group\b|\bgroup ['\x22`]?(?:video|vglusers)\b|\b(?:usermod|gpasswd|adduser|groupmod)\b[^\n]{0,24}\b(?:video|vglusers)\b"
}
pattern! { DEVICE_POLICY = r"\b(?:DeviceAllow|DevicePolicy|PrivateDevices)\b|\b[Dd]evices?[- ]allow[- ]?list\b" }
pattern! { WORKS = r"(?i)\b(?:works?|worked|working|fixe[sd]|fix(?:es|ed)? (?:it|this|that)|correct(?:ed|s) (?:it|this|that)|cures?|cured|solve[sd]|resolve[sd]|helps?|helped|succeeds?|pass(?:es|ed)|starts|goes away|went away|gone|no longer|(?:is|was|are) (?:fine|ok|fast|quick|instant)|runs? (?:fine|ok|through|well)|drops? to|down to|makes? it (?:start|run|fast|quick|instant|\d+)|completes?|takes? (?:only )?0?[.\d]+ ?(?:ms|s)\b|can (?:run|start)(?: again)?|trains?|finds? (?:the |my |a |all )?GPUs?)\b" }
pattern! { IN_VAIN = r"(?i)\b(?:does(?:n['’]t| not)|did(?:n['’]t| not)|has(?:n['’]t| not)|no|not|never)\b[^\n.]{0,16}\b(?:help|work|change|matter|effect|difference|fix|solve|cure|success)\w*|\bwithout (?:success|effect|change)\b|\bstill (?:hangs?|fails?|the same|broken|slow|not|crash\w*)\b|\bin vain\b|\bmakes no difference\b|\bsame (?:error|result|problem)\b" }
pattern! { WISH = r"(?i)\b(?:will|would|could|should|might|please|try|can you|have you|how to|whether)\b|\?\s*$" }

/// Enters what the line tells of an attempt, clause by clause.
pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    let table: [(&Lazy, Lever); 17] = [
        (&OPEN_FILES, Lever::OpenFiles(None)),
        (&ADDRESS_SPACE, Lever::AddressSpace),
        (&THREADS, Lever::Threads),
        (&LOCKED, Lever::LockedMemory),
        (&SHARED, Lever::SharedMemory),
        (&INTERPOSER, Lever::Interposer),
        (&INDEX, Lever::VisibleIndex),
        (&WSL_LIBRARIES, Lever::WslLibraries),
        (&OTHER_IMAGE, Lever::OtherImage),
        (&MPS, Lever::Mps),
        (&VISIBLE, Lever::VisibleDevices),
        (&DRIVER_LIBRARY, Lever::DriverLibrary),
        (&ROOT, Lever::Root),
        (&COMPUTE_MODE, Lever::ComputeMode),
        (&NODE_GROUP, Lever::NodeGroup),
        (&DEVICE_POLICY, Lever::DevicePolicy),
        (&OUTSIDE_UNIT, Lever::OutsideUnit),
    ];
    for clause in clauses(line.text) {
        if matches(&LACKING, clause) {
            continue;
        }
        // The words for another image tell by themselves that it works.
        let works = matches(&WORKS, clause) || matches(&OTHER_IMAGE, clause);
        // The "no" of `PrivateDevices=no` is a value and denies nothing.
        let said = clause.replace("=no ", "=0 ");
        let helped = match (matches(&IN_VAIN, &said), works) {
            (true, _) => false,
            (false, true) if !matches(&WISH, clause) => true,
            (false, _) => continue,
        };
        for (pattern, lever) in table {
            // What is typed with sudo to change a group is not the program that runs as root.
            let to_change_a_group = lever == Lever::Root && matches(&NODE_GROUP, clause);
            let by_no_service = lever == Lever::OutsideUnit && !matches(&SERVICE, clause);
            if matches(pattern, clause) && !to_change_a_group && !by_no_service {
                let lever =
                    if pattern_is(pattern, &OPEN_FILES) { open_files(clause) } else { lever };
                enter(Attempt { lever, helped, controlled: false }, line, facts);
            }
        }
    }
}

fn pattern_is(one: &Lazy, other: &Lazy) -> bool {
    std::ptr::eq(one, other)
}

/// Sentences and what semicolons part; a dot within a word, a number or a path ends none.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', ';']).flat_map(|part| part.split(". ")).filter(|part| part.len() < 2048)
}

fn open_files(clause: &str) -> Lever {
    let found = captures(&OPEN_FILES, clause);
    let number = found.and_then(|found| {
        let text = found.name("a").or(found.name("b")).or(found.name("c"))?;
        text.as_str().parse().ok()
    });
    Lever::OpenFiles(number)
}

fn enter(attempt: Attempt, line: &Line<'_>, facts: &mut Facts) {
    let attempts = &mut facts.process.attempts;
    if attempts.len() < LIMIT && !attempts.iter().any(|seen| seen.value == attempt) {
        attempts.push(Seen::new(attempt, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_expression_compiles() {
        let all = [
            &OPEN_FILES,
            &ADDRESS_SPACE,
            &THREADS,
            &LOCKED,
            &SHARED,
            &LACKING,
            &INTERPOSER,
            &INDEX,
            &WSL_LIBRARIES,
            &OTHER_IMAGE,
            &MPS,
            &VISIBLE,
            &DRIVER_LIBRARY,
            &ROOT,
            &COMPUTE_MODE,
            &NODE_GROUP,
            &DEVICE_POLICY,
            &OUTSIDE_UNIT,
            &SERVICE,
            &WORKS,
            &IN_VAIN,
            &WISH,
        ];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn what_helped_and_what_did_not() {
        let helped = |lever| Attempt { lever, helped: true, controlled: false };
        let in_vain = |lever| Attempt { lever, helped: false, controlled: false };
        for (text, attempt) in [
            (
                "With --ulimit nofile=65536:65536 it takes 2 s.",
                helped(Lever::OpenFiles(Some(65536))),
            ),
            ("Adding --shm-size=1g to docker run fixes it.", helped(Lever::SharedMemory)),
            ("It works with --ipc=host", helped(Lever::SharedMemory)),
            ("init takes 0.22 s with CUDA_DISABLE_CONTROL=true", helped(Lever::Interposer)),
            ("Without LD_PRELOAD everything works.", helped(Lever::Interposer)),
            ("It works with CUDA_VISIBLE_DEVICES=5 and index 0.", helped(Lever::VisibleIndex)),
            ("export LD_LIBRARY_PATH=/usr/lib/wsl/lib makes it work", helped(Lever::WslLibraries)),
            ("Another image on the same host works.", helped(Lever::OtherImage)),
            ("ulimit -l unlimited in the job script solved it", helped(Lever::LockedMemory)),
            ("unset CUDA_MPS_PIPE_DIRECTORY cures it", helped(Lever::Mps)),
            ("`env -u CUDA_VISIBLE_DEVICES ./test` works", helped(Lever::VisibleDevices)),
            ("With CUDA_VISIBLE_DEVICES unset it starts.", helped(Lever::VisibleDevices)),
            ("It works once the compat folder is removed", helped(Lever::DriverLibrary)),
            ("env -u LD_LIBRARY_PATH ./test succeeds", helped(Lever::DriverLibrary)),
            ("env -u LD_PRELOAD ./test works", helped(Lever::Interposer)),
            ("As root it works fine", helped(Lever::Root)),
            ("torch finds the GPU only if I use the root user", helped(Lever::Root)),
            (
                "Using LD_PRELOAD to load the host's libcuda.so.1 results in it working",
                helped(Lever::DriverLibrary),
            ),
            (
                "It fails when started by the systemd service but works when I run it by hand",
                helped(Lever::OutsideUnit),
            ),
            ("It works as my user, but not as a service", helped(Lever::OutsideUnit)),
            ("setting nvidia-smi -c 0 solved it!", helped(Lever::ComputeMode)),
            ("Adding my user to the video group worked.", helped(Lever::NodeGroup)),
            ("With PrivateDevices=no in the unit it works", helped(Lever::DevicePolicy)),
            ("sudo usermod -aG video me did not help", in_vain(Lever::NodeGroup)),
            ("unset CUDA_VISIBLE_DEVICES did not help", in_vain(Lever::VisibleDevices)),
            ("sudo makes no difference", in_vain(Lever::Root)),
            ("--shm-size=16g did not help", in_vain(Lever::SharedMemory)),
        ] {
            let facts = lines_of(text);
            assert_eq!(
                facts.process.attempts.first().map(|seen| seen.value),
                Some(attempt),
                "{text}"
            );
        }
        assert!(
            lines_of("Should I try --shm-size=1g? Would that work?").process.attempts.is_empty()
        );
    }
}
