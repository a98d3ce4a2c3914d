//! What the fabric manager needs of the machine.

use super::reading::{Learn, Reading};
use crate::model::Facts;
use crate::observed::{Observed, Seen};

/// /sys/class/infiniband: the devices through which switches of the fifth NVLink are managed. An
/// empty folder is as good as none.
pub(super) fn infiniband(reading: &Reading, facts: &mut Facts) {
    let devices = match reading.listing() {
        Observed::Seen(Seen { value, origin }) if value.is_empty() => Observed::Absent(origin),
        listing => listing,
    };
    facts.fabric.infiniband.learn(devices);
}
