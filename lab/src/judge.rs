//! Whether what came out of a fault is right.

use serde_json::Value;

use crate::fault::Fault;
use crate::run::{End, Ran};

/// Verdicts in their order.
const VERDICTS: [&str; 3] = ["possible", "likely", "confirmed"];

/// What gpudx said, and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    /// The state of the whole.
    pub(crate) state: String,
    /// The causes in order, with their verdicts.
    pub(crate) causes: Vec<(String, String)>,
    /// What must hold and does not; none when everything is right.
    pub(crate) complaints: Vec<String>,
}

impl Judged {
    /// The first cause with its verdict, or the state where there is none.
    pub(crate) fn verdict(&self) -> String {
        match self.causes.first() {
            Some((id, verdict)) => format!("{id}, {verdict}"),
            None => self.state.clone(),
        }
    }

    /// Causes after the first.
    pub(crate) fn others(&self) -> Vec<&str> {
        self.causes.iter().skip(1).map(|(id, _)| id.as_str()).collect()
    }
}

/// Judges a run of `gpudx … --format json`.
pub(crate) fn judge(fault: &Fault, ran: &Ran) -> Judged {
    let mut judged = Judged::default();
    match &ran.end {
        End::Status(0..=2) => {}
        End::Hung => judged.complaints.push("gpudx was over its time".to_owned()),
        end => {
            let told = ran.stderr.lines().last().unwrap_or_default();
            judged.complaints.push(format!("gpudx ended with {end:?}: {told}"));
        }
    }
    if ran.stderr.contains("panicked") {
        judged.complaints.push("gpudx panicked".to_owned());
    }
    let Ok(report) = serde_json::from_str::<Value>(&ran.stdout) else {
        judged.complaints.push("there is no report".to_owned());
        return judged;
    };
    report["state"].as_str().unwrap_or_default().clone_into(&mut judged.state);
    judged.causes = causes(&report);
    let complaints = compare(fault, &judged, &report);
    judged.complaints.extend(complaints);
    judged
}

fn list<'report>(report: &'report Value, key: &str) -> impl Iterator<Item = &'report Value> {
    report[key].as_array().into_iter().flatten()
}

fn causes(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list(report, "causes").map(|cause| (text(&cause["id"]), text(&cause["verdict"]))).collect()
}

fn ids<'report>(report: &'report Value, key: &str) -> Vec<&'report str> {
    list(report, key).filter_map(|entry| entry["id"].as_str()).collect()
}

fn compare(fault: &Fault, judged: &Judged, report: &Value) -> Vec<String> {
    let expect = &fault.expect;
    let mut complaints = Vec::new();
    let states = fault.states();
    if !states.contains(&judged.state) {
        complaints.push(format!("state {}, not {}", judged.state, states.join(" or ")));
    }
    complaints.extend(first_cause(fault, judged));
    let named: Vec<&str> = judged.causes.iter().map(|(id, _)| id.as_str()).collect();
    for id in expect.also.iter().filter(|id| !named.contains(&id.as_str())) {
        complaints.push(format!("{id} is not named"));
    }
    for id in expect.must_not_name.iter().filter(|id| is_named(judged, id)) {
        complaints.push(format!("{id} is named"));
    }
    let ruled_out = ids(report, "ruled_out");
    for id in expect.ruled_out.iter().filter(|id| !ruled_out.contains(&id.as_str())) {
        complaints.push(format!("{id} is not ruled out"));
    }
    let symptoms = ids(report, "symptoms");
    for id in expect.symptoms.iter().filter(|id| !symptoms.contains(&id.as_str())) {
        complaints.push(format!("the symptom {id} is not seen"));
    }
    complaints
}

/// `*` stands for whatever is likely or confirmed.
fn is_named(judged: &Judged, id: &str) -> bool {
    let mut causes = judged.causes.iter();
    if id == "*" {
        return causes.any(|(_, verdict)| verdict != "possible");
    }
    causes.any(|(named, _)| named == id)
}

fn first_cause(fault: &Fault, judged: &Judged) -> Option<String> {
    let top = &fault.expect.top;
    let wanted = fault.expect.at_least.as_deref().unwrap_or("likely");
    match (judged.causes.first(), top.is_empty()) {
        (None, true) => None,
        (None, false) => Some(format!("no cause is named, not {}", top.join(" or "))),
        // What comes first where none must is a matter of `must_not_name` and of the state.
        (Some((id, verdict)), true) => {
            (fault.expect.state.is_empty()).then(|| format!("{id} is named, {verdict}"))
        }
        (Some((id, verdict)), false) if top.contains(id) => {
            let rank = |name: &str| VERDICTS.iter().position(|verdict| *verdict == name);
            let most = fault.expect.at_most.as_deref().unwrap_or("confirmed");
            if rank(verdict) > rank(most) {
                return Some(format!("{id} is {verdict}, more than {most}"));
            }
            (rank(verdict) < rank(wanted)).then(|| format!("{id} is only {verdict}"))
        }
        (Some((id, verdict)), false) => {
            Some(format!("{id} comes first ({verdict}), not {}", top.join(" or ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fault::Expect;

    fn ran(report: &str) -> Ran {
        Ran {
            end: End::Status(1),
            stdout: report.to_owned(),
            stderr: String::new(),
            time: Duration::ZERO,
            left: Vec::new(),
        }
    }

    fn fault(top: &[&str], must_not_name: &[&str]) -> Fault {
        let own = |list: &[&str]| list.iter().map(|id| (*id).to_owned()).collect();
        let expect =
            Expect { top: own(top), must_not_name: own(must_not_name), ..Expect::default() };
        Fault { expect, ..Fault::default() }
    }

    const REPORT: &str = r#"{"state": "fault", "causes": [{"id": "a.b", "verdict": "possible"}]}"#;

    #[test]
    fn a_weak_verdict_and_a_wrong_cause_are_complained_of() {
        assert_eq!(judge(&fault(&["a.b"], &[]), &ran(REPORT)).complaints, ["a.b is only possible"]);
        let other = judge(&fault(&["c.d"], &["a.b"]), &ran(REPORT)).complaints;
        assert_eq!(other, ["a.b comes first (possible), not c.d", "a.b is named"]);
        let healthy = judge(&fault(&[], &[]), &ran(REPORT)).complaints;
        assert_eq!(healthy, ["state fault, not healthy", "a.b is named, possible"]);
    }

    #[test]
    fn what_is_right_passes_and_what_is_no_report_does_not() {
        let text = REPORT.replace("possible", "likely");
        let judged = judge(&fault(&["c.d", "a.b"], &["e.f"]), &ran(&text));
        assert!(judged.complaints.is_empty(), "{:?}", judged.complaints);
        assert_eq!(judged.verdict(), "a.b, likely");
        let broken = judge(&fault(&[], &[]), &ran(""));
        assert_eq!(broken.complaints, ["there is no report"]);
    }
}
