//! The machine that the lab runs on: what it offers, and where things are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::fault::Need;
use crate::paths;
use crate::run::CGROUP_V1;

/// The programs and libraries that faults are made with and judged by.
const PROGRAMS: [&str; 5] = ["gpudx", "inject", "cuda-count", "nvml-bare", "libinterposer.so"];

/// What was found.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The lab's own folder, with `inject.sh`.
    pub(crate) lab: PathBuf,
    /// A folder that everybody may read with copies of the programs.
    pub(crate) bin: PathBuf,
    /// Folder of all runs, removed at the end.
    pub(crate) work: PathBuf,
    /// Whether this process is root.
    pub(crate) root: bool,
    /// Version of the driver's module, if it is loaded.
    pub(crate) driver: Option<String>,
    /// The GPUs' names, as the driver tells them.
    pub(crate) gpus: Vec<String>,
    /// Where the cgroup v2 hierarchy is mounted.
    pub(crate) cgroup_v2: Option<PathBuf>,
    /// Folder of the toolkit's link-time stubs.
    stubs: Option<PathBuf>,
    /// Folder of the toolkit's compatibility libraries.
    compat: Option<PathBuf>,
    /// Whether python3 has torch.
    torch: bool,
    /// The stand-in for the kernel side, where it takes the place of a driver.
    pub(crate) kernel_side: Option<KernelSide>,
}

/// The real libraries of a driver over the stand-in for its kernel side.
#[derive(Debug, Clone)]
pub(crate) struct KernelSide {
    /// The preloaded stand-in.
    pub(crate) library: PathBuf,
    /// The folder of the driver's libraries.
    pub(crate) folder: PathBuf,
    /// Their version, and so the pretended module's.
    pub(crate) version: String,
}

impl KernelSide {
    /// The environment in which a program sees the pretended driver, with further settings.
    pub(crate) fn environment(&self, settings: Option<&str>) -> Vec<String> {
        let settings = settings.filter(|text| !text.is_empty()).map(|text| format!(",{text}"));
        vec![
            format!("LD_PRELOAD={}", self.library.display()),
            format!("LD_LIBRARY_PATH={}", self.folder.display()),
            format!("GPUDX_FAKERM=version={}{}", self.version, settings.unwrap_or_default()),
        ]
    }
}

impl Machine {
    /// Looks around, and copies the programs from `binaries` to where everybody may run them.
    pub(crate) fn find(binaries: &Path, more: &[&str]) -> Result<Machine> {
        let work = std::env::temp_dir().join(format!("gpudx-lab-{}", std::process::id()));
        let bin = work.join("bin");
        paths::make_open(&work)?;
        paths::make_open(&bin)?;
        for program in PROGRAMS.iter().chain(more) {
            let from = binaries.join(program);
            let to = bin.join(program);
            fs::copy(&from, &to).with_context(|| format!("no {}", from.display()))?;
            paths::open(&to)?;
        }
        let lab = work.join("lab");
        paths::make_open(&lab)?;
        fs::write(lab.join("inject.sh"), include_str!("../inject.sh"))?;
        let version = fs::read_to_string("/proc/driver/nvidia/version").ok();
        Ok(Machine {
            lab,
            bin,
            work,
            root: is_root(),
            driver: version.as_deref().and_then(version_in),
            gpus: gpu_names(),
            cgroup_v2: mount_of("cgroup2"),
            stubs: toolkit("lib64/stubs", "libcuda.so"),
            compat: toolkit("compat", "libcuda.so.1"),
            torch: succeeds("python3", &["-c", "import torch"]),
            kernel_side: None,
        })
    }

