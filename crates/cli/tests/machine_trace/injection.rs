//! Calls that gpudx answers in the driver's stead: the real libcuda answers each as the table of
//! faults beneath it says.

use std::process::Stdio;

use libtest_mimic::{Failed, Trial};
use nvabi::fault_matrix;
use serde_json::Value;
use synth::driver_packages::RealDriver;

use crate::libraries::{command, each_branch, trace};
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

/// The number of the first call of which this holds.
fn number(free: &[Value], is_it: impl Fn(&Value) -> bool) -> Result<String, Failed> {
    let call = of(free, "enter").find(|call| is_it(call)).ok_or("there is no such call")?;
    Ok(call["n"].to_string())
}

/// One call failed as a row of the table says.
fn check(driver: &RealDriver, fault: &str, failure: String) -> Outcome {
    let (records, code) = answered(driver, std::slice::from_ref(&failure))?;
    let wanted = expected(fault, driver)?;
    let of_gpudx: Vec<&Value> =
        of(&records, "return").filter(|record| record["injected"] == true).collect();
    must(of_gpudx.len() == 1, &format!("{failure} is told as gpudx's own"), &records)?;
    must(code == Some(wanted), &format!("{fault} by {failure}: {code:?}, not {wanted}"), &records)
}

fn opens() -> Outcome {
    each_branch(|driver| {
        let free = trace(driver, "", &[])?;
        for (path, errnos) in [
            ("/dev/nvidiactl", &["EPERM", "ENOENT", "EIO"][..]),
            ("/dev/nvidia-uvm", &["EPERM", "ENODEV", "EMFILE"]),
            ("/dev/nvidia0", &["EACCES", "ENXIO", "ENOMEM"]),
        ] {
            let call = number(&free, |call| call["call"] == "open" && call["node"] == path)?;
            for errno in errnos {
                check(driver, &format!("open {path} -> {errno}"), format!("{call}={errno}"))?;
            }
        }
        Ok(())
    })
}

fn statuses() -> Outcome {
    each_branch(|driver| {
        let free = trace(driver, "", &[])?;
        let root = |call: &Value| {
            call["object"] == 0 && call["call"].as_str().is_some_and(|name| name.starts_with("RM_A"))
        };
        let calls = [
            ("UVM_REGISTER_GPU rmStatus", number(&free, |call| call["call"] == "UVM_REGISTER_GPU")?),
            ("UVM_INITIALIZE rmStatus", number(&free, |call| call["call"] == "UVM_INITIALIZE")?),
            ("RM_ALLOC root (class 0) status", number(&free, root)?),
        ];
        for (fault, call) in calls {
            for status in ["NO_MEMORY", "INSUFFICIENT_PERMISSIONS"] {
                let failure = format!("{call}=NV_ERR_{status}");
                check(driver, &format!("{fault}={status}"), failure)?;
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
