//! The laws of weighing, which hold whatever numbers stand in `weigh.rs`.

#![expect(clippy::expect_used, reason = "a helper of tests that fails is a failed test")]

use facts::Origin;
use proptest::prelude::*;
use reason::{Need, Strength, Verdict, Weighing};

/// One piece before it is entered: for or against, how strong, and which statement.
#[derive(Debug, Clone, Copy)]
struct Piece {
    supports: bool,
    strength: Strength,
    statement: u8,
}

fn strengths() -> impl Strategy<Value = Strength> {
    prop_oneof![
        Just(Strength::Weak),
        Just(Strength::Moderate),
        Just(Strength::Strong),
        Just(Strength::Decisive),
    ]
}

fn pieces(limit: usize) -> impl Strategy<Value = Vec<Piece>> {
    let piece = (any::<bool>(), strengths(), 0_u8..40)
        .prop_map(|(supports, strength, statement)| Piece { supports, strength, statement });
    prop::collection::vec(piece, 0..limit)
}

/// Pieces whose statements all differ.
fn distinct(pieces: Vec<Piece>) -> Vec<Piece> {
    let renumber = |(index, piece): (usize, Piece)| Piece {
        statement: u8::try_from(index).expect("few pieces"),
        ..piece
    };
    pieces.into_iter().enumerate().map(renumber).collect()
}

fn weigh(pieces: &[Piece]) -> Weighing {
    let mut weighing = Weighing::new();
    for piece in pieces {
        enter(&mut weighing, *piece);
    }
    weighing
}

fn enter(weighing: &mut Weighing, piece: Piece) {
    let origin = Origin::item(format!("item {}", piece.statement));
    let statement = format!("statement {}", piece.statement);
    if piece.supports {
        weighing.supports(piece.strength, statement, &origin);
    } else {
        weighing.objects(piece.strength, statement, &origin);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_support_never_lowers(given in pieces(12), strength in strengths()) {
        let before = weigh(&given);
        let mut after = before.clone();
        enter(&mut after, Piece { supports: true, strength, statement: 200 });
        prop_assert!(after.verdict() >= before.verdict(), "{:?} after {:?}", after, before);
        prop_assert!(after.score() >= before.score());
    }

    #[test]
    fn more_objection_never_raises(given in pieces(12), strength in strengths()) {
        let before = weigh(&given);
        let mut after = before.clone();
        enter(&mut after, Piece { supports: false, strength, statement: 200 });
        prop_assert!(after.verdict() <= before.verdict(), "{:?} after {:?}", after, before);
        prop_assert!(after.score() <= before.score());
    }

    #[test]
    fn a_stronger_piece_never_says_less(given in pieces(12), strength in strengths()) {
        let mut weaker = weigh(&given);
        let mut stronger = weaker.clone();
        enter(&mut weaker, Piece { supports: true, strength: Strength::Weak, statement: 200 });
        enter(&mut stronger, Piece { supports: true, strength, statement: 200 });
        prop_assert!(stronger.verdict() >= weaker.verdict());
        prop_assert!(stronger.score() >= weaker.score());
    }

    #[test]
    fn only_a_decisive_piece_confirms_or_rules_out(given in pieces(30)) {
        let weighing = weigh(&given);
        let decisive = |supports: bool| {
            let list = if supports { &weighing.support } else { &weighing.against };
            list.iter().any(|piece| piece.strength == Strength::Decisive)
        };
        match weighing.verdict() {
            Verdict::Confirmed => prop_assert!(decisive(true) && !decisive(false)),
            Verdict::RuledOut => prop_assert!(decisive(false) && !decisive(true)),
            _ => {}
        }
    }

    #[test]
    fn a_contradiction_is_at_most_likely(given in pieces(12)) {
        let mut weighing = weigh(&given);
        enter(&mut weighing, Piece { supports: true, strength: Strength::Decisive, statement: 200 });
        enter(&mut weighing, Piece { supports: false, strength: Strength::Decisive, statement: 201 });
        prop_assert!(weighing.contradicts_itself());
        prop_assert_eq!(weighing.verdict(), Verdict::Likely);
    }

    #[test]
    fn order_does_not_matter(given in pieces(12).prop_map(distinct), seed in any::<u64>()) {
        let mut shuffled = given.clone();
        let mut state = seed;
        for index in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let other = usize::try_from(state >> 33).expect("31 bits") % (index + 1);
            shuffled.swap(index, other);
        }
        let (one, two) = (weigh(&given), weigh(&shuffled));
        prop_assert_eq!(one.verdict(), two.verdict());
        prop_assert!((one.score() - two.score()).abs() < 1e-9);
    }

    #[test]
    fn the_same_statement_counts_once(given in pieces(12)) {
        let once = weigh(&given);
        let mut twice = once.clone();
        for piece in &given {
            enter(&mut twice, *piece);
        }
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_need_neither_supports_nor_objects(given in pieces(12)) {
        let before = weigh(&given);
        let mut after = before.clone();
        after.needs(Need::KernelLog).needs(Need::KernelLog);
        prop_assert!((after.score() - before.score()).abs() < 1e-12);
        prop_assert_eq!(after.needs.len(), 1);
        let nothing = [Verdict::Unknown, Verdict::NotApplicable];
        let same = after.verdict() == before.verdict();
        prop_assert!(same || (nothing.contains(&after.verdict()) && nothing.contains(&before.verdict())));
    }

    #[test]
    fn a_score_is_a_share(given in pieces(40)) {
        let score = weigh(&given).score();
        prop_assert!((0.0..=1.0).contains(&score));
    }
}

#[test]
fn what_the_strengths_are_worth_in_verdicts() {
    use Strength::{Decisive, Moderate, Strong, Weak};

    let verdict = |strengths: &[Strength]| {
        let piece = |(index, strength): (usize, &Strength)| Piece {
            supports: true,
            strength: *strength,
            statement: u8::try_from(index).expect("few pieces"),
        };
        let pieces: Vec<Piece> = strengths.iter().enumerate().map(piece).collect();
        weigh(&pieces).verdict()
    };
    assert_eq!(verdict(&[]), Verdict::NotApplicable);
    assert_eq!(verdict(&[Weak]), Verdict::NotApplicable);
    assert_eq!(verdict(&[Weak, Weak]), Verdict::Possible);
    assert_eq!(verdict(&[Moderate]), Verdict::Possible);
    assert_eq!(verdict(&[Strong]), Verdict::Possible);
    assert_eq!(verdict(&[Moderate, Moderate]), Verdict::Possible);
    assert_eq!(verdict(&[Moderate, Moderate, Weak]), Verdict::Likely);
    assert_eq!(verdict(&[Strong, Weak]), Verdict::Likely);
    assert_eq!(verdict(&[Strong; 8]), Verdict::Likely);
    assert_eq!(verdict(&[Decisive]), Verdict::Confirmed);
}
