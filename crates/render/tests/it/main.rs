//! What is written, from facts made by hand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod explain;
mod json;
mod markdown;
mod story;
mod support;
mod terminal;
