//! Texts as another person would have pasted them.

pub(crate) mod blocks;
pub(crate) mod form;
pub(crate) mod noise;
pub(crate) mod values;
