//! What can be known about a machine's NVIDIA stack, and how bytes become it.
//!
//! The way of the data: a source (crate `probe`) fills a [`raw::RawSet`] with raw items and where
//! each came from; [`parse`] turns the bytes of one format into typed pieces plus complaints;
//! [`mod@extract`] joins the pieces into [`Facts`], where every reading is [`Observed`] in one of four
//! ways and carries its [`Origin`]. This crate does no input or output and cannot fail: what it
//! does not understand is kept, counted and shown.

#![forbid(unsafe_code)]

pub mod extract;
pub mod layer;
pub mod model;
pub mod observed;
pub mod parse;
pub mod raw;
pub mod version;
pub mod wanted;
pub mod wire;

pub use extract::extract;
pub use layer::Layer;
pub use model::Facts;
pub use observed::{Errno, Observed, Origin, Seen, Why};
