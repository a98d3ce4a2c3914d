//! The corpus: every case folder through the whole path, bytes to diagnosis, one named test each.

#![expect(clippy::format_push_string, reason = "a summary for a failed case")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use reason::{Diagnosis, Verdict};
use synth::expectations::{Expected, cases, name};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = cases().into_iter().map(trial).collect();
    trials.push(Trial::test("every-cause-has-a-firing-case-and-a-near-miss", coverage));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(case: PathBuf) -> Trial {
    Trial::test(name(&case), move || check(&case))
}

fn diagnosis(case: &Path) -> Result<Diagnosis, Failed> {
    let raw = probe::source::collect_case(case).map_err(|error| Failed::from(error.to_string()))?;
    Ok(reason::diagnose(&facts::extract(&raw)))
}

fn verdict_rank(name: &str) -> Option<Verdict> {
    [Verdict::Possible, Verdict::Likely, Verdict::Confirmed].into_iter().find(|v| v.name() == name)
}

fn check(case: &Path) -> Result<(), Failed> {
    let expected = Expected::of(case)?;
    let diagnosis = diagnosis(case)?;
    let named: Vec<&str> = diagnosis.causes.iter().map(|finding| finding.cause.id).collect();
    let mut faults = Vec::new();
    if expected.title.is_empty() || expected.origin.is_empty() {
        faults.push("case.toml needs a title and an origin".to_owned());
    }
    if diagnosis.state.name() != expected.state {
        faults.push(format!("state is {}, not {}", diagnosis.state.name(), expected.state));
    }
    top(&expected, &diagnosis, &mut faults);
    for id in &expected.also {
        if !named.contains(&id.as_str()) {
            faults.push(format!("{id} is not among the causes"));
        }
    }
    for id in &expected.must_not_name {
        if named.contains(&id.as_str()) {
            faults.push(format!("{id} is named and must not be"));
        }
    }
    let ruled_out: Vec<&str> = diagnosis.ruled_out.iter().map(|out| out.cause.id).collect();
    missing("ruled out", &expected.ruled_out, &ruled_out, &mut faults);
    let unknown: Vec<&str> = diagnosis.unknown.iter().map(|cause| cause.cause.id).collect();
    missing("unknown", &expected.unknown, &unknown, &mut faults);
    let symptoms: Vec<&str> = diagnosis.symptoms.iter().map(|symptom| symptom.id.name()).collect();
    missing("symptom", &expected.symptoms, &symptoms, &mut faults);
    for words in &expected.notes {
        if !diagnosis.notes.iter().any(|note| note.text.contains(words.as_str())) {
            faults.push(format!("no note says {words:?}"));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    faults.push(summary(&diagnosis));
    Err(faults.join("\n").into())
}

fn missing(what: &str, wanted: &[String], found: &[&str], faults: &mut Vec<String>) {
    for id in wanted {
        if !found.contains(&id.as_str()) {
            faults.push(format!("{what}: {id} is not shown"));
        }
    }
}

fn top(expected: &Expected, diagnosis: &Diagnosis, faults: &mut Vec<String>) {
    let first = diagnosis.causes.first();
    match (expected.top.is_empty(), first) {
        (true, None) => {}
        (true, Some(finding)) => {
            // A near miss may leave suspicions; it may not leave a working hypothesis.
            if finding.verdict >= Verdict::Likely || expected.state == "healthy" {
                faults.push(format!("{} is named and nothing should be", finding.cause.id));
            }
        }
        (false, None) => faults.push("no cause is named".to_owned()),
        (false, Some(finding)) => {
            if !expected.top.iter().any(|id| id == finding.cause.id) {
                faults.push(format!(
                    "{} is first, not {}",
                    finding.cause.id,
                    expected.top.join(" or ")
                ));
            }
            let least = expected.at_least.as_deref().and_then(verdict_rank);
            let most = expected.at_most.as_deref().and_then(verdict_rank);
            if least.is_some_and(|least| finding.verdict < least) {
                faults.push(format!("{} is only {}", finding.cause.id, finding.verdict.name()));
            }
            if most.is_some_and(|most| finding.verdict > most) {
                faults.push(format!("{} is even {}", finding.cause.id, finding.verdict.name()));
            }
        }
    }
}

fn summary(diagnosis: &Diagnosis) -> String {
    let mut out = format!("-- state {}\n", diagnosis.state.name());
    for symptom in &diagnosis.symptoms {
        out += &format!("   symptom {}: {}\n", symptom.id.name(), symptom.summary);
    }
    for finding in &diagnosis.causes {
        let score = finding.weighing.score();
        out += &format!("   {} {} {score:.2}\n", finding.verdict.name(), finding.cause.id);
        for piece in &finding.weighing.support {
            out += &format!(
                "     + {} ({}) [{}]\n",
                piece.statement,
                piece.strength.name(),
                piece.origin
            );
        }
        for piece in &finding.weighing.against {
            out += &format!(
                "     - {} ({}) [{}]\n",
                piece.statement,
                piece.strength.name(),
                piece.origin
            );
        }
    }
    for out_of_it in &diagnosis.ruled_out {
        let why: Vec<&str> =
            out_of_it.evidence.iter().map(|piece| piece.statement.as_str()).collect();
        out += &format!("   ruled out {}: {}\n", out_of_it.cause.id, why.join("; "));
    }
    for cause in &diagnosis.unknown {
        out += &format!("   unknown {}\n", cause.cause.id);
    }
    out
}

/// Every cause of the catalogue has a case in which it comes first and one in its folder that
/// must not name it.
fn coverage() -> Result<(), Failed> {
    let mut faults = Vec::new();
    for cause in reason::CAUSES {
        let own: Vec<Expected> = cases()
            .iter()
            .filter(|case| name(case).split('/').next() == Some(cause.id))
            .filter_map(|case| Expected::of(case).ok())
            .collect();
        if !own.iter().any(|case| case.top.iter().any(|id| id == cause.id)) {
            faults.push(format!("{}: no case in which it comes first", cause.id));
        }
        let near = |case: &Expected| case.must_not_name.iter().any(|id| id == cause.id);
        if !own
            .iter()
            .any(|case| near(case) && (!case.near_miss_of.is_empty() || !case.composed.is_empty()))
        {
            faults.push(format!("{}: no near miss", cause.id));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}
