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
    /// What is known to be unset: the listing and the prefix that it would have shown (empty for
    /// a whole listing).
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
        match self.env_listed.iter().find(|(filter, _)| name.contains(filter.as_str())) {
            Some((_, origin)) => Observed::Absent(origin.clone()),
            None => Observed::default(),
        }
    }
}
