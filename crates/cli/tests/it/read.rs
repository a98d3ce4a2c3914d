//! `gpudx read`: every kind of input, every form of output.

use std::fs;

use crate::support::{read, run};
use serde_json::Value;

const HANGING: &str =
    include_str!("../../../../cases/uvm.hmm/flagship-2-host-hang/text/report.txt");
const CURED: &str = include_str!("../../../../cases/healthy/flagship-3-cured/text/report.txt");
const SCHEMA: &str = include_str!("../../../../docs/schema/report-1.json");

#[test]
fn the_exit_status_is_the_state() {
    let sick = read(HANGING, &[]);
    assert_eq!((sick.status, sick.err.as_str()), (1, ""));
    assert!(sick.out.contains("[uvm.hmm, likely]"), "{}", sick.out);
    let well = read(CURED, &[]);
    assert_eq!((well.status, well.err.as_str()), (0, ""));
    assert!(well.out.contains("Healthy"), "{}", well.out);
}

#[test]
fn json_fits_the_committed_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for text in [HANGING, CURED] {
        let run = read(text, &["--format", "json"]);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        crate::support::schema::check(&schema, &report).unwrap();
        assert_eq!(report["schema"], "gpudx/report/1");
    }
}

#[test]
fn markdown_begins_with_the_verdict() {
    let run = read(HANGING, &["--format", "md"]);
    assert!(run.out.starts_with("## Fault: "), "{}", run.out);
}

#[test]
fn verbose_names_the_line_of_each_observation() {
    let run = read(HANGING, &["-v"]);
    assert!(run.out.contains("Observations"), "{}", run.out);
    let line = run.out.lines().find(|line| line.contains("uvm.uvm_disable_hmm")).unwrap();
    assert!(line.contains("no"), "{line}");
}

#[test]
fn a_layer_filters_what_is_shown_and_not_what_is_true() {
    let run = read(HANGING, &["--layer", "firmware", "--format", "json"]);
    assert_eq!(run.status, 1);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["state"], "fault");
    assert_eq!(report["causes"].as_array().unwrap().len(), 0);
    let ruled_out = report["ruled_out"].as_array().unwrap();
    assert!(!ruled_out.is_empty());
    assert!(ruled_out.iter().all(|cause| cause["id"].as_str().unwrap().starts_with("firmware.")));
}

#[test]
fn input_without_a_gpu_is_one_line() {
    for text in ["", "hello\n", "\0\u{1}\u{fffd}\n"] {
        read(text, &[]).one_line(2, "nothing about a GPU in this input");
    }
    run(&["read", "/no/such/file"]).one_line(2, "/no/such/file");
    run(&["read", env!("CARGO_MANIFEST_DIR")]).one_line(2, "no case folder");
}

#[test]
fn several_files_are_one_input() {
    let folder = tempfile::tempdir().unwrap();
    let (head, tail) = HANGING.split_at(HANGING.find("root@pve:~# timeout 10").unwrap());
    let paths = ["1.txt", "2.txt"].map(|name| folder.path().join(name));
    fs::write(&paths[0], head).unwrap();
    fs::write(&paths[1], tail).unwrap();
    let run = run(&["read", paths[0].to_str().unwrap(), paths[1].to_str().unwrap()]);
    assert_eq!(run.status, 1, "{run:?}");
    for part in ["1.txt and 1 more", "[uvm.hmm, likely]", "firmware.gsp-lacks-chip"] {
        assert!(run.out.contains(part), "{part} in\n{}", run.out);
    }
}
