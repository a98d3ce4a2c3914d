//! JSON: the committed schema is the derived one, and reports fit it.

use facts::Facts;
use reason::diagnose;
use render::Report;
use serde_json::Value;

/// `docs/schema/report-1.json` as committed.
const COMMITTED: &str = include_str!("../../../../docs/schema/report-1.json");

fn report(facts: &Facts) -> Value {
    let diagnosis = diagnose(facts);
    let report = Report { diagnosis: &diagnosis, facts, input: "report.txt" };
    let mut out = Vec::new();
    render::json::write(&mut out, &report).unwrap();
    let written: Value = serde_json::from_slice(&out).unwrap();
    let line = render::json::to_json(&report).unwrap();
    assert!(!line.contains('\n'));
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), written);
    written
}

#[test]
fn the_committed_schema_is_the_derived_one() {
    let derived = render::json::json_schema().unwrap();
    assert_eq!(derived, COMMITTED, "write docs/schema/report-1.json anew, and mind its number");
}

#[test]
fn reports_fit_the_schema() {
    let schema: Value = serde_json::from_str(COMMITTED).unwrap();
    for facts in crate::support::all() {
        crate::support::schema::check(&schema, &report(&facts)).unwrap();
    }
}

#[test]
fn the_checker_sees_what_does_not_fit() {
    let schema: Value = serde_json::from_str(COMMITTED).unwrap();
    let good = report(&crate::support::hanging());
    for (path, value) in [
        ("/state", Value::from("sick")),
        ("/causes/0/verdict", Value::from(3)),
        ("/causes/0/for/0/origin", Value::from("here")),
        ("/layers", Value::Null),
        ("/probes/0/trial", Value::from(-1)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap() = value;
        assert!(crate::support::schema::check(&schema, &bad).is_err(), "{path}");
    }
    let mut bad = good;
    bad.as_object_mut().unwrap().remove("symptoms");
    assert!(crate::support::schema::check(&schema, &bad).is_err());
}

#[test]
fn the_fields_of_the_design_are_there() {
    let report = report(&crate::support::hanging());
    assert_eq!(report["schema"], "gpudx/report/1");
    assert_eq!(report["state"], "fault");
    let symptoms = report["symptoms"].as_array().unwrap();
    let hang = symptoms.iter().find(|symptom| symptom["id"] == "cuda.init-hangs").unwrap();
    assert!(hang["explained_by"].as_array().unwrap().contains(&Value::from("uvm.hmm")));
    let cause = &report["causes"][0];
    assert_eq!(cause["id"], "uvm.hmm");
    assert_eq!(cause["verdict"], "likely");
    let evidence = &cause["for"][0];
    assert!(evidence["statement"].is_string() && evidence["strength"].is_string());
    assert!(evidence["origin"]["item"].is_string());
    assert_eq!(cause["remedy"]["impact"], "reloads-module");
    assert_eq!(cause["remedy"]["steps"][0]["where"], "host");
    let probe = &report["probes"][0];
    assert_eq!(probe["outcome"], "unkillable");
    assert_eq!(probe["stuck"]["state"], "D");
    assert_eq!(report["machine"]["gpus"][0]["count"], 8);
}
