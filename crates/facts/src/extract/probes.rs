//! Probe records become probe runs, and what they say enters the layers.

use crate::model::node::NodeOpen;
use crate::model::probe_run::{ProbeCall, ProbeRun};
use crate::model::process::Refusal;
use crate::model::{Complaint, Facts};
use crate::observed::{Errno, Observed, Seen};
use crate::raw::{ItemName, RawItem};
use crate::version::DriverVersion;
use crate::wire::{End, Outcome, Record};

mod cuda;
mod nvml;

/// Reads one probe's records.
pub(super) fn apply(item: &RawItem, facts: &mut Facts) {
    let Some(run) = read(item, facts) else { return };
    facts.mentions_gpu = true;
    not_started(&run, facts);
    match run.probe.as_str() {
        "cuinit" => cuda::apply(&run, facts),
        "nvml" => nvml::apply(&run, facts),
        "nodes" => nodes(&run, facts),
        "module" => module(&run, facts),
        "sandbox" => sandbox(&run, facts),
        "libraries" => libraries(&run, facts),
        "process" => process(&run, facts),
        "frameworks" => frameworks(&run, facts),
        _ => {}
    }
    facts.probes.push(run);
}

/// A child that a limit kept from being started is a refusal like any other program's.
fn not_started(run: &ProbeRun, facts: &mut Facts) {
    if run.outcome != Outcome::NotStarted {
        return;
    }
    let refusal = match run.code.map(Errno) {
        Some(Errno::EMFILE) => Refusal::OpenFile,
        Some(Errno::EAGAIN) => Refusal::Thread,
        _ => return,
    };
    facts.process.refusals.push(Seen::new(refusal, run.origin.clone()));
}

fn read(item: &RawItem, facts: &mut Facts) -> Option<ProbeRun> {
    let ItemName::Probe { name, trial } = &item.name else { return None };
    let mut run = ProbeRun {
        probe: name.clone(),
        trial: *trial,
        outcome: Outcome::Malformed,
        code: None,
        seconds: 0.0,
        pid: None,
        calls: Vec::new(),
        in_flight: None,
        stuck: None,
        notes: Vec::new(),
        end_notes: Vec::new(),
        traced: false,
        origin: item.origin(),
    };
    let text = item.text()?;
    for (number, line) in crate::parse::numbered(&text) {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Record>(line) {
            Ok(record) => enter(record, number, line, item, &mut run),
            Err(_) => facts.complaints.push(Complaint {
                problem: "not a record of a probe".to_owned(),
                origin: item.origin_at(number, line),
            }),
        }
    }
    Some(run)
}

fn enter(record: Record, number: u32, line: &str, item: &RawItem, run: &mut ProbeRun) {
    match record {
        Record::Enter { call, on } => run.in_flight = Some((call, on)),
        Record::Call { call, on, code, ms, value } => {
            run.in_flight = None;
            let origin = item.origin_at(number, line);
            run.calls.push(ProbeCall { call, on, code, ms, value, origin });
        }
        Record::Item { .. } => {}
        Record::Note { key, value } => run.notes.push((key, value)),
        Record::End(end) => finish(end, run),
    }
}

fn finish(end: End, run: &mut ProbeRun) {
    run.outcome = end.outcome;
    run.code = end.code;
    run.seconds = end.seconds;
    run.pid = end.pid;
    run.stuck = end.stuck;
    run.end_notes = end.notes;
    run.traced = end.traced;
    if end.outcome == Outcome::Returned {
        run.in_flight = None;
    }
}

fn errno(code: i64) -> Errno {
    Errno(i32::try_from(code).unwrap_or(i32::MAX))
}

