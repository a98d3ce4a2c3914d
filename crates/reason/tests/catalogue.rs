//! The catalogue as a whole: every definition is fit to be printed, and none guesses.

use std::path::Path;

use facts::{Facts, Layer};
use reason::{CAUSES, Cause, Verdict};

/// The ids of the whole catalogue, those included whose causes are not written yet.
const KNOWN_IDS: &str = include_str!("catalogue_ids.txt");

fn known(id: &str) -> bool {
    KNOWN_IDS.lines().any(|line| line == id)
}

#[test]
fn ids_are_sorted_unique_and_known() {
    let ids: Vec<&str> = CAUSES.iter().map(|cause| cause.id).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "sorted, each once: {ids:?}");
    for id in ids {
        assert!(known(id), "{id} is not in catalogue_ids.txt");
    }
    assert!(KNOWN_IDS.lines().is_sorted());
}

#[test]
fn an_id_is_its_layer_and_its_fault() {
    for cause in CAUSES {
        let (layer, fault) = cause.id.split_once('.').expect("layer.fault");
        assert_eq!(Layer::from_name(layer), Some(cause.layer), "{}", cause.id);
        let plain = |ch: char| ch.is_ascii_lowercase() || ch.is_ascii_digit() || ch == '-';
        assert!(fault.chars().all(plain) && !fault.is_empty(), "{}", cause.id);
    }
}

#[test]
fn every_cause_has_its_file_and_every_file_its_cause() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/causes");
    let mut files: Vec<String> = Vec::new();
    for layer in Layer::ALL {
        for entry in std::fs::read_dir(folder.join(layer.name())).into_iter().flatten() {
            let path = entry.expect("a readable folder").path();
            let stem = path.file_stem().expect("a name").to_string_lossy().replace('_', "-");
            // What several causes of a layer share stands beside them and defines none.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.contains("static CAUSE: Cause") {
                files.push(format!("{}.{stem}", layer.name()));
            }
        }
    }
    files.sort();
    let mut ids: Vec<&str> = CAUSES.iter().map(|cause| cause.id).collect();
    ids.sort_unstable();
    assert_eq!(files, ids);
}

#[test]
fn texts_are_fit_to_print() {
    for cause in CAUSES {
        let Cause { id, claim, explanation, .. } = cause;
        assert!(!claim.is_empty() && !claim.ends_with('.'), "{id}: a claim is no sentence");
        assert!(explanation.ends_with('.'), "{id}");
        let sentences = explanation.matches(". ").count() + 1;
        assert!((2..=7).contains(&sentences), "{id}: {sentences} sentences");
        for text in
            [*claim, *explanation].into_iter().chain(cause.look_alikes.iter().map(|l| l.tell))
        {
            assert!(!text.contains("  ") && !text.contains('\n'), "{id}: stray space in {text:?}");
        }
        assert!(!cause.explains.is_empty(), "{id} explains nothing");
        assert!(!cause.references.is_empty(), "{id} has no source");
        for reference in cause.references {
            let source = reference.starts_with("https://") || reference.contains('/');
            assert!(source, "{id}: {reference} is neither an address nor a source file");
        }
    }
}

#[test]
fn look_alikes_and_general_causes_exist() {
    for cause in CAUSES {
        assert!(!cause.look_alikes.is_empty(), "{} looks like nothing else", cause.id);
        for alike in cause.look_alikes {
            assert!(known(alike.id), "{}: unknown look-alike {}", cause.id, alike.id);
            assert_ne!(alike.id, cause.id);
            assert!(
                !alike.tell.is_empty() && !alike.tell.ends_with('.'),
                "{}: {}",
                cause.id,
                alike.tell
            );
        }
        for general in cause.specializes {
            assert!(known(general), "{}: unknown general cause {general}", cause.id);
            assert_ne!(*general, cause.id);
        }
    }
}

#[test]
fn nothing_known_is_no_evidence() {
    for live in [false, true] {
        let mut facts = Facts::default();
        facts.live = live;
        for cause in CAUSES {
            let weighing = (cause.weigh)(&facts);
            assert!(weighing.support.is_empty(), "{}: {:?}", cause.id, weighing.support);
            assert!(weighing.against.is_empty(), "{}: {:?}", cause.id, weighing.against);
            let verdict = weighing.verdict();
            let silent = matches!(verdict, Verdict::Unknown | Verdict::NotApplicable);
            assert!(silent, "{} is {verdict:?} on nothing", cause.id);
        }
    }
}

#[test]
fn every_remedy_can_be_followed() {
    for cause in CAUSES {
        let remedy = (cause.remedy)(&Facts::default());
        let id = cause.id;
        assert!(!remedy.steps.is_empty(), "{id}: no step");
        assert!(remedy.steps.iter().all(|step| !step.run.trim().is_empty()), "{id}: an empty step");
        for text in [&remedy.stops, &remedy.undo, &remedy.verify] {
            assert!(!text.is_empty(), "{id}: what it stops, how to undo it and how to verify it");
        }
        assert!(!remedy.will_not_help.is_empty(), "{id}: nothing tempting");
    }
}
