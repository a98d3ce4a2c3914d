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

/// Traces cuInit of a driver with these settings of the stand-in. The recorded sequences were
/// made with pageable memory that the GPU cannot use.
fn trace(
    driver: &RealDriver,
    settings: &str,
    options: &[&str],
) -> Result<Vec<Value>, libtest_mimic::Failed> {
    let trace = Trace::new()?;
    let program = synth::artifacts::cuinit_bare()?;
    let preload = format!("LD_PRELOAD={}", synth::artifacts::fakerm()?.display());
    let settings = format!("GPUDX_FAKERM=version={},hmm=0,pass=1{settings}", driver.version);
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

/// A call as the stand-in itself records it.
fn as_the_stand_in_tells(record: &Value) -> String {
    let name = record["call"].as_str().unwrap_or("");
    let node = record["node"].as_str().unwrap_or("");
    let object = record["object"].as_u64().unwrap_or(u64::MAX);
    match name.split(' ').next().unwrap_or("") {
        "open" => format!("open {node}"),
        "RM_CONTROL" => format!("RM_CONTROL 0x{object:08x}"),
        "RM_ALLOC" => format!("RM_ALLOC class 0x{object:04x}"),
        // It has no name for this one.
        "NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO" => format!("ioctl {node} 0x5e"),
        _ => format!("ioctl {node} {name}"),
    }
}

/// A call as the recorded sequences write it.
fn as_recorded(record: &Value) -> String {
    let told = as_the_stand_in_tells(record);
    let short = told.replace("ioctl /dev/", "ioctl ");
    match record["call"].as_str() {
        Some("NV_ESC_ALLOC_OS_EVENT") => "ioctl NV_ESC_ALLOC_OS_EVENT".to_owned(),
        Some("NV_ESC_RM_VID_HEAP_CONTROL") => "VID_HEAP fn=2".to_owned(),
        Some(name) if name.starts_with("UVM_") => {
            format!("ioctl nvidia-uvm 0x{:x}", record["request"].as_u64().unwrap_or(0))
        }
        _ => short,
    }
}

/// The recorded call without its remark in parentheses.
fn plain(step: &InitStep) -> &'static str {
    step.call.split(" (").next().unwrap_or(step.call)
}

/// What libcuda asks depends on the GPU in these two places: the recording's was an older chip
/// than the one that the stand-in pretends.
const OF_THE_CHIP: [&str; 3] = ["0x0080028b", "0x2080122a", "0x20801227"];

fn of_the_chip(call: &str) -> bool {
    OF_THE_CHIP.iter().any(|command| call.ends_with(command))
}

fn sequences() -> Outcome {
    each_branch(|driver| {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("calls");
        let records = trace(driver, &format!(",trace={}", file.display()), &[])?;
        let calls: Vec<&Value> = of(&records, "enter").collect();
        let told = std::fs::read_to_string(&file)?;
        // It also records what the library does to files.
        let of_the_driver =
            |call: &&str| ["open ", "ioctl ", "RM_"].iter().any(|verb| call.starts_with(verb));
        let told = told.lines().filter_map(|line| line.splitn(3, ' ').nth(2)).filter(of_the_driver);
        let traced = calls.iter().map(|call| as_the_stand_in_tells(call));
        let (told, traced): (Vec<&str>, Vec<String>) = (told.collect(), traced.collect());
        must(told == traced, &format!("what the stand-in was asked: {told:#?}"), &records)?;
        let steps: Vec<InitStep> = init_sequence::steps("cuInit", &driver.version)
            .filter(|step| !of_the_chip(step.call))
            .collect();
        let calls: Vec<&&Value> =
            calls.iter().filter(|call| !of_the_chip(&as_recorded(call))).collect();
        must(!steps.is_empty() && calls.len() == steps.len(), "as many as recorded", &records)?;
        for (call, step) in calls.iter().zip(&steps) {
            let same = as_recorded(call) == plain(step) && has_name(call, step);
            must(same, &format!("{step:?}"), &[(**call).clone()])?;
        }
        Ok(())
    })
}

/// A control or a class has the name that the recording gives it.
fn has_name(call: &Value, step: &InitStep) -> bool {
    let named = call["call"].as_str().unwrap_or("").rsplit(' ').next().unwrap_or("");
    let expected = step.detail.split(' ').next().unwrap_or("");
    match step.call.split(' ').next() {
        Some("RM_CONTROL" | "RM_ALLOC") if expected != "(unnamed)" => named == expected,
        _ => true,
    }
}

fn refused_registration() -> Outcome {
    each_branch(|driver| {
        let records = trace(driver, ",uvm:UVM_REGISTER_GPU=0x51", &[])?;
        let call = of(&records, "return").find(|record| record["call"] == "UVM_REGISTER_GPU");
        let status = call.and_then(|call| call["status"].as_str());
        must(status == Some("NV_ERR_NO_MEMORY"), "its status", &records)
    })
}

/// The first call, UVM_INITIALIZE, an RM control and UVM_REGISTER_GPU, each held in its turn.
fn held() -> Outcome {
    each_branch(|driver| {
        let free = trace(driver, "", &[])?;
        let calls: Vec<&Value> = of(&free, "enter").collect();
        let at = |name: &str| calls.iter().find(|call| call["call"] == name);
        let late = calls.get(calls.len() / 2);
        let some = [calls.first(), at("UVM_INITIALIZE"), late, at("UVM_REGISTER_GPU")];
        for call in some.into_iter().flatten() {
            let number = call["n"].to_string();
            let records = trace(driver, "", &["--hold", &number, "--deadline", "2s"])?;
            let in_flight = &summary(&records)?["in_flight"];
            let one = in_flight.as_array().is_some_and(|calls| calls.len() == 1);
            let same = ["call", "node", "n"].iter().all(|key| in_flight[0][key] == call[key]);
            must(one && same, &format!("held at {call}"), &records)?;
        }
        Ok(())
    })
}
