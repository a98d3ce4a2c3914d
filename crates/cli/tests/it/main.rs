//! The built binary from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod demo;
mod explain;
mod read;
mod support;
mod usage;
