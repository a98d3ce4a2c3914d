//! The steps of RmInitAdapter, which brings a GPU up, and the triple that the driver logs when one
//! fails: `RmInitAdapter failed! (0x62:0x65:1784)` is step, NV_STATUS, source line.
//!
//! Table `rm_init_adapter_codes`: the sources of NVIDIA/open-gpu-kernel-modules. Numbers changed
//! their meaning between branches: 0x26 is board validation up to 555, DMA configuration from 560.

use std::fmt;

use crate::number;
use crate::nv_status::{self, NvStatus};
use crate::table::Row;
use crate::tables::RM_INIT_ADAPTER_CODES;

/// One step, as one set of branches numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RmInitStep {
    /// The number.
    pub code: u32,
    /// The name, such as `RM_INIT_FIRMWARE_INIT_FAILED`.
    pub name: &'static str,
    /// The branches in which the number means this, separated by commas.
    pub branches: &'static str,
    /// What failed.
    pub meaning: &'static str,
    /// What causes it. May be empty.
    pub causes: &'static str,
}

impl RmInitStep {
    fn of(row: Row) -> RmInitStep {
        RmInitStep {
            code: row.number_u32("code_hex").unwrap_or(u32::MAX),
            name: row.text("name"),
            branches: row.text("branches"),
            meaning: row.text("meaning"),
            causes: row.text("likely_causes"),
        }
    }

    /// Whether the number has this meaning in a branch.
    pub fn in_branch(&self, branch: u32) -> bool {
        number::list_has_branch(self.branches, branch)
    }
}

/// All meanings of a number; more than one when branches differ.
pub fn meanings(code: u32) -> impl Iterator<Item = RmInitStep> {
    RM_INIT_ADAPTER_CODES.numbered("code_hex", code.into()).map(RmInitStep::of)
}

/// The meaning of a number in the newest branch that knows it. Where the driver's branch is known,
/// [`in_branch`] is the better question.
pub fn by_code(code: u32) -> Option<RmInitStep> {
    meanings(code).max_by_key(|step| number::newest_branch(step.branches))
}

/// The meaning of a number in a branch. A branch that is not listed has the newest meaning when it
/// is newer than all that are, and otherwise only a meaning that never changed.
pub fn in_branch(code: u32, branch: u32) -> Option<RmInitStep> {
    let newest = by_code(code)?;
    let newer_than_known = number::newest_branch(newest.branches).is_some_and(|last| branch > last);
    let unchanged = meanings(code).count() == 1;
    let listed = meanings(code).find(|step| step.in_branch(branch));
    listed.or_else(|| (newer_than_known || unchanged).then_some(newest))
}

/// All steps, by number.
pub fn all() -> impl Iterator<Item = RmInitStep> {
    RM_INIT_ADAPTER_CODES.rows().map(RmInitStep::of)
}

/// The triple of a failed RmInitAdapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RmInitTriple {
    /// The step that failed.
    pub code: u32,
    /// The NV_STATUS it failed with.
    pub status_code: u32,
    /// The line of the driver's source; it differs by version and so fingerprints one.
    pub line: u32,
}

impl RmInitTriple {
    /// The step, in the numbering of `branch`, or of the newest when the branch is not known.
    pub fn step(&self, branch: Option<u32>) -> Option<RmInitStep> {
        branch.map_or_else(|| by_code(self.code), |branch| in_branch(self.code, branch))
    }

    /// The step's name in the newest numbering.
    pub fn step_name(&self) -> Option<&'static str> {
        by_code(self.code).map(|step| step.name)
    }

    /// The status.
    pub fn status(&self) -> Option<NvStatus> {
        nv_status::by_code(self.status_code)
    }

    /// The status's name.
    pub fn status_name(&self) -> Option<&'static str> {
        self.status().map(|status| status.name)
    }
}

impl fmt::Display for RmInitTriple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}:{:#04x}:{}", self.code, self.status_code, self.line)
    }
}

/// Reads `0x62:0x65:1784`, in parentheses or not, or the first such triple among other words.
pub fn decode_triple(text: &str) -> Option<RmInitTriple> {
    text.split_whitespace().find_map(read_triple)
}

fn read_triple(word: &str) -> Option<RmInitTriple> {
    let word = word.trim_matches(|ch: char| !ch.is_ascii_alphanumeric());
    let (code, rest) = word.split_once(':')?;
    let (status, line) = rest.split_once(':')?;
    let hexadecimal = |text: &str| text.strip_prefix("0x").and(number::parse_u32(text));
    Some(RmInitTriple {
        code: hexadecimal(code)?,
        status_code: hexadecimal(status)?,
        line: number::parse_u32(line)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_changed_its_meaning_is_told_by_branch() {
        let name = |code, branch| in_branch(code, branch).map(|step| step.name);
        assert_eq!(name(0x26, 550), Some("RM_INIT_GPU_UNIVERSAL_VALIDATION_FAILED"));
        assert_eq!(name(0x26, 580), Some("RM_INIT_GPU_DMA_CONFIGURATION_FAILED"));
        assert_eq!(name(0x26, 610), Some("RM_INIT_GPU_DMA_CONFIGURATION_FAILED"));
        assert_eq!(name(0x26, 500), None);
        assert_eq!(name(0x61, 610), Some("RM_INIT_FIRMWARE_FETCH_FAILED"));
        assert_eq!(meanings(0x26).count(), 2);
        assert_eq!(by_code(0x62).map(|step| step.name), Some("RM_INIT_FIRMWARE_INIT_FAILED"));
    }

    #[test]
    fn triples_alone_and_in_a_line() {
        let triple = decode_triple("0x62:0x65:1784").unwrap();
        assert_eq!(triple.step_name(), Some("RM_INIT_FIRMWARE_INIT_FAILED"));
        assert_eq!(triple.status_name(), Some("NV_ERR_TIMEOUT"));
        assert_eq!(triple.line, 1784);
        assert_eq!(triple.to_string(), "0x62:0x65:1784");
        let line = "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x65:1784)";
        assert_eq!(decode_triple(line), Some(triple));
        for text in ["", "0x62:0x65", "62:65:1", "0000:01:00.0", "0x62:0x65:", "::"] {
            assert_eq!(decode_triple(text), None, "{text}");
        }
    }
}
