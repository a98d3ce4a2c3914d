//! DKMS's make.log of a build that went wrong, and of those that did not.

use super::reading::Reading;
use crate::model::Facts;

/// The log of the last build of a version: what stopped the compiler stands in it.
pub(super) fn make_log(reading: &Reading, facts: &mut Facts) {
    if let Some(text) = reading.item.text() {
        crate::extract::loose::messages_only(reading.item, &text, facts);
    }
}
