//! Causes in the process: its environment, limits and history.

pub(super) mod address_space;
pub(super) mod fork_after_init;
pub(super) mod index_remapped;
mod limits;
pub(super) mod memlock;
pub(super) mod open_files_huge;
pub(super) mod open_files_low;
pub(super) mod shm_small;
pub(super) mod threads;
pub(super) mod visible_devices;
