//! Places within one item: its lines are cut once, so that many findings stay cheap to locate.

use crate::observed::Origin;
use crate::raw::RawItem;

/// Most lines that are kept for excerpts; a finding beyond them has its number and no excerpt.
const LINES_LIMIT: usize = 1 << 18;

/// An item and its lines.
pub(crate) struct Places<'a> {
    item: &'a RawItem,
    lines: Vec<&'a str>,
}

impl<'a> Places<'a> {
    /// The places within `text`, which is the item's.
    pub(crate) fn new(item: &'a RawItem, text: &'a str) -> Places<'a> {
        Places { item, lines: text.lines().take(LINES_LIMIT).collect() }
    }

    /// The origin of a line, from 1; 0 for the whole item.
    pub(crate) fn at(&self, line: u32) -> Origin {
        let index = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
        let excerpt = index.and_then(|index| self.lines.get(index)).copied().unwrap_or("");
        self.item.origin_at(line, excerpt)
    }
}
