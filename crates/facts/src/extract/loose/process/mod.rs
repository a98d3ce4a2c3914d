//! The process in texts: its limits, what it was refused for them, what was changed about it, what
//! is preloaded into it, which GPU it asks for.

pub(super) use wsl::folder as wsl_folder;

use super::Line;
use super::pattern::{matches, pattern};
use crate::model::Facts;
use crate::observed::Seen;

mod attempts;
mod forks;
mod interposers;
mod limits;
mod linked;
mod ordinals;
mod packages;
mod refusals;
mod shared_memory;
mod slow;
mod wsl;

pattern! {
    /// A cheap look first: most lines of most texts are of something else.
    ANY = r"(?i-u)limit|rlim|NOFILE|memlock|max (?:open|locked|proc|addr)|open files|too many|/dev/shm|shm|shared memory|bus error|No space left|unavailable|start new thread|pids|ibv_|ENOMEM|map segment|ordinal|device_count|deserialize|device id|set_device|cuda:\d|LD_PRELOAD|ld\.so\.preload|CUDA_DISABLE_CONTROL|libvgpu|HAMi|4pdvGPU|gemhook|libcuda[-_]|nvshare|intercept|preload|interpos|WSL|microsoft-standard|libnvidia|nvidia-(?:driver|utils|compute|headless)|libcuda1|cuda-drivers|nvidia-smi|persistenced|cu_?init|mmap\(|slow|crawl|half a|^\s*real\s|pthread_create|thread creation|native thread|OS thread|EAGAIN|Errno 11|EMFILE|SIGBUS|signal 7|mlock|image|镜像|container|libcuda\.so|ipc|--?gpus?|gpu_|device_id|SetDevice|cuDeviceGet|local_rank|VISIBLE_DEVICES|MPS|LD_LIBRARY_PATH|compat|as root|sudo|the root user|group|compute[- ]mode|DeviceAllow|DevicePolicy|PrivateDevices|allow[- ]?list|service|as (?:a |my )?(?:normal |regular )?user|celery|multiprocess|多进程|ProcessPool|set_start_method|ForkPool|gunicorn|uwsgi|billiard|popen_fork|work_horse|DataLoader worker|_utils/worker|initialization error"
}

/// Most entries of one kind: a program that repeats itself tells nothing new.
const LIMIT: usize = 64;

/// Reads one line; sentences of a person only where a person may speak.
pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    if !matches(&ANY, line.text) {
        return;
    }
    refusals::read(line, facts);
    limits::rows(line, facts);
    linked::read(line, prose, facts);
    ordinals::read(line, facts);
    packages::read(line, facts);
    wsl::read(line, prose, facts);
    slow::read(line, prose, facts);
    forks::read(line, facts);
    if !prose {
        shared_memory::read(line, false, facts);
        interposers::read(line, facts);
        return;
    }
    attempts::read(line, facts);
    for text in super::statement::sentences(line.text) {
        let sentence = Line { item: line.item, number: line.number, text };
        shared_memory::read(&sentence, true, facts);
        interposers::read(&sentence, facts);
        limits::read_prose(&sentence, facts);
    }
}

/// Reads a command line: limits, sizes and indices that it sets.
pub(super) fn read_typed(line: &Line<'_>, facts: &mut Facts) {
    if !matches(&ANY, line.text) {
        return;
    }
    limits::read_typed(line, facts);
    shared_memory::read(line, false, facts);
    ordinals::read(line, facts);
    packages::read(line, facts);
}

/// Keeps an entry unless the same one is known.
fn push<T: PartialEq>(list: &mut Vec<Seen<T>>, value: T, line: &Line<'_>) {
    if list.len() < LIMIT && !list.iter().any(|seen| seen.value == value) {
        list.push(Seen::new(value, line.origin()));
    }
}
