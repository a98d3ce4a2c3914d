//! `gpudx explain` and `gpudx firmware`.

use crate::support::run;

#[test]
fn a_code_is_explained_with_the_causes_it_points_to() {
    let run = run(&["explain", "803"]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    for part in ["CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "module.version-skew", "source"] {
        assert!(run.out.contains(part), "{part} in\n{}", run.out);
    }
}

#[test]
fn words_may_be_several() {
    let run = run(&["explain", "xid", "119"]);
    assert_eq!(run.status, 0);
    assert!(run.out.contains("Xid 119"), "{}", run.out);
}

#[test]
fn symptoms_layers_and_pasted_lines_point_to_causes() {
    let line = "NVRM: API mismatch: the client has the version 535.54.03, but\n\
        NVRM: this kernel module has the version 535.104.05.";
    for (words, cause) in [
        ("cuda.init-hangs", "uvm.hmm"),
        ("sandbox", "sandbox.cgroup-denies"),
        ("NVSWITCH_SXID", "fabric.nvlink-down"),
        (line, "module.version-skew"),
        ("0x62:0x65:1784", "module.rm-init-failed"),
    ] {
        let run = run(&["explain", words]);
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{words}");
        assert!(run.out.contains(cause), "{cause} in\n{}", run.out);
    }
}

#[test]
fn a_cause_is_explained_in_both_forms() {
    let text = run(&["explain", "uvm.hmm"]);
    assert_eq!(text.status, 0);
    assert!(text.out.contains("uvm_disable_hmm=1") && text.out.contains("References"));
    let page = run(&["explain", "uvm.hmm", "--format", "md"]);
    assert!(page.out.starts_with("# `uvm.hmm`"), "{}", page.out);
    run(&["explain", "803", "--format", "md"]).one_line(64, "Markdown");
}

#[test]
fn an_unknown_word_is_one_line_with_what_is_near() {
    run(&["explain", "gremlins"]).one_line(2, "gremlins");
    run(&["explain", "hmm"]).one_line(2, "uvm.hmm");
    run(&["explain", "\u{1b}[31mred"]).one_line(2, "red");
}

#[test]
fn what_is_no_firmware_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gsp.bin");
    std::fs::write(&path, "no firmware").unwrap();
    run(&["firmware", path.to_str().unwrap()]).one_line(1, "no GSP firmware");
    std::fs::write(&path, b"\x1f\x8b\x08\x00damaged").unwrap();
    run(&["firmware", path.to_str().unwrap()]).one_line(2, "gsp.bin");
    run(&["firmware", "/no/such/file"]).one_line(2, "cannot read");
    run(&["firmware", "/dev"]).one_line(2, "not a file");
    run(&["firmware", "/dev/zero"]).one_line(2, "not a file");
}
