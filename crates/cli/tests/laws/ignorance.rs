//! What nobody saw is no evidence: where everything that is absent becomes unknown, no cause is
//! confirmed and none ruled out that was not before.

use facts::Facts;
use facts::raw::{RawSet, RawState};
use reason::{CAUSES, Evidence, Strength};

use crate::corpus::{cases, none_of};

#[test]
fn what_is_not_known_to_be_absent_decides_nothing() {
    let mut faults = Vec::new();
    for case in cases() {
        let (before, after) = (facts::extract(&case.raw), facts::extract(&in_part(&case.raw)));
        faults.extend(decided(&before, &after).map(|fault| format!("{}: {fault}", case.name)));
    }
    none_of(&faults);
}

/// Every item a part of what there was, so that what is missing from it proves nothing, and
/// nothing looked for in vain.
fn in_part(raw: &RawSet) -> RawSet {
    let seen = raw.items().filter(|item| item.state != RawState::Absent);
    seen.cloned()
        .map(|mut item| {
            item.partial = true;
            item
        })
        .collect()
}

/// Causes for or against which something decisive speaks only when less is known.
fn decided<'a>(before: &'a Facts, after: &'a Facts) -> impl Iterator<Item = String> + 'a {
    CAUSES.iter().flat_map(|cause| {
        let (known, unknown) = ((cause.weigh)(before), (cause.weigh)(after));
        let for_it =
            new(&known.support, &unknown.support).map(|s| format!("for {}: {s}", cause.id));
        let against = new(&known.against, &unknown.against);
        for_it.into_iter().chain(against.map(|s| format!("against {}: {s}", cause.id)))
    })
}

/// A decisive piece where there was none.
fn new(before: &[Evidence], after: &[Evidence]) -> Option<String> {
    let decisive = |piece: &&Evidence| piece.strength == Strength::Decisive;
    let had = before.iter().any(|piece| decisive(&piece));
    let piece = after.iter().find(decisive).filter(|_| !had)?;
    Some(format!("{} [{}]", piece.statement, piece.origin))
}
