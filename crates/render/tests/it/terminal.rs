//! The terminal form at every width, and what must never reach a terminal.

use facts::Facts;
use reason::diagnose;
use render::Report;
use render::screen::Options;

fn text(facts: &Facts, options: Options) -> String {
    let diagnosis = diagnose(facts);
    let report = Report { diagnosis: &diagnosis, facts, input: "report.txt" };
    let mut out = Vec::new();
    render::terminal::write(&mut out, &report, options).unwrap();
    String::from_utf8(out).unwrap()
}

fn plain(width: usize) -> Options {
    Options { width, color: false, verbose: false }
}

#[test]
fn the_head_line_names_machine_container_and_gpus() {
    let text = text(&crate::support::hanging(), plain(200));
    let head = text.lines().next().unwrap();
    for part in [
        "gpudx ",
        "pve (Proxmox VE 8.4.1, kernel 6.8.12-9-pve)",
        "in LXC 129, privileged",
        "8 × RTX PRO 6000 Blackwell Server Edition",
    ] {
        assert!(head.contains(part), "{part} in {head}");
    }
}

#[test]
fn the_cause_comes_with_evidence_and_remedy_on_one_screen() {
    let text = text(&crate::support::hanging(), plain(100));
    for part in ["uvm.hmm, likely]", "  for", "  against  –", "Remedy (", "uvm_disable_hmm=1"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(text.lines().count() <= 50, "{text}");
}

#[test]
fn healthy_is_said_in_one_sentence() {
    let text = text(&crate::support::cured(), plain(100));
    assert!(text.contains("Healthy: "), "{text}");
    assert!(!text.contains("Remedy"), "{text}");
}

#[test]
fn no_line_but_a_command_is_wider_than_the_terminal() {
    for width in 40..=200 {
        for verbose in [false, true] {
            let text = text(&crate::support::hanging(), Options { width, color: false, verbose });
            for line in text.lines() {
                let command = line.trim_start().starts_with("host: ");
                assert!(command || line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn any_width_will_do() {
    for width in [0, 1, 2, 5, 19, 20, 21, 39, 1000, usize::MAX] {
        for facts in crate::support::all() {
            for verbose in [false, true] {
                let text = text(&facts, Options { width, color: true, verbose });
                assert!(text.contains("gpudx"), "{width}");
            }
        }
    }
}

#[test]
fn color_adds_nothing_but_color() {
    let colored =
        text(&crate::support::hanging(), Options { width: 100, color: true, verbose: true });
    let bare =
        text(&crate::support::hanging(), Options { width: 100, color: false, verbose: true });
    assert!(colored.contains('\u{1b}'));
    let mut stripped = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, bare);
}

#[test]
fn nothing_from_outside_controls_the_terminal() {
    for verbose in [false, true] {
        let text = text(&crate::support::hostile(), Options { width: 80, color: false, verbose });
        let bad = |ch: char| (ch.is_control() && ch != '\n') || ch == '\u{202e}';
        assert!(!text.chars().any(bad), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("fake: line")));
    }
}

#[test]
fn verbose_lists_observations_probes_and_lines_not_understood() {
    let text =
        text(&crate::support::hanging(), Options { width: 160, color: false, verbose: true });
    for part in [
        "uvm.uvm_disable_hmm",
        "no  (report.txt:31)",
        "node.euid",
        "refused (EACCES)",
        "cuinit#1",
        "unkillable",
        "never returned from cuInit",
        "nvidia: something new",
        "not looked at: ",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}
