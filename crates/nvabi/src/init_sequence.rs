//! The calls that cuInit and nvmlInit make, in order.
//!
//! Table `init_sequences`: traced with libraries of 535, 550 and 555 over a stand-in for the
//! kernel side with one GPU.

use crate::table::Row;
use crate::tables::INIT_SEQUENCES;

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitStep {
    /// The function, library and version, such as `cuInit libcuda 550.163.01`.
    pub library: &'static str,
    /// Its place in the order, from 1.
    pub step: u32,
    /// The call, such as `ioctl nvidiactl NV_ESC_SYS_PARAMS`.
    pub call: &'static str,
    /// Arguments worth knowing. May be empty.
    pub detail: &'static str,
}

impl InitStep {
    fn of(row: Row) -> InitStep {
        InitStep {
            library: row.text("library"),
            step: row.number_u32("step").unwrap_or(0),
            call: row.text("call"),
            detail: row.text("detail"),
        }
    }
}

/// The calls of a function (`cuInit`, `nvmlInit`) in a driver version that was traced, in order.
pub fn steps(function: &str, version: &str) -> impl Iterator<Item = InitStep> {
    all().filter(move |step| {
        let mut words = step.library.split(' ');
        let called = words.next().unwrap_or("");
        called.trim_end_matches("_v2") == function.trim_end_matches("_v2")
            && words.next_back() == Some(version)
    })
}

/// All calls of all libraries.
pub fn all() -> impl Iterator<Item = InitStep> {
    INIT_SEQUENCES.rows().map(InitStep::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_traced_versions() {
        assert_eq!(steps("cuInit", "550.163.01").count(), 90);
        assert_eq!(steps("nvmlInit", "535.309.01").count(), 16);
        assert_eq!(steps("nvmlInit_v2", "555.58.02").count(), 17);
        assert_eq!(steps("cuInit", "560.35.03").count(), 0);
        let first = steps("cuInit", "555.58.02").next().unwrap();
        assert_eq!((first.step, first.call), (1, "open /dev/nvidiactl"));
    }
}
