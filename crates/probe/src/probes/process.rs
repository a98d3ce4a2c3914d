//! The process's environment and limits, as any program started from here inherits them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Options;
use super::reader::Reader;
use crate::child::report::Report;
use crate::sys::{host, process};

/// Beginnings of the names that are told. Everything else in an environment is the user's own
/// business and stays out of any report. A reader takes a name that is not told for one that is
/// not set, so a name that comes to matter must be added here first.
const PREFIXES: [&str; 17] = [
    "CUDA_", "CUDNN_", "NVIDIA_", "NVCC_", "NVML_", "NCCL_", "LD_", "TORCH_", "PYTORCH_", "VLLM_",
    "SGLANG_", "TF_", "XLA_", "JAX_", "GPU_", "SLURM_", "OMPI_",
];
/// Names that are told beside those.
const NAMES: [&str; 8] = [
    "PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "container",
    "KUBERNETES_SERVICE_HOST",
    "GOMP_CPU_AFFINITY",
    "OMP_NUM_THREADS",
];
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
