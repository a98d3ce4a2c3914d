//! Files of single tasks below /proc/PID.

use super::reading::Reading;
use crate::model::Facts;

/// Any of them; what they tell is joined when all are known.
pub(super) fn file(reading: &Reading, facts: &mut Facts) {
    facts.task_parts.file(reading.path, reading.item);
}
