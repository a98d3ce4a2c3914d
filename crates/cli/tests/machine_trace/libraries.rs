//! The real libcuda of Debian's packages over a stand-in for the kernel side: every call that it
//! makes has its name, in the order of the recorded sequence.

use std::process::Command;

use libtest_mimic::Trial;
use nvabi::init_sequence::{self, InitStep};
use serde_json::Value;
use synth::driver_packages::{Branch, RealDriver, real_driver};

use crate::support::{Outcome, Running, Trace, must, of, skipped, summary};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("real_libcuda_makes_the_recorded_calls", sequences),
        Trial::test("a_refused_registration_has_its_status", refused_registration),
        Trial::test("mappings_are_told_with_length_and_offset", mappings),
        Trial::test("a_held_call_is_named", held),
    ]
}

/// Traces cuInit of a driver with these settings of the stand-in. The recorded sequences were
/// made with pageable memory that the GPU cannot use.
pub(crate) fn trace(
    driver: &RealDriver,
    settings: &str,
    options: &[&str],
) -> Result<Vec<Value>, libtest_mimic::Failed> {
    let trace = Trace::new()?;
    command(driver, &trace, settings, options)?.status()?;
    Ok(trace.records())
}

/// The command that [`trace`] runs.
pub(crate) fn command(
    driver: &RealDriver,
    trace: &Trace,
    settings: &str,
    options: &[&str],
) -> Result<Command, libtest_mimic::Failed> {
    let program = synth::artifacts::cuinit_bare()?;
    let preload = format!("LD_PRELOAD={}", synth::artifacts::fakerm()?.display());
    let settings = format!("GPUDX_FAKERM=version={},hmm=0,pass=1{settings}", driver.version);
    let program = program.display().to_string();
    let mut arguments = options.to_vec();
    arguments.extend(["--", "env", &preload, &settings, &program]);
    let mut command = trace.command(&arguments);
    command.env("LD_LIBRARY_PATH", &driver.folder);
    Ok(command)
}

/// The opens and requests: what the recorded sequences hold of all calls.
fn asks(records: &[Value]) -> Vec<&Value> {
    let is_ask = |call: &&Value| call["request"].is_u64() || call["call"] == "open";
    of(records, "enter").filter(is_ask).collect()
}

pub(crate) fn each_branch(judge: fn(&RealDriver) -> Outcome) -> Outcome {
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
        let calls = asks(&records);
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

/// libcuda maps the nodes; what it asks for and what it got are told, and that it closes some.
fn mappings() -> Outcome {
    each_branch(|driver| {
        let records = trace(driver, "", &[])?;
        let named = |name: &'static str| {
            of(&records, "return").filter(move |record| record["call"] == name)
        };
        must(named("mmap").next().is_some(), "mappings", &records)?;
        for map in named("mmap") {
            let whole = map["length"].as_u64().is_some_and(|length| length % 4096 == 0);
            let on_node = map["node"].as_str().is_some_and(|node| node.starts_with("/dev/nvidia"));
            must(whole && on_node && map["fd"].is_u64() && map["offset"].is_u64(), "it", &records)?;
        }
        must(named("close").next().is_some(), "closes", &records)?;
        let library = of(&records, "library").next().and_then(|record| record["path"].as_str());
        let has_version = library.is_some_and(|path| path.ends_with(&driver.version));
        must(has_version, "the library with its version", &records)
    })
}

/// Each call in its turn for one branch; the first, the last and some between for the others.
fn held() -> Outcome {
    let mut whole = true;
    for branch in Branch::ALL {
        let driver = match real_driver(branch) {
            Ok(driver) => driver,
            Err(why) => {
                skipped(why)?;
                continue;
            }
        };
        let free = trace(&driver, "", &[])?;
        let calls: Vec<&Value> = of(&free, "enter").collect();
        let at = |name: &str| calls.iter().position(|call| call["call"] == name);
        let some = [Some(0), at("UVM_INITIALIZE"), at("mmap"), at("UVM_REGISTER_GPU")];
        let last = calls.len().checked_sub(1);
        let places: Vec<usize> = if std::mem::take(&mut whole) {
            (0..calls.len()).collect()
        } else {
            some.into_iter().flatten().chain(last).collect()
        };
        must(places.len() > 4, "calls to hold", &free)?;
        in_parallel(&places, |place| held_at(&driver, calls[*place]))?;
    }
    Ok(())
}

/// A held call costs little but waiting, so that several are waited for at a time.
fn in_parallel(places: &[usize], judge: impl Fn(&usize) -> Outcome + Sync) -> Outcome {
    const LANES: usize = 8;
    std::thread::scope(|scope| {
        let lane = |lane| places.iter().skip(lane).step_by(LANES).try_for_each(&judge);
        let lanes: Vec<_> = (0..LANES).map(|at| scope.spawn(move || lane(at))).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or(Err("panicked".into())))
    })
}

/// The call in flight is the one that is held, and it is the last one that was entered.
fn held_at(driver: &RealDriver, call: &Value) -> Outcome {
    let number = call["n"].to_string();
    let traced = Trace::new()?;
    let arguments = ["--block", &number];
    let mut running = Running(command(driver, &traced, "", &arguments)?.spawn()?);
    traced.wait_until("the held call", |records| {
        of(records, "note")
            .any(|note| note["text"].as_str().is_some_and(|text| text.contains("held")))
    })?;
    // What ends the trace is the request to end it, as an interrupt at a terminal would.
    Command::new("kill").args(["-INT", &running.0.id().to_string()]).status()?;
    running.0.wait()?;
    let records = traced.records();
    let in_flight = &summary(&records)?["in_flight"];
    let one = in_flight.as_array().is_some_and(|calls| calls.len() == 1);
    let same = |key: &&str| in_flight[0][*key] == call[*key];
    must(one && ["call", "node", "n"].iter().all(same), &format!("held at {call}"), &records)
}
