//! One file a command.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod firmware;
pub(crate) mod read;
mod report;
pub(crate) mod trace;
