//! What a task's state, wait channel and system call say about a hang.
//!
//! Table `hang_states`: NVIDIA/open-gpu-kernel-modules and Linux sources, partly measured.

use crate::table::Row;
use crate::tables::HANG_STATES;

/// One kind of hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HangState {
    /// The state letter of /proc/PID/stat, perhaps with a remark.
    pub state: &'static str,
    /// The wait channel, or the top frames of the kernel stack.
    pub wait_channel: &'static str,
    /// What /proc/PID/syscall shows.
    pub system_call: &'static str,
    /// Another sign. May be empty.
    pub other_sign: &'static str,
    /// What it means.
    pub interpretation: &'static str,
    /// Whether SIGKILL ends it, perhaps with a remark.
    pub dies_on_sigkill: &'static str,
    /// What to look at next. May be empty.
    pub next_step: &'static str,
}

impl HangState {
    fn of(row: Row) -> HangState {
        HangState {
            state: row.text("stat_state"),
            wait_channel: row.text("wchan_or_top_frames"),
            system_call: row.text("proc_syscall"),
            other_sign: row.text("other_sign"),
            interpretation: row.text("interpretation"),
            dies_on_sigkill: row.text("dies_on_SIGKILL"),
            next_step: row.text("next_step"),
        }
    }
}

/// All kinds, the running ones first.
pub fn all() -> impl Iterator<Item = HangState> {
    HANG_STATES.rows().map(HangState::of)
}
