//! Markdown: what comes from outside stays text.

use facts::Facts;
use reason::diagnose;
use render::Report;

fn markdown(facts: &Facts) -> String {
    let diagnosis = diagnose(facts);
    let report = Report { diagnosis: &diagnosis, facts, input: "report.txt" };
    let mut out = Vec::new();
    render::markdown::write(&mut out, &report).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_ticket_has_the_verdict_first_and_commands_in_fences() {
    let text = markdown(&crate::support::hanging());
    assert!(text.starts_with("## Fault: HMM support"), "{text}");
    for part in ["(`uvm.hmm`, likely)", "For:\n", "```sh\n", "(strong, `probe:cuinit#1`)"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn nothing_from_outside_is_markup() {
    let text = markdown(&crate::support::hostile());
    assert!(!text.contains("<script"), "{text}");
    assert!(!text.contains("\nfake: line"), "{text}");
    let control = |ch: char| ch.is_control() && ch != '\n';
    assert!(!text.chars().any(control));
    let table: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(!table.is_empty());
    for row in table {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 3, "{row}");
    }
}
