//! The process's environment and limits, as any program started from here inherits them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Options;
use super::reader::Reader;
use crate::child::report::Report;
use crate::sys::{errno_of, host, process};

/// Beginnings of the names that are told. Everything else in an environment is the user's own
/// business and stays out of any report. A reader takes a name that is not told for one that is
/// not set, so a name that comes to matter must be added here first.
const PREFIXES: [&str; 17] = [
    "CUDA_", "CUDNN_", "NVIDIA_", "NVCC_", "NVML_", "NCCL_", "LD_", "TORCH_", "PYTORCH_", "VLLM_",
    "SGLANG_", "TF_", "XLA_", "JAX_", "GPU_", "SLURM_", "OMPI_",
];
/// Names that are told beside those.
const NAMES: [&str; 9] = [
    "PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "container",
    "KUBERNETES_SERVICE_HOST",
    "GOMP_CPU_AFFINITY",
    "OMP_NUM_THREADS",
    "SUDO_UID",
];
/// Threads that are started at once: libcuda has three of its own after cuInit, NVML none.
const THREADS: usize = 4;
/// Most cgroups above the process that are looked at.
const CGROUPS_LIMIT: usize = 16;
/// Longest value that is told, in bytes.
const VALUE_LIMIT: usize = 4096;

/// Tells the size of /dev/shm and who this is, beside the rows of the group.
pub(super) fn run(report: &mut Report, _: &Options) {
    match host::file_system(Path::new("/dev/shm")) {
        Ok(shm) => {
            report.note("shm-bytes", shm.size_bytes.to_string());
            report.note("shm-free-bytes", shm.available_bytes.to_string());
        }
        Err(errno) => report.note("shm-error", errno.to_string()),
    }
    report.note("euid", process::effective_user().to_string());
    threads(report);
    mps_pipe(report);
    for (path, limit) in
        pids_limits(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
    {
        report.note("pids-max", format!("{limit} {path}"));
    }
}

/// Looks whether a daemon of MPS has its pipe where libcuda looks for it. The folder alone may be left
/// over from one.
fn mps_pipe(report: &mut Report) {
    let folder = std::env::var_os("CUDA_MPS_PIPE_DIRECTORY").filter(|folder| !folder.is_empty());
    let folder = folder.unwrap_or_else(|| "/tmp/nvidia-mps".into());
    let look = || match std::fs::symlink_metadata(Path::new(&folder).join("control")) {
        Ok(_) => Ok(()),
        Err(error) => Err(errno_of(&error)),
    };
    let _ = report.system_call("mps-pipe", Some(&folder.to_string_lossy()), look);
}

/// Starts as many threads as libcuda does in cuInit, and lets them end at once: where one is refused
/// here, one is refused there. The errno is that of the first refusal.
fn threads(report: &mut Report) {
    let start = || {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        let mut running = Vec::new();
        let mut result = Ok(());
        for _ in 0..THREADS {
            let wait = std::sync::Arc::clone(&wait);
            let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
                // Until all have been started, or it is over.
                let _ = wait.lock().map(|wait| wait.recv());
            });
            match thread {
                Ok(thread) => running.push(thread),
                Err(error) => {
                    result = Err(errno_of(&error));
                    break;
                }
            }
        }
        drop(end);
        for thread in running {
            // It has nothing to tell.
            let _ = thread.join();
        }
        result
    };
    let _ = report.system_call("start-threads", None, start);
}

/// The limits of processes in the process's own cgroup and those above it, each with its file.
fn pids_limits(cgroup: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let base = match controllers {
            "" => "/sys/fs/cgroup",
            "pids" => "/sys/fs/cgroup/pids",
            _ => continue,
        };
        let folders = Path::new(path).ancestors().take(CGROUPS_LIMIT);
        for folder in folders.filter(|folder| *folder != Path::new("/")) {
            let file = format!("{base}{}/pids.max", folder.display());
            if let Ok(limit) = std::fs::read_to_string(&file) {
                found.push((file, limit.trim().to_owned()));
            }
        }
    }
    found
}

/// Tells the variables that matter, in the form of the kernel's file. This process's own are those
/// that it was started with; nothing has changed them.
pub(super) fn environment(report: &mut Report, reader: &Reader, path: &str) {
    if !reader.is_live() {
        return;
    }
    let mut text = Vec::new();
    for (name, value) in std::env::vars_os() {
        if !name.to_str().is_some_and(is_told) {
            continue;
        }
        let value = value.as_bytes();
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.get(..VALUE_LIMIT).unwrap_or(value));
        text.push(0);
    }
    report.item(path, &text, false);
}

/// Names that could hold a secret are not told, whatever they begin with.
fn is_told(name: &str) -> bool {
    let secret = ["TOKEN", "SECRET", "PASSWORD", "API_KEY"].iter().any(|word| name.contains(word));
    let known = PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name);
    known && !secret
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_concerns_the_stack_is_told() {
        for name in ["CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "NCCL_P2P_DISABLE", "container"] {
            assert!(is_told(name), "{name}");
        }
        for name in ["HOME", "AWS_SECRET_ACCESS_KEY", "VLLM_API_KEY", "SLURM_JWT_TOKEN"] {
            assert!(!is_told(name), "{name}");
        }
    }
}
