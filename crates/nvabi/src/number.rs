//! Numbers, versions and per-branch values as the cells of the tables write them.

/// Reads a decimal (`803`) or hexadecimal (`0x2080012c`) number.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
        None => text.parse().ok().filter(|_| !text.starts_with('+')),
    }
}

/// As [`parse`], for cells that hold at most 32 bits.
pub(crate) fn parse_u32(text: &str) -> Option<u32> {
    parse(text).and_then(|value| u32::try_from(value).ok())
}

/// Reads `12.8`, `8.9` or the like at the start of a cell: `11.0 (10.1 before CUDA 13)` is 11.0.
pub(crate) fn major_minor(text: &str) -> Option<(u32, u32)> {
    let head = text.split_whitespace().next()?;
    let (major, minor) = head.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The driver branches whose headers were compiled to measure sizes and offsets.
pub const MEASURED_BRANCHES: [u32; 5] = [535, 550, 570, 580, 595];

/// The measured branches on either side of `branch`: the same one twice when it was measured
/// itself, the newest twice when it is newer, `None` when it is older than all.
pub(crate) fn measured_neighbors(branch: u32) -> Option<(u32, u32)> {
    let below = MEASURED_BRANCHES.into_iter().rev().find(|measured| *measured <= branch)?;
    let above = MEASURED_BRANCHES.into_iter().find(|measured| *measured >= branch).unwrap_or(below);
    Some((below, above))
}

/// Reads one value of a cell such as `535:1200,550:9264` or `535-595:32` for a branch. A branch
/// between two measured ones has a value only when both agree: a wrong offset is worse than none.
pub(crate) fn value_for_branch(cell: &str, branch: u32) -> Option<u32> {
    let (below, above) = measured_neighbors(branch)?;
    let value = listed_value(cell, below)?;
    (listed_value(cell, above) == Some(value)).then_some(value)
}

fn listed_value(cell: &str, branch: u32) -> Option<u32> {
    cell.split(',').find_map(|part| {
        let (branches, value) = part.split_once(':')?;
        let (first, last) = branches.split_once('-').unwrap_or((branches, branches));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if (first..=last).contains(&branch) { value.parse().ok() } else { None }
    })
}

/// Whether a list such as `525,535,550` names the branch.
pub(crate) fn list_has_branch(cell: &str, branch: u32) -> bool {
    cell.split(',').any(|part| part.parse() == Ok(branch))
}

/// The newest branch of a list such as `525,535,550`.
pub(crate) fn newest_branch(cell: &str) -> Option<u32> {
    cell.split(',').filter_map(|part| part.parse().ok()).max()
}

/// Text for a cell that may be empty: `None` when it says nothing (`""`, `-` or `none`).
pub(crate) fn filled(text: &'static str) -> Option<&'static str> {
    (!matches!(text, "" | "-" | "none")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_both_bases() {
        assert_eq!(parse("803"), Some(803));
        assert_eq!(parse("0x2080012c"), Some(0x2080_012c));
        assert_eq!(parse(" 0X25 "), Some(0x25));
        for text in ["", "0x", "-1", "+1", "0x+1", "12.8", "99999999999999999999999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_between_two_branches_needs_both_to_agree() {
        let sizes = "535:16,550:24,570:16,580:16,595:16";
        assert_eq!(value_for_branch(sizes, 550), Some(24));
        assert_eq!(value_for_branch(sizes, 555), None);
        assert_eq!(value_for_branch(sizes, 575), Some(16));
        assert_eq!(value_for_branch(sizes, 620), Some(16));
        assert_eq!(value_for_branch(sizes, 530), None);
        assert_eq!(value_for_branch("535-595:32", 560), Some(32));
        assert_eq!(value_for_branch("570:56,580:56", 550), None);
    }

    #[test]
    fn capabilities_with_remarks() {
        assert_eq!(major_minor("11.0 (10.1 before CUDA 13)"), Some((11, 0)));
        assert_eq!(major_minor("13.5.37"), Some((13, 5)));
        assert_eq!(major_minor("none"), None);
    }
}
