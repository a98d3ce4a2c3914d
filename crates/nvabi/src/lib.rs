//! The NVIDIA driver's interface as data: what codes, requests, chips, log lines and versions mean.
//!
//! Each table is a file of `data/`, embedded as text and parsed when it is first asked for. Every
//! module below is one family of tables with typed look-ups and names its source;
//! `data/sources.tsv` has the source of each table, and [`table::Row::source`] that of a row.
//! [`lookup()`] finds a word in all of them.
//!
//! The crate reads nothing but its own data.

#![forbid(unsafe_code)]

pub mod abi_change;
pub mod arch;
pub mod branch;
pub mod chip;
pub mod class;
pub mod control;
pub mod cuda_result;
pub mod driver_version_seen;
pub mod error_text;
pub mod fault_matrix;
pub mod gsp_firmware;
pub mod gsp_measured;
pub mod gsp_rpc;
pub mod hang_state;
pub mod init_sequence;
pub mod ioctl;
mod lookup;
pub mod module_param;
pub mod number;
pub mod nv_status;
pub mod nvml_enum;
pub mod nvml_return;
pub mod pci_id;
pub mod pid_readable;
pub mod proc_path;
pub mod registry_key;
pub mod rm_init;
pub mod signature;
pub mod struct_layout;
pub mod table;
mod tables;
pub mod toolkit;
pub mod topology;
pub mod torch_build;
pub mod uvm;
pub mod xid;

pub use lookup::{Entry, lookup};
