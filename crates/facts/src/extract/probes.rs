//! Probe records become probe runs, and what they say enters the layers.

use crate::model::node::NodeOpen;
use crate::model::probe_run::{ProbeCall, ProbeRun};
use crate::model::process::Refusal;
use crate::model::{Complaint, Facts};
use crate::observed::{Errno, Observed, Seen};
use crate::raw::{ItemName, RawItem};
use crate::version::DriverVersion;
use crate::wire::{EXPERIMENT, End, Outcome, Record};

mod cuda;
pub(super) mod experiment;
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
        "stuck" => stuck(&run, facts),
        EXPERIMENT => experiment::apply(&run, facts),
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
        Record::End(end) => finish(*end, run),
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

/// Tasks that do not get on: what the probe tells beside files, and what it could not see.
fn stuck(run: &ProbeRun, facts: &mut Facts) {
    facts.task_parts.probe(run);
    for (_, text) in run.notes.iter().filter(|(key, _)| key == "unseen") {
        facts.notes.push(crate::model::Note { text: text.clone(), origin: run.origin.clone() });
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
    if let Some(call) = run.call("start-threads").filter(|call| errno(call.code) == Errno::EAGAIN) {
        facts.process.refusals.push(Seen::new(Refusal::Thread, call.origin.clone()));
    }
    if let Some(call) = run.call("mps-pipe") {
        let pipe = match (errno(call.code), &call.on) {
            (Errno(0), Some(folder)) => Observed::seen(folder.clone(), call.origin.clone()),
            (Errno::ENOENT, _) => Observed::Absent(call.origin.clone()),
            (other, _) => Observed::Denied(other, call.origin.clone()),
        };
        facts.share.mps_pipe.or_better(pipe);
    }
    pids_limits(run, facts);
    if let Some(euid) = number("euid").and_then(|euid| u32::try_from(euid).ok()) {
        facts.node.euid.or_better(Observed::seen(euid, run.origin.clone()));
    }
}

/// The lowest limit of the process's cgroup and those above it.
fn pids_limits(run: &ProbeRun, facts: &mut Facts) {
    let told = run.notes.iter().filter(|(key, _)| key == "pids-max");
    let limits = told.filter_map(|(_, text)| match text.split_once(' ')?.0 {
        "max" => Some(None),
        number => Some(Some(number.parse::<u64>().ok()?)),
    });
    let Some(lowest) = limits.min_by_key(|limit| limit.unwrap_or(u64::MAX)) else { return };
    let known = facts.process.pids_max.value().copied();
    if known.is_none_or(|known| lowest.unwrap_or(u64::MAX) < known.unwrap_or(u64::MAX)) {
        facts.process.pids_max = Observed::seen(lowest, run.origin.clone());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::experiment::{Change, Effect};
    use crate::model::process::Lever;
    use crate::raw::RawSet;

    /// The facts of these records, each a probe with its trial and lines.
    fn facts(records: &[(&str, u32, &str)]) -> Facts {
        let items = records.iter().map(|(name, trial, lines)| {
            let name = ItemName::Probe { name: (*name).to_owned(), trial: *trial };
            RawItem::new(name, lines.as_bytes())
        });
        crate::extract(&items.collect::<RawSet>())
    }

    fn run(change: &str, code: i64) -> String {
        format!(
            "{{\"record\":\"note\",\"key\":\"change\",\"value\":\"{change}\"}}\n{}",
            trial(code)
        )
    }

    fn trial(code: i64) -> String {
        format!(
            "{{\"record\":\"call\",\"call\":\"load\",\"code\":0}}\n\
             {{\"record\":\"call\",\"call\":\"cuInit\",\"code\":{code}}}\n\
             {{\"record\":\"end\",\"outcome\":\"returned\",\"code\":0,\"seconds\":0.1}}\n"
        )
    }

    #[test]
    fn an_experiment_counts_only_where_the_runs_without_it_agree() {
        let (fails, works) = (trial(999), trial(0));
        let (cured, hooked) = (run("without-hooks", 0), run("without-mps", 999));
        let made = ("experiment", 1, cured.as_str());
        let in_vain = ("experiment", 2, hooked.as_str());
        let settled = facts(&[("cuinit", 1, &fails), ("cuinit", 2, &fails), made, in_vain]);
        let effects: Vec<Effect> = settled.experiments.iter().map(|made| made.effect).collect();
        assert_eq!(effects, [Effect::Works, Effect::Same]);
        let tried = |facts: &Facts, wanted: Lever| {
            facts.process.tried(|lever| lever == wanted).map(|(attempt, _)| attempt.helped)
        };
        assert_eq!(tried(&settled, Lever::Interposer), Some(true));
        assert_eq!(tried(&settled, Lever::Mps), Some(false));
        // One run alone may be an accident.
        let single = facts(&[("cuinit", 1, &fails), made]);
        assert_eq!(single.experiments[0].effect, Effect::Works);
        assert_eq!(tried(&single, Lever::Interposer), None);
        // The control, which changes nothing, works as well: then nothing was shown.
        let control = run("nothing", 0);
        let healed = facts(&[
            ("cuinit", 1, &fails),
            ("cuinit", 2, &fails),
            made,
            ("experiment", 2, &control),
        ]);
        assert_eq!(healed.experiments[0].effect, Effect::Unclear);
        assert_eq!(tried(&healed, Lever::Interposer), None);
        assert_eq!(healed.experiments[1].change, Change::Nothing);
        // Where it works anyway a change that fails is told as such.
        let worse = run("user 1000", 999);
        let fine = facts(&[("cuinit", 1, &works), ("experiment", 1, &worse)]);
        assert_eq!(fine.experiments[0].effect, Effect::Fails);
    }

    #[test]
    fn limits_of_all_cgroups_above_count_and_a_refused_thread_is_told() {
        let lines = concat!(
            r#"{"record":"note","key":"pids-max","value":"max /sys/fs/cgroup/a/b/pids.max"}"#,
            "\n",
            r#"{"record":"note","key":"pids-max","value":"33 /sys/fs/cgroup/a/pids.max"}"#,
            "\n",
            r#"{"record":"call","call":"mps-pipe","on":"/run/mps","code":0}"#,
            "\n",
            r#"{"record":"call","call":"start-threads","code":11}"#,
        );
        let facts = facts(&[("process", 1, lines)]);
        assert_eq!(facts.process.pids_max.value(), Some(&Some(33)));
        assert!(facts.process.refused(Refusal::Thread).is_some());
        assert_eq!(facts.share.mps_pipe.value().map(String::as_str), Some("/run/mps"));
    }

    #[test]
    fn the_condition_of_a_gpu_is_read() {
        let call = |call: &str, value: &str| {
            format!(
                "{{\"record\":\"call\",\"call\":\"{call}\",\"on\":\"0\",\"code\":0,\"value\":\"{value}\"}}\n"
            )
        };
        let lines = [
            call("nvmlDeviceGetPerformanceState", "0"),
            call("nvmlDeviceGetCurrPcieLinkGeneration", "3"),
            call("nvmlDeviceGetMaxPcieLinkGeneration", "5"),
            call("nvmlDeviceGetCurrPcieLinkWidth", "8"),
            call("nvmlDeviceGetMaxPcieLinkWidth", "16"),
            call("nvmlDeviceGetTotalEccErrors", "1 / 7"),
            call(
                "nvmlDeviceGetRemappedRows",
                "2 uncorrectable, 0 correctable, pending Yes, failed No",
            ),
            call("nvmlDeviceGetFieldValues", "retired 0, retired-pending 0, pcie-replays 9"),
            call("nvmlDeviceGetGridLicensableFeatures_v4", "Unlicensed"),
            call("nvmlDeviceGetMigDeviceHandleByIndex", "MIG-a MIG-b"),
        ]
        .concat();
        let facts = facts(&[("nvml", 1, &lines)]);
        let gpu = &facts.nvml.gpus[0].value;
        let health = &gpu.health;
        assert_eq!((health.link.generation, health.link.generation_max), (Some(3), Some(5)));
        assert_eq!((health.link.width, health.link.width_max), (Some(8), Some(16)));
        assert_eq!(health.link.replays, Some(9));
        assert_eq!((health.remap_pending, health.remap_failed), (Some(true), Some(false)));
        assert_eq!(health.remapped_uncorrectable, Some(2));
        assert_eq!(health.uncorrectable_volatile, Some(1));
        assert_eq!(health.uncorrectable_aggregate, Some(7));
        assert_eq!(health.performance_state, Some(0));
        assert_eq!(gpu.license.as_deref(), Some("Unlicensed"));
        assert_eq!(facts.share.mig_devices.value().map(Vec::len), Some(2));
    }
}
