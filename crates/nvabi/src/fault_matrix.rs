//! What cuInit and nvmlInit answer to each fault beneath them.
//!
//! Tables `cuinit_fault_matrix` and `nvmlinit_fault_matrix`: measured with the libraries of
//! 535.309.01, 550.163.01 and 555.58.02 over a stand-in for the kernel side.

use crate::table::{Row, Table};
use crate::tables::{CUINIT_FAULT_MATRIX, NVMLINIT_FAULT_MATRIX};

/// What one library answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The library's version, such as `550.163.01`.
    pub version: &'static str,
    /// The answer as recorded.
    pub text: &'static str,
    /// The code; `None` when the call never returned or the case was not run.
    pub code: Option<i64>,
    /// True when the library went on asking for ever.
    pub loops: bool,
}

/// One fault and the answers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What was injected, such as `open /dev/nvidia-uvm -> EPERM`.
    pub fault: &'static str,
    row: &'static [&'static str],
    header: &'static [&'static str],
}

impl Fault {
    fn of(row: Row) -> Fault {
        let header = row.table().header();
        Fault { fault: row.text("injected_fault"), row: row.cells(), header }
    }

    /// The answers, by version.
    pub fn answers(&self) -> impl Iterator<Item = Answer> {
        self.header.iter().zip(self.row).skip(1).map(|(title, text)| Answer {
            version: title.rsplit('_').next().unwrap_or(""),
            text,
            code: text.split(' ').next().and_then(|code| code.parse().ok()),
            loops: text.starts_with("LOOPS"),
        })
    }
}

/// The faults beneath cuInit, in the order in which cuInit meets them.
pub fn cuinit() -> impl Iterator<Item = Fault> {
    faults(&CUINIT_FAULT_MATRIX)
}

/// The faults beneath nvmlInit.
pub fn nvmlinit() -> impl Iterator<Item = Fault> {
    faults(&NVMLINIT_FAULT_MATRIX)
}

fn faults(table: &'static Table) -> impl Iterator<Item = Fault> {
    table.rows().map(Fault::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_versions_and_codes() {
        let fault = cuinit().find(|fault| fault.fault == "open /dev/nvidia-uvm -> EPERM").unwrap();
        let answers: Vec<_> = fault.answers().map(|answer| (answer.version, answer.code)).collect();
        let code = Some(999);
        assert_eq!(answers, [("535.309.01", code), ("550.163.01", code), ("555.58.02", code)]);
        let again = nvmlinit().find(|fault| fault.fault == "open /dev/nvidia0 -> EAGAIN").unwrap();
        assert!(again.answers().all(|answer| answer.loops && answer.code.is_none()));
    }
}
