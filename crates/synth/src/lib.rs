//! Synthetic inputs and stand-ins for the tests of every other crate.
//!
//! Writers here put bytes down by hand and share no code with the parsers that read them, so that
//! a misunderstanding of a format cannot hide in both. [`artifacts`] finds (and builds when need
//! be) the stand-in libraries and programs; [`driver_packages`] fetches the real driver libraries;
//! [`expectations`] reads what the cases of the corpus expect.

pub mod artifacts;
pub mod driver_packages;
pub mod elf;
pub mod expectations;
pub mod firmware;
pub mod kernel_log;
pub mod kernel_module;
pub mod ld_cache;
pub mod root;
pub mod shared_library;
pub mod smi;
