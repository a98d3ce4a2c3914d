//! The driver's interface as data.
