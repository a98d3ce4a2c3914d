//! Environment and limits of the process.

use std::collections::BTreeMap;

use crate::observed::{Observed, Origin, Seen};

/// One limit: soft value, `None` for unlimited.
pub type Limit = Option<u64>;

/// The process.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Variables that were seen.
    pub env: BTreeMap<String, Seen<String>>,
    /// What is known to be unset: what a name had to contain to be listed (empty for a whole
    /// listing; `^CUDA` for names that begin so), and the listing.
    pub env_listed: Vec<(String, Origin)>,
    /// Limits, by their names in /proc/PID/limits.
    pub limits: BTreeMap<String, Seen<Limit>>,
    /// Up to where this process may raise them itself: the hard values of the same limits.
    pub hard_limits: BTreeMap<String, Seen<Limit>>,
    /// Limits as loose texts and traces tell them, in order. A text may speak of several
    /// processes, a login shell and a job for example, so that none replaces another.
    pub limits_told: Vec<Seen<(&'static str, Limit)>>,
    /// What the system refused and a limit holds down, as programs report it.
    pub refusals: Vec<Seen<Refusal>>,
    /// What was changed about the process, and whether it helped.
    pub attempts: Vec<Seen<Attempt>>,
    /// What is told to start slowly: the program or call, and the seconds it takes where they are
    /// told.
    pub slow_starts: Vec<Seen<(String, Option<f64>)>>,
    /// Sizes in bytes of mappings that a trace shows, from 1 GiB on.
    pub giant_mappings: Vec<Seen<u64>>,
    /// Whether nvidia-persistenced's socket is there, or is used.
    pub persistenced: Observed<bool>,
    /// Indices of GPUs that the program asks CUDA for.
    pub ordinals_wanted: Vec<Seen<u32>>,
    /// Size of /dev/shm in bytes.
    pub shm_bytes: Observed<u64>,
    /// What is free of /dev/shm, in bytes.
    pub shm_free_bytes: Observed<u64>,
    /// Processes and threads that the cgroup allows (`pids.max`).
    pub pids_max: Observed<Limit>,
    /// Programs that fork their workers, by the marks that they leave in tracebacks and logs.
    pub forking_workers: Vec<Seen<&'static str>>,
}

/// Something that the system refused to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// One more open file (EMFILE).
    OpenFile,
    /// One more thread or process (EAGAIN of clone).
    Thread,
    /// Address space (ENOMEM of mmap, or a library that cannot be mapped).
    AddressSpace,
    /// Memory that stays locked, as RDMA needs it.
    LockedMemory,
    /// Space in /dev/shm.
    SharedMemory,
    /// A process died of a bus error, as it does when /dev/shm is full.
    BusError,
    /// A device with this index, where there are fewer.
    Ordinal,
}

/// What can be changed about a process, its limits and libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lever {
    /// The limit of open files, to this value where it is told.
    OpenFiles(Option<u64>),
    /// The limit of the address space, lifted.
    AddressSpace,
    /// The limit of processes and threads, raised.
    Threads,
    /// The limit of locked memory, lifted.
    LockedMemory,
    /// /dev/shm, made larger or shared with the host.
    SharedMemory,
    /// A preloaded library, taken out or told to do nothing.
    Interposer,
    /// The index, counted within the visible set.
    VisibleIndex,
    /// WSL's own folder of libraries, put first.
    WslLibraries,
    /// The image, for another one on the same machine.
    OtherImage,
    /// The pipe folder of MPS, taken out of the environment, or MPS itself stopped.
    Mps,
    /// CUDA_VISIBLE_DEVICES, unset.
    VisibleDevices,
    /// The driver's own libcuda in place of the one that is found first.
    DriverLibrary,
    /// The user: root in place of another.
    Root,
    /// The GPU's compute mode, set to Default.
    ComputeMode,
    /// The user's groups: one of those that the driver's nodes belong to, added.
    NodeGroup,
    /// The device policy of the service's unit, opened for the driver's nodes.
    DevicePolicy,
    /// The way it is started: by a person in place of a service manager.
    OutsideUnit,
}

/// A change that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// What was changed.
    pub lever: Lever,
    /// Whether it works with the change.
    pub helped: bool,
    /// True for an experiment of gpudx's own that changed nothing else and whose runs without the
    /// change agree, before and after it; false for what a person tells.
    pub controlled: bool,
}

impl Process {
    /// Every reading of a limit by its name in /proc/PID/limits: the process's own first.
    pub fn limit_readings<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Seen<Limit>> + 'a {
        let told = self.limits_told.iter().filter(move |seen| seen.value.0 == name);
        let told = told.map(|seen| Seen::new(seen.value.1, seen.origin.clone()));
        self.limits.get(name).cloned().into_iter().chain(told)
    }

    /// The lowest reading of a limit.
    pub fn lowest_limit(&self, name: &str) -> Option<Seen<Limit>> {
        self.limit_readings(name).min_by_key(|seen| seen.value.unwrap_or(u64::MAX))
    }

    /// The highest reading of a limit.
    pub fn highest_limit(&self, name: &str) -> Option<Seen<Limit>> {
        self.limit_readings(name).max_by_key(|seen| seen.value.unwrap_or(u64::MAX))
    }

    /// Where the first refusal of this kind was reported.
    pub fn refused(&self, refusal: Refusal) -> Option<&Origin> {
        self.refusals.iter().find(|seen| seen.value == refusal).map(|seen| &seen.origin)
    }

    /// The first attempt at a lever that fits: whether it helped, and where that is told. One that
    /// helped counts before those in vain.
    pub fn tried(&self, fits: impl Fn(Lever) -> bool) -> Option<(Attempt, &Origin)> {
        let mut attempts = self.attempts.iter().filter(|seen| fits(seen.value.lever));
        let first = attempts.clone().next()?;
        let best = attempts.find(|seen| seen.value.helped).unwrap_or(first);
        Some((best.value, &best.origin))
    }

    /// Where it is told, or was tried, that changing this helped.
    pub fn helped_by(&self, lever: Lever) -> Option<&Origin> {
        let (attempt, origin) = self.tried(|other| other == lever)?;
        attempt.helped.then_some(origin)
    }

    /// One variable: seen, absent (the environment was listed and it is not there) or unknown.
    pub fn env(&self, name: &str) -> Observed<String> {
        if let Some(seen) = self.env.get(name) {
            return Observed::Seen(seen.clone());
        }
        match self.env_listed.iter().find(|(filter, _)| shows(filter, name)) {
            Some((_, origin)) => Observed::Absent(origin.clone()),
            None => Observed::default(),
        }
    }
}

/// True when a listing with this filter would have shown a variable of this name.
fn shows(filter: &str, name: &str) -> bool {
    match filter.strip_prefix('^') {
        Some(beginning) => name.starts_with(beginning),
        None => name.contains(filter),
    }
}
