//! Test stand-in.
