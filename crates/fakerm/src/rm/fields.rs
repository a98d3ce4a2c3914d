//! Lists of index and value, as several commands of RM take them.

use crate::memory::Memory;

/// No list of RM is longer.
pub(super) const MOST: usize = 1024;

/// Answers each entry of a list: two 32-bit numbers, an index that was asked for and its value.
pub(super) fn fill(list: Memory, offset: usize, count: usize, value_of: impl Fn(u32) -> u32) {
    for entry in 0..count.min(MOST) {
        let at = offset + entry * 8;
        list.set_u32(at + 4, value_of(list.u32(at)));
    }
}