/// Opens of device nodes: a node that was entered and did not return is one that hangs.
fn nodes(run: &ProbeRun, facts: &mut Facts) {
    for call in run.calls.iter().filter(|call| call.call == "open") {
        let Some(path) = call.on.clone() else { continue };
        let open = match (call.code, &call.value) {
            (0, _) => NodeOpen::Opened,
            (_, Some(reason)) if call.code < 0 => NodeOpen::NotTried(reason.clone()),
            (code, _) => NodeOpen::Failed(errno(code)),
        };
        facts.node.opens.insert(path, (open, call.origin.clone()));
    }
    if let (true, Some((call, Some(path)))) = (run.hung(), &run.in_flight)
        && call == "open"
    {
        facts.node.opens.insert(path.clone(), (NodeOpen::Hung, run.origin.clone()));
    }
    if let Some(euid) = run.note("euid").and_then(|text| text.parse().ok()) {
        facts.node.euid = Observed::seen(euid, run.origin.clone());
    }
}

/// The module's own version and its list of GPUs, asked without any library.
fn module(run: &ProbeRun, facts: &mut Facts) {
    if let Some(call) = run.call("version").filter(|call| call.code == 0)
        && let Some(version) = call.value.as_deref().and_then(DriverVersion::parse)
    {
        facts.module.version_query = Observed::seen(version, call.origin.clone());
    }
    if let Some(call) = run.call("card-info").filter(|call| call.code == 0) {
        let list = call.value.as_deref().unwrap_or("");
        let gpus = list.split(',').filter_map(crate::model::pci::PciAddress::parse).collect();
        facts.module.card_info = Observed::seen(gpus, call.origin.clone());
    }
}

/// Micro-probes: the name of the call, and the errno when it failed.
fn sandbox(run: &ProbeRun, facts: &mut Facts) {
    for call in &run.calls {
        let result = (call.code != 0).then(|| errno(call.code));
        facts.sandbox.micro.insert(call.call.clone(), (result, call.origin.clone()));
    }
}

/// Which file the loader would take for each driver library, by its own rules of search.
fn libraries(run: &ProbeRun, facts: &mut Facts) {
    for call in run.calls.iter().filter(|call| call.call == "would-map") {
        let Some(soname) = call.on.as_deref() else { continue };
        let found = match (call.code, &call.value) {
            (0, Some(path)) => {
                let file = super::libraries::by_path(path, soname, &call.origin, facts);
                Observed::seen(file, call.origin.clone())
            }
            (code, _) if errno(code) == Errno::ENOENT => Observed::Absent(call.origin.clone()),
            (code, _) => Observed::Denied(errno(code), call.origin.clone()),
        };
        // What was mapped for certain, if it is known, says more than what would be.
        let slot = match soname {
            "libcuda.so.1" => &mut facts.library.cuda,
            _ => &mut facts.library.nvml,
        };
        slot.or_better(found);
    }
}

fn process(run: &ProbeRun, facts: &mut Facts) {
    let number = |key: &str| run.note(key).and_then(|text| text.parse::<u64>().ok());
    if let Some(bytes) = number("shm-bytes") {
        facts.process.shm_bytes = Observed::seen(bytes, run.origin.clone());
    }
    if let Some(bytes) = number("shm-free-bytes") {
        facts.process.shm_free_bytes = Observed::seen(bytes, run.origin.clone());
    }
    if let Some(euid) = number("euid").and_then(|euid| u32::try_from(euid).ok()) {
        facts.node.euid.or_better(Observed::seen(euid, run.origin.clone()));
    }
}

/// The compiler that is first on PATH is that of one of the toolkits.
fn frameworks(run: &ProbeRun, facts: &mut Facts) {
    let Some(path) = run.note("nvcc-on-path") else { return };
    let folder = path.strip_suffix("/bin/nvcc").unwrap_or(path);
    let toolkit = facts.framework.toolkits.iter().find(|toolkit| toolkit.value.0 == folder);
    if let Some(toolkit) = toolkit {
        let origin = toolkit.origin.clone();
        facts.framework.nvcc.or_better(Observed::seen(toolkit.value.1, origin));
    }
}