    /// Why a fault with these needs cannot be made here; `None` when it can.
    pub(crate) fn lacks(&self, needs: &[Need]) -> Option<&'static str> {
        needs.iter().find_map(|need| match need {
            Need::TwoGpus => (self.gpus.len() < 2).then_some("one GPU only"),
            Need::OneGpu => (self.gpus.len() != 1).then_some("more than one GPU"),
            Need::CgroupV2 => self.cgroup_v2.is_none().then_some("no cgroup v2 hierarchy"),
            Need::CgroupV1 => {
                let tasks = Path::new(CGROUP_V1).join("tasks");
                (!tasks.exists()).then_some("no cgroup v1 hierarchy of devices")
            }
            Need::Landlock => {
                let inject = self.bin.join("inject").display().to_string();
                (!succeeds(&inject, &["--read-only", "--", "true"])).then_some("no Landlock")
            }
            Need::Stubs => self.stubs.is_none().then_some("no toolkit with stubs"),
            Need::Compat => self.compat.is_none().then_some("no toolkit with a compat folder"),
            Need::Torch => (!self.torch).then_some("no torch"),
        })
    }

    /// Whether python3 has torch.
    pub(crate) fn has_torch(&self) -> bool {
        self.torch
    }

    /// The number of a device class in /proc/devices, or the number itself.
    pub(crate) fn major(device: &str) -> String {
        let devices = fs::read_to_string("/proc/devices").unwrap_or_default();
        let named = devices.lines().find_map(|line| {
            let (number, name) = line.trim().split_once(' ')?;
            (name == device).then(|| number.to_owned())
        });
        named.unwrap_or_else(|| device.to_owned())
    }

    /// A value of the environment with its variables put in.
    pub(crate) fn expand(&self, value: &str, run: &Path) -> String {
        let shown = |path: &Option<PathBuf>| {
            path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
        };
        let inherited = match &self.kernel_side {
            Some(kernel_side) => kernel_side.folder.display().to_string(),
            None => std::env::var("LD_LIBRARY_PATH").unwrap_or_default(),
        };
        let expanded = value
            .replace("$WORK", &run.display().to_string())
            .replace("$BIN", &self.bin.display().to_string())
            .replace("$STUBS", &shown(&self.stubs))
            .replace("$COMPAT", &shown(&self.compat))
            .replace("$LD_LIBRARY_PATH", &inherited);
        expanded.trim_end_matches(':').to_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Left-over copies in the temporary folder do no harm.
        let _ = fs::remove_dir_all(&self.work);
    }
}

/// True when this process is root.
fn is_root() -> bool {
    fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t")))
}

/// The version in /proc/driver/nvidia/version.
fn version_in(text: &str) -> Option<String> {
    let words = text.lines().next()?.split_whitespace();
    words
        .filter(|word| word.split('.').count() > 1)
        .find(|word| word.chars().all(|letter| letter.is_ascii_digit() || letter == '.'))
        .map(str::to_owned)
}

fn gpu_names() -> Vec<String> {
    let entries = fs::read_dir("/proc/driver/nvidia/gpus").into_iter().flatten().flatten();
    let texts =
        entries.filter_map(|entry| fs::read_to_string(entry.path().join("information")).ok());
    let names = texts.filter_map(|text| {
        let line = text.lines().find(|line| line.starts_with("Model:"))?;
        Some(line.trim_start_matches("Model:").trim().to_owned())
    });
    names.collect()
}

fn mount_of(kind: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(2) == Some(&kind)).then(|| PathBuf::from(words[1]))
    })
}

/// A folder of a CUDA toolkit that holds this file.
fn toolkit(folder: &str, file: &str) -> Option<PathBuf> {
    let mut roots = vec![PathBuf::from("/usr/local/cuda")];
    let others = fs::read_dir("/usr/local").into_iter().flatten().flatten();
    roots.extend(others.map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda-"))
    }));
    roots.into_iter().map(|root| root.join(folder)).find(|path| path.join(file).exists())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn the_version_of_both_flavours() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release";
        assert_eq!(version_in(open).as_deref(), Some("580.159.04"));
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct";
        assert_eq!(version_in(closed).as_deref(), Some("535.129.03"));
    }
}
