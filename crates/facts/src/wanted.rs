//! The one table of what is collected from a machine.
