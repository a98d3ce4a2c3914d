//! Explanations: every cause has its page, and codes point to causes.

use render::explain;
use render::screen::Options;

const OPTIONS: Options = Options { width: 80, color: false, verbose: false };

#[test]
fn every_cause_is_explained_in_both_forms() {
    for cause in reason::CAUSES {
        let mut text = Vec::new();
        explain::cause(&mut text, cause, OPTIONS).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut page = Vec::new();
        explain::cause_markdown(&mut page, cause).unwrap();
        let page = String::from_utf8(page).unwrap();
        for part in [cause.id, "Remedy ("] {
            assert!(text.contains(part), "{part} in\n{text}");
            assert!(page.contains(part), "{part} in\n{page}");
        }
        for symptom in cause.explains {
            assert!(text.contains(symptom.name()) && page.contains(symptom.name()));
        }
    }
}

fn points_to(word: &str) -> Vec<&'static str> {
    let entries = nvabi::lookup(word);
    assert!(!entries.is_empty(), "{word}");
    entries.iter().flat_map(explain::related).map(|related| related.cause.id).collect()
}

#[test]
fn codes_point_to_the_causes_that_take_them_for_evidence() {
    assert!(points_to("803").contains(&"module.version-skew"));
    assert!(points_to("cuda 3").contains(&"uvm.hmm"));
    assert!(points_to("cuda 34").contains(&"library.stub"));
    assert!(points_to("nvml 18").contains(&"module.version-skew"));
    assert!(points_to("cuda 0").is_empty());
}

#[test]
fn an_entry_names_its_source() {
    let mut out = Vec::new();
    explain::entries(&mut out, &nvabi::lookup("xid 119"), OPTIONS).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("Xid 119") && text.contains("source"), "{text}");
}
