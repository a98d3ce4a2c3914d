//! Container and policy around the process.

use std::collections::BTreeMap;

use super::engine::Engine;
use crate::observed::{Errno, Observed, Origin, Seen};

/// A line of /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub target: String,
    /// File system type.
    pub fs_type: String,
    /// Source.
    pub source: String,
    /// Mount and super-block options, joined.
    pub options: Vec<String>,
    /// Root of the mount within the file system.
    pub root: String,
}

/// A line of a uid or gid map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdMapRange {
    /// First id inside.
    pub inside: u32,
    /// First id outside.
    pub outside: u32,
    /// How many.
    pub count: u32,
}

/// Container and policy.
#[derive(Debug, Clone, Default)]
pub struct Sandbox {
    /// Effective capabilities, as the bit mask of /proc/self/status.
    pub cap_effective: Observed<u64>,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: Observed<u8>,
    /// NoNewPrivs.
    pub no_new_privs: Observed<bool>,
    /// Where the image's own entry point says that it finds no driver in the container: no
    /// libcuda, or no nvidiactl.
    pub image_lacks_driver: Option<Origin>,
    /// Lines of /proc/self/cgroup.
    pub cgroups: Observed<Vec<String>>,
    /// Mounts.
    pub mounts: Observed<Vec<Mount>>,
    /// uid map.
    pub uid_map: Observed<Vec<IdMapRange>>,
    /// Micro-probes: a small call the driver needs, by name, and the errno it gave (`None` = fine).
    pub micro: BTreeMap<String, (Option<Errno>, Origin)>,
    /// Settings of container configuration that the input shows: `lxc.cgroup2.devices.allow`,
    /// `no-cgroups`, …; key, value.
    pub settings: Vec<Seen<(String, String)>>,
    /// Messages of container engines and hooks, by a short id of their kind.
    pub engine_messages: Vec<Seen<(&'static str, String)>>,
    /// How the container was started, if the input shows the command line.
    pub started_with: Observed<String>,
    /// `Seen(true)` when the engine was asked for GPUs, `Seen(false)` when its command line or
    /// environment shows that it was not.
    pub gpu_requested: Observed<bool>,
    /// `Seen(true)` when the host outside is known to have working GPUs.
    pub host_has_gpus: Observed<bool>,
    /// The engine, its hooks and the policies around it.
    pub engine: Engine,
}

impl Sandbox {
    /// A capability by its bit number (27 is CAP_MKNOD, 21 CAP_SYS_ADMIN).
    pub fn has_capability(&self, bit: u32) -> Option<bool> {
        self.cap_effective.value().map(|mask| mask >> bit & 1 == 1)
    }
}
