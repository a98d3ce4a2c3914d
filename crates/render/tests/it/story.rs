//! The walk through stages says what changed, from the diagnoses alone.

use reason::diagnose;
use render::screen::Options;
use render::story::{Stage, turn, write};

fn stage(facts: facts::Facts) -> Stage {
    Stage { title: "a stage".to_owned(), diagnosis: diagnose(&facts), facts }
}

#[test]
fn a_cure_is_told_by_what_changed() {
    let (sick, well) = (stage(crate::support::hanging()), stage(crate::support::cured()));
    let turn = turn(Some(&sick), &well);
    assert!(turn.appeared.is_empty());
    assert_eq!(turn.vanished, ["cuInit did not return in 1 of 1 trials"]);
    assert!(turn.dropped.contains(&"uvm.hmm"));
    let change = turn.changed.iter().find(|change| change.name == "uvm.uvm_disable_hmm").unwrap();
    assert_eq!((change.from.as_str(), change.to.as_str()), ("no", "yes"));
}

#[test]
fn the_first_stage_is_compared_with_knowing_nothing() {
    let sick = stage(crate::support::hanging());
    let turn = turn(None, &sick);
    assert_eq!(turn.in_play[0].id, "uvm.hmm");
    assert_eq!(turn.in_play[0].from, None);
    assert!(turn.refuted.iter().all(|refutation| refutation.was.is_none()));
    assert!(turn.changed.is_empty() && turn.vanished.is_empty() && turn.dropped.is_empty());
}

#[test]
fn a_stage_compared_with_itself_changes_nothing() {
    let (one, same) = (stage(crate::support::hanging()), stage(crate::support::hanging()));
    let turn = turn(Some(&one), &same);
    assert!(turn.appeared.is_empty() && turn.vanished.is_empty() && turn.refuted.is_empty());
    assert!(turn.changed.is_empty() && turn.dropped.is_empty());
    assert!(turn.in_play.iter().all(|shift| shift.from == Some(shift.to)));
    assert!(turn.in_play.iter().all(|shift| shift.new_evidence.is_empty()));
}

#[test]
fn the_walk_ends_with_what_remained_and_whether_it_was_borne_out() {
    let options = Options { width: 100, color: false, verbose: false };
    let told = |stages: &[Stage]| {
        let mut out = Vec::new();
        write(&mut out, stages, options).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = told(&[stage(crate::support::hanging()), stage(crate::support::cured())]);
    for part in ["What remained: HMM", "Stage 2 bears it out", "Remedy ("] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let unproven = told(&[stage(crate::support::hanging())]);
    assert!(!unproven.contains("bears it out"), "{unproven}");
    let nothing = told(&[stage(crate::support::cured())]);
    assert!(nothing.contains("no cause was named"), "{nothing}");
    assert!(told(&[]).contains("no cause was named"));
}
