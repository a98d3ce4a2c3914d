//! Power states of GPUs beyond what the bus itself shows: switches, rules and what is said of them.

use crate::observed::Seen;

/// Power.
#[derive(Debug, Clone, Default)]
pub struct Power {
    /// Lines that show a GPU switched off: bbswitch's own line, or what is said of it.
    pub switched_off: Vec<Seen<String>>,
    /// Statements that CUDA works only through a program that switches the GPU on first (optirun).
    pub works_switched_on: Vec<Seen<String>>,
    /// Rules that put a GPU under runtime power management while it is still being added. The
    /// driver's own rule does so after binding and is not among them.
    pub rules: Vec<Seen<String>>,
}
