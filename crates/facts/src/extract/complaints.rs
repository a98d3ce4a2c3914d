//! What parsers could not make sense of, with its place in the input.

use crate::model::{Complaint, Facts};
use crate::parse::LineComplaint;
use crate::raw::RawItem;

/// Most complaints that are kept of one item: a foreign format complains about each line.
const COMPLAINTS_LIMIT: usize = 16;

/// Enters a parser's complaints about an item.
pub(crate) fn note(item: &RawItem, complaints: &[LineComplaint], facts: &mut Facts) {
    for complaint in complaints.iter().take(COMPLAINTS_LIMIT) {
        let origin = match complaint.line {
            0 => item.origin(),
            line => item.origin_of_line(line),
        };
        facts.complaints.push(Complaint { problem: complaint.problem.clone(), origin });
    }
}
