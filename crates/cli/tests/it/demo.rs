//! `gpudx demo`: each stage says what changed, in the engine's own words.

use crate::support::run;

/// The text of one stage.
fn stage(text: &str, number: usize) -> &str {
    let start = text.find(&format!("Stage {number} of 3")).unwrap();
    let rest = &text[start..];
    let end = rest.find(&format!("Stage {} of 3", number + 1)).or(rest.find("What remained"));
    &rest[..end.unwrap()]
}

#[test]
fn the_walk_tells_what_was_believed_refuted_and_left() {
    let run = run(&["demo"]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let first = stage(&run.out, 1);
    for part in
        ["cuInit answers 3", "believed    uvm.hmm", "framework.driver-too-old", "still open"]
    {
        assert!(first.contains(part), "{part} in\n{first}");
    }
    let second = stage(&run.out, 2);
    for part in [
        "seen        cuInit did not return",
        "gone        cuInit answers 3",
        "firmware.gsp-lacks-chip (not judged until now)",
        "remains     uvm.hmm",
        "module.deadlock",
        "strace",
    ] {
        assert!(second.contains(part), "{part} in\n{second}");
    }
    let third = stage(&run.out, 3);
    for part in ["changed    uvm.uvm_disable_hmm: no → yes", "Healthy"] {
        assert!(third.contains(part), "{part} in\n{third}");
    }
    let end = &run.out[run.out.find("What remained").unwrap()..];
    for part in ["uvm.hmm", "Stage 3 bears it out", "uvm_disable_hmm=1", "will not help"] {
        assert!(end.contains(part), "{part} in\n{end}");
    }
}

#[test]
fn each_listed_case_can_be_shown_alone() {
    let list = run(&["demo", "--list"]);
    assert_eq!(list.out.lines().count(), 3, "{}", list.out);
    for line in list.out.lines() {
        let name = line.split_whitespace().next().unwrap();
        let shown = run(&["demo", name]);
        assert_eq!(shown.status, 0, "{name}");
        assert!(shown.out.contains(name) && shown.out.contains("590.48.01"), "{}", shown.out);
    }
}

#[test]
fn a_folder_of_a_case_can_be_shown() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/uvm.hmm/flagship-1-container");
    let shown = run(&["demo", folder]);
    assert_eq!(shown.status, 0, "{shown:?}");
    assert!(shown.out.contains("uvm.hmm"), "{}", shown.out);
}
