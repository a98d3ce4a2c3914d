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
    /// Size of /dev/shm in bytes.
    pub shm_bytes: Observed<u64>,
    /// What the input tells about a fork after CUDA was initialised: the statement.
    pub fork_after_init: Vec<Seen<String>>,
}

impl Process {
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
