//! Driver branches and the CUDA version that the driver of each supports.
//!
//! Table `driver_branches`: NVIDIA's CUDA features archive; 535, 550 and 555 measured.

use crate::number;
use crate::table::Row;
use crate::tables::DRIVER_BRANCHES;

/// One branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// The number, such as 580.
    pub number: u32,
    /// What cuDriverGetVersion answers; `None` where it is not confirmed.
    pub cuda: Option<(u32, u32)>,
    /// The same as the table has it, doubts included.
    pub cuda_text: &'static str,
    /// What is particular to it. May be empty.
    pub notes: &'static str,
    /// `EOL` and when, or empty.
    pub state: &'static str,
}

impl Branch {
    fn of(row: Row) -> Branch {
        let cuda_text = row.text("cuda_driver_api_version");
        // A cell with more than a version in it is a guess, and a guess is no lower bound.
        let confirmed = !cuda_text.contains(' ');
        Branch {
            number: row.number_u32("branch").unwrap_or(0),
            cuda: number::major_minor(cuda_text).filter(|_| confirmed),
            cuda_text,
            notes: row.text("notes"),
            state: row.text("state"),
        }
    }
}

/// The branch of that number.
pub fn by_number(branch: u32) -> Option<Branch> {
    DRIVER_BRANCHES.numbered("branch", branch.into()).next().map(Branch::of)
}

/// The CUDA version that the drivers of a branch support.
pub fn cuda_version(branch: u32) -> Option<(u32, u32)> {
    by_number(branch)?.cuda
}

/// All branches, by number.
pub fn all() -> impl Iterator<Item = Branch> {
    DRIVER_BRANCHES.rows().map(Branch::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_confirmed_and_one_that_is_not() {
        assert_eq!(cuda_version(535), Some((12, 2)));
        assert_eq!(cuda_version(590), Some((13, 1)));
        assert_eq!(cuda_version(610), None);
        assert_eq!(cuda_version(123), None);
    }

    #[test]
    fn a_newer_branch_never_supports_less() {
        let versions: Vec<_> = all().filter_map(|branch| branch.cuda).collect();
        assert!(versions.is_sorted() && versions.len() > 20);
    }
}
