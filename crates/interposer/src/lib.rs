//! A stand-in for a library that stands between a program and the driver, preloaded into it.
//!
//! Unlike `fakerm` it pretends nothing: every call goes to the real driver, but for the one that
//! `GPUDX_INTERPOSE` names. So it makes, on a machine with a GPU, the faults that real shims make
//! (a call that never returns, a code that no driver gave, a crash).
//!
//! # Settings
//!
//! `GPUDX_INTERPOSE` is a list with commas between its settings; each is `SITE=ACTION`.
//!
//! | site | the calls that it means |
//! |---|---|
//! | `step:7` | the 7th open or ioctl of this process that is for `/dev/nvidia*` |
//! | `request:0x30000001` | ioctls with this request on `/dev/nvidia*` |
//! | `escape:0x2a` | ioctls of this number and the driver's type on `/dev/nvidia*` |
//! | `cuInit` | this function, also where it is looked up with dlsym |
//!
//! Actions: `hang` sleeps for ever; `crash` raises SIGSEGV; a number is what `cuInit` answers, or
//! the errno with which a call fails.

mod act;
mod hooks;
mod lookup;
mod settings;
