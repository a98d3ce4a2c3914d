//! A fault as data: how it is injected, and what must come out.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// Who the program runs as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Caps {
    /// Root with every capability.
    Root,
    /// Root without CAP_MKNOD, as in most containers.
    #[default]
    RootMknod,
    /// An ordinary user.
    User,
}

impl Caps {
    /// As the tables write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Caps::Root => "root",
            Caps::RootMknod => "root-mknod",
            Caps::User => "user",
        }
    }
}

/// What a machine must offer for a fault to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Need {
    /// At least two GPUs.
    TwoGpus,
    /// Exactly one GPU.
    OneGpu,
    /// A cgroup v2 hierarchy.
    CgroupV2,
    /// A cgroup v1 hierarchy of the devices controller.
    CgroupV1,
    /// Landlock.
    Landlock,
    /// A CUDA toolkit's folder of link-time stubs.
    Stubs,
    /// A CUDA toolkit's compatibility folder.
    Compat,
    /// python3 with torch.
    Torch,
}

/// Which program is judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Via {
    /// `gpudx check` inside the fault.
    #[default]
    Check,
    /// `gpudx read` of what `program` prints inside the fault.
    Read,
}

/// What must come out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// State of the whole; unset means `fault` when `top` is set and `healthy` when not.
    #[serde(default)]
    pub(crate) state: Vec<String>,
    /// Causes of which one must come first, likely or confirmed.
    #[serde(default)]
    pub(crate) top: Vec<String>,
    /// Lowest verdict of the first cause; `likely` when unset.
    #[serde(default)]
    pub(crate) at_least: Option<String>,
    /// Highest verdict of the first cause.
    #[serde(default)]
    pub(crate) at_most: Option<String>,
    /// Further causes that must be named.
    #[serde(default)]
    pub(crate) also: Vec<String>,
    /// Causes that must be ruled out.
    #[serde(default)]
    pub(crate) ruled_out: Vec<String>,
    /// Causes that may not be named.
    #[serde(default)]
    pub(crate) must_not_name: Vec<String>,
    /// Symptoms that must be seen.
    #[serde(default)]
    pub(crate) symptoms: Vec<String>,
}

/// A fault.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch in the data of a fault")]
pub(crate) struct Fault {
    /// Its name, unique.
    pub(crate) name: String,
    /// One line on what is done.
    pub(crate) what: String,
    /// Who the program runs as.
    #[serde(default, rename = "as")]
    pub(crate) caps: Caps,
    /// What the machine must offer.
    #[serde(default)]
    pub(crate) needs: Vec<Need>,
    /// Shell lines, run as root in a mount namespace of the run's own, with the functions of
    /// `lab/inject.sh` at hand.
    #[serde(default)]
    pub(crate) setup: String,
    /// Whether a PID namespace of its own is made too.
    #[serde(default)]
    pub(crate) pid_namespace: bool,
    /// Arguments of `inject`.
    #[serde(default)]
    pub(crate) inject: Vec<String>,
    /// Device majors, or names of /proc/devices, that a cgroup v2 program denies.
    #[serde(default)]
    pub(crate) deny_devices: Vec<String>,
    /// Options of prlimit, such as `--nofile=4`.
    #[serde(default)]
    pub(crate) limits: Vec<String>,
    /// Words put before the program, such as `unshare -U`.
    #[serde(default)]
    pub(crate) wrap: Vec<String>,
    /// Environment; a value may use `$WORK`, `$BIN`, `$STUBS`, `$COMPAT`.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Settings of the interposer, which is preloaded then.
    #[serde(default)]
    pub(crate) interpose: Option<String>,
    /// Whether it is made over the stand-in for the kernel side as well.
    #[serde(default)]
    pub(crate) sim: bool,
    /// Settings of that stand-in, beside the driver's version.
    #[serde(default)]
    pub(crate) fakerm: Option<String>,
    /// Whether the driver's libraries ask for ever, so that waiting for them longer tells nothing.
    #[serde(default)]
    pub(crate) loops: bool,
    /// Further arguments of `gpudx check`.
    #[serde(default)]
    pub(crate) check: Vec<String>,
    /// Whether it must have the machine for itself.
    #[serde(default)]
    pub(crate) alone: bool,
    /// Whether other tools are not asked: a tool that hangs at one call hangs at the next as well,
    /// and waiting for each takes half a minute.
    #[serde(default)]
    pub(crate) without_peers: bool,
    /// Which program is judged.
    #[serde(default)]
    pub(crate) via: Via,
    /// The program whose output is read.
    #[serde(default)]
    pub(crate) program: String,
    /// What must come out.
    #[serde(default)]
    pub(crate) expect: Expect,
}

impl Fault {
    /// The states that are right.
    pub(crate) fn states(&self) -> Vec<String> {
        if !self.expect.state.is_empty() {
            return self.expect.state.clone();
        }
        let state = if self.expect.top.is_empty() { "healthy" } else { "fault" };
        vec![state.to_owned()]
    }
}

/// A file of faults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    fault: Vec<Fault>,
    #[serde(default)]
    series: Vec<Series>,
}

/// Faults that differ in a number alone: every `{n}` in name, what and interpose is replaced.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    from: u32,
    to: u32,
    fault: Fault,
}

impl Series {
    fn all(&self) -> impl Iterator<Item = Fault> + '_ {
        (self.from..=self.to).map(|number| {
            let put = |text: &str| text.replace("{n}", &format!("{number:02}"));
            let mut fault = self.fault.clone();
            fault.name = put(&fault.name);
            fault.what = put(&fault.what);
            fault.interpose = fault.interpose.map(|text| text.replace("{n}", &number.to_string()));
            fault
        })
    }
}

/// The files, which travel in the program.
const FILES: [(&str, &str); 7] = [
    ("nodes.toml", include_str!("../faults/nodes.toml")),
    ("sandbox.toml", include_str!("../faults/sandbox.toml")),
    ("process.toml", include_str!("../faults/process.toml")),
    ("libraries.toml", include_str!("../faults/libraries.toml")),
    ("hangs.toml", include_str!("../faults/hangs.toml")),
    ("two.toml", include_str!("../faults/two.toml")),
    ("sim.toml", include_str!("../faults/sim.toml")),
];

/// All faults.
pub(crate) fn all() -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for (name, text) in FILES {
        let file: File = toml::from_str(text).context(name)?;
        faults.extend(file.fault);
        faults.extend(file.series.iter().flat_map(Series::all));
    }
    let mut names: Vec<&str> = faults.iter().map(|fault| fault.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    ensure!(twice.is_none(), "two faults are called {}", twice.unwrap_or_default());
    Ok(faults)
}
