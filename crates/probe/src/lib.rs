//! Everything that touches a machine.
pub mod child;
mod probes;
pub mod supervise;
mod sys;
