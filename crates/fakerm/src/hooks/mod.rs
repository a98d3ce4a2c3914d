//! The libc functions that are interposed. Each asks whether the path or descriptor is a pretended
//! one; if not, the kernel is asked with the same arguments.

mod change;
mod directory;
mod ioctl;
mod look;
mod map;
mod open;
mod stat;
mod target;
