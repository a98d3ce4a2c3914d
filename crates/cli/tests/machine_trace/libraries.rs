//! The real libcuda of Debian's packages over a stand-in for the kernel side: every call that it
//! makes has its name, in the order of the recorded sequence.

use libtest_mimic::Trial;
use nvabi::init_sequence::{self, InitStep};
use serde_json::Value;
use synth::driver_packages::{Branch, RealDriver, real_driver};

use crate::support::{Outcome, Trace, must, of, skipped, summary};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("real_libcuda_makes_the_recorded_calls", sequences),
        Trial::test("a_refused_registration_has_its_status", refused_registration),
        Trial::test("a_held_call_is_named", held),
    ]
}

/// Traces cuInit of a driver with these settings of the stand-in.
fn trace(
    driver: &RealDriver,
    settings: &str,
    options: &[&str],
) -> Result<Vec<Value>, libtest_mimic::Failed> {
    let trace = Trace::new()?;
    let program = synth::artifacts::cuinit_bare()?;
    let preload = format!("LD_PRELOAD={}", synth::artifacts::fakerm()?.display());
    let settings = format!("GPUDX_FAKERM=version={},pass=1{settings}", driver.version);
    let program = program.display().to_string();
    let mut arguments = options.to_vec();
    arguments.extend(["--", "env", &preload, &settings, &program]);
    trace.command(&arguments).env("LD_LIBRARY_PATH", &driver.folder).status()?;
    Ok(trace.records())
}

fn each_branch(judge: fn(&RealDriver) -> Outcome) -> Outcome {
    for branch in Branch::ALL {
        match real_driver(branch) {
            Ok(driver) => judge(&driver)?,
            Err(why) => skipped(why)?,
        }
    }
    Ok(())
}

/// A call as the recorded sequences write it.
fn as_recorded(record: &Value) -> String {
    let name = record["call"].as_str().unwrap_or("");
    let node = record["node"].as_str().unwrap_or("");
    let short = node.strip_prefix("/dev/").unwrap_or(node);
    let number = |key: &str| record[key].as_u64().unwrap_or(u64::MAX);
    match name.split(' ').next().unwrap_or("") {
        "open" => format!("open {node}"),
        "RM_CONTROL" => format!("RM_CONTROL 0x{:08x}", number("object")),
        "RM_ALLOC" => format!("RM_ALLOC class 0x{:04x}", number("object")),
        _ if short == "nvidia-uvm" => format!("ioctl {short} 0x{:x}", number("request")),
        "NV_ESC_ALLOC_OS_EVENT" => format!("ioctl {name}"),
        _ => format!("ioctl {short} {name}"),
    }
}

/// The recorded call without its remark in parentheses.
fn plain(step: &InitStep) -> &'static str {
    step.call.split(" (").next().unwrap_or(step.call)
}

fn sequences() -> Outcome {
    each_branch(|driver| {
        let records = trace(driver, "", &[])?;
        let calls: Vec<&Value> = of(&records, "enter").collect();
        let steps: Vec<InitStep> = init_sequence::steps("cuInit", &driver.version).collect();
        must(!steps.is_empty(), "a recorded sequence", &[])?;
        for (call, step) in calls.iter().zip(&steps) {
            let same = as_recorded(call) == plain(step);
            let named = call["call"].as_str().unwrap_or("").rsplit(' ').next().unwrap_or("");
            let first = step.detail.split(' ').next().unwrap_or("");
            let same_name = match plain(step).split(' ').next() {
                Some("RM_CONTROL" | "RM_ALLOC") if first != "(unnamed)" => named == first,
                _ => true,
            };
            must(same && same_name, &format!("step {} {step:?}", step.step), &[(*call).clone()])?;
        }
        must(calls.len() == steps.len(), "as many calls as were recorded", &records)
    })
}

fn refused_registration() -> Outcome {
    each_branch(|driver| {
        let records = trace(driver, ",uvm:UVM_REGISTER_GPU=0x51", &[])?;
        let call = of(&records, "return").find(|record| record["call"] == "UVM_REGISTER_GPU");
        let status = call.and_then(|call| call["status"].as_str());
        must(status == Some("NV_ERR_NO_MEMORY"), "its status", &records)
    })
}

fn held() -> Outcome {
    each_branch(|driver| {
        let steps: Vec<InitStep> = init_sequence::steps("cuInit", &driver.version).collect();
        let uvm = steps.iter().filter(|step| step.call.ends_with(" 0x25"));
        let some = steps.iter().step_by(steps.len().div_ceil(3).max(1)).chain(uvm);
        for step in some {
            let number = step.step.to_string();
            let records = trace(driver, "", &["--hold", &number, "--deadline", "3s"])?;
            let in_flight = &summary(&records)?["in_flight"];
            let one = in_flight.as_array().is_some_and(|calls| calls.len() == 1);
            let right = as_recorded(&in_flight[0]) == plain(step);
            must(one && right, &format!("held at {step:?}"), &records)?;
        }
        Ok(())
    })
}
