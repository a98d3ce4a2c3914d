//! Calls that gpudx answers in the driver's stead: the real libcuda answers each as the table of
//! faults beneath it says.

use std::process::Stdio;

use libtest_mimic::{Failed, Trial};
use nvabi::fault_matrix;
use serde_json::Value;
use synth::driver_packages::RealDriver;

use crate::libraries::{command, each_branch};
use crate::support::{Outcome, Trace, must, of};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_failed_open_gives_the_code_of_the_table", opens),
        Trial::test("a_status_gives_the_code_of_the_table", statuses),
        Trial::test("several_calls_can_be_failed", several),
    ]
}

/// Runs with these failures; gives the records and what cuInit answered.
fn answered(driver: &RealDriver, failures: &[String]) -> Result<(Vec<Value>, Option<i64>), Failed> {
    let traced = Trace::new()?;
    let options: Vec<&str> = failures.iter().flat_map(|one| ["--fail", one.as_str()]).collect();
    let output = command(driver, &traced, "", &options)?.stdout(Stdio::piped()).output()?;
    let code = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
    Ok((traced.records(), code))
}

/// What the table says of a fault, for the driver's version.
fn expected(fault: &str, driver: &RealDriver) -> Result<i64, Failed> {
    let row = fault_matrix::cuinit().find(|row| row.fault == fault);
    let row = row.ok_or_else(|| format!("the table has no {fault}"))?;
    let answer = row.answers().find(|answer| answer.version == driver.version);
    answer.and_then(|answer| answer.code).ok_or_else(|| format!("no code for {fault}").into())
}

/// Most calls that are failed before a test gives up.
const MOST_FAILURES: usize = 40;

/// Fails every call of which this holds: each run shows the next one. Then cuInit must answer as
/// the row of the table says, whose fault was there each time, too.
fn check(
    driver: &RealDriver,
    fault: &str,
    answer: &str,
    is_it: &dyn Fn(&Value) -> bool,
) -> Outcome {
    let mut failures: Vec<String> = Vec::new();
    while failures.len() < MOST_FAILURES {
        let (records, code) = answered(driver, &failures)?;
        let count = of(&records, "return").filter(|record| record["injected"] == true).count();
        must(count == failures.len(), &format!("{failures:?} are told as gpudx's own"), &records)?;
        let fresh =
            |call: &&Value| is_it(call) && !failures.contains(&format!("{}={answer}", call["n"]));
        if let Some(call) = of(&records, "enter").find(fresh) {
            failures.push(format!("{}={answer}", call["n"]));
            continue;
        }
        let wanted = expected(fault, driver)?;
        must(!failures.is_empty(), "there is such a call", &records)?;
        let text = format!("{fault} by {failures:?}: {code:?}, not {wanted}");
        return if code == Some(wanted) { Ok(()) } else { Err(text.into()) };
    }
    Err(format!("{fault}: no end after {failures:?}").into())
}

fn opens() -> Outcome {
    each_branch(|driver| {
        for (path, errnos) in [
            ("/dev/nvidiactl", &["EPERM", "ENOENT", "EIO"][..]),
            ("/dev/nvidia-uvm", &["EPERM", "ENODEV", "EMFILE"]),
            ("/dev/nvidia0", &["EACCES", "ENXIO", "ENOMEM"]),
        ] {
            // All of them for one branch; the others are as slow and answer the same.
            let count = if driver.version.starts_with("550") { errnos.len() } else { 1 };
            for errno in errnos.iter().take(count) {
                check(driver, &format!("open {path} -> {errno}"), errno, &|call| {
                    call["call"] == "open" && call["node"] == path
                })?;
            }
        }
        Ok(())
    })
}

fn statuses() -> Outcome {
    each_branch(|driver| {
        let named = |name: &'static str| move |call: &Value| call["call"] == name;
        let registers = named("UVM_REGISTER_GPU");
        let initializes = named("UVM_INITIALIZE");
        let roots = named("RM_ALLOC NV01_ROOT");
        let calls = [
            ("UVM_REGISTER_GPU rmStatus", &registers as &dyn Fn(&Value) -> bool),
            ("UVM_INITIALIZE rmStatus", &initializes),
            ("RM_ALLOC root (class 0) status", &roots),
        ];
        for (fault, is_it) in calls {
            for status in ["NO_MEMORY", "INSUFFICIENT_PERMISSIONS"] {
                let answer = format!("NV_ERR_{status}");
                check(driver, &format!("{fault}={status}"), &answer, is_it)?;
            }
        }
        Ok(())
    })
}

/// What is failed twice is answered twice, and nothing else is.
fn several() -> Outcome {
    each_branch(|driver| {
        let failures = ["1=EPERM".to_owned(), "2=13".to_owned()];
        let (records, _) = answered(driver, &failures)?;
        let of_gpudx = of(&records, "return").filter(|record| record["injected"] == true);
        let errnos: Vec<&Value> = of_gpudx.map(|record| &record["errno"]).collect();
        let end = |call: &&Value| call["n"].as_u64().is_some_and(|n| n <= 2);
        let first = of(&records, "enter").filter(end).count();
        must(errnos.len() == first && errnos[0] == "EPERM", "each once", &records)
    })
}
