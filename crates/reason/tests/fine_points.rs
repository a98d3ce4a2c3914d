//! Distinctions that the corpus does not reach one by one.

#![expect(clippy::unwrap_used, reason = "a helper of tests that fails is a failed test")]

use facts::model::ProbeRun;
use facts::model::cuda::{Stage, Trial, TrialResult};
use facts::model::fabric::ServiceState;
use facts::model::firmware::GspFile;
use facts::model::host::ContainerKind;
use facts::model::module::{Flavour, NvrmVersion};
use facts::model::nvml::{NvmlGpu, NvmlResult};
use facts::version::DriverVersion;
use facts::wire::{Outcome, Stuck};
use facts::{Facts, Observed, Origin, Seen};
use reason::{Verdict, Weighing, causes};

fn at(item: &str) -> Origin {
    Origin::item(item)
}

fn version(text: &str) -> DriverVersion {
    DriverVersion::parse(text).unwrap()
}

fn weigh(id: &str, facts: &Facts) -> Weighing {
    (causes::by_id(id).unwrap().weigh)(facts)
}

fn verdict(id: &str, facts: &Facts) -> Verdict {
    weigh(id, facts).verdict()
}

/// A machine with this module loaded.
fn loaded(driver: &str, flavour: Flavour) -> Facts {
    let mut facts = Facts::default();
    let nvrm = NvrmVersion { version: version(driver), flavour: Some(flavour) };
    facts.module.nvrm = Observed::seen(nvrm, at("/proc/driver/nvidia/version"));
    facts
}

fn trial(result: TrialResult) -> Trial {
    Trial {
        stage: Stage::Init,
        result,
        fresh_process: Some(true),
        hmm_disabled: None,
        seconds: None,
        traced: false,
        what: "cuInit".to_owned(),
        under: None,
        origin: at("probe:cuinit#1"),
    }
}

fn gpu(name: &str) -> Seen<NvmlGpu> {
    Seen::new(NvmlGpu { name: Some(name.to_owned()), ..NvmlGpu::default() }, at("nvidia-smi"))
}

fn hung_probe(outcome: Outcome, stuck: Stuck) -> ProbeRun {
    ProbeRun {
        probe: "cuinit".to_owned(),
        trial: 1,
        outcome,
        code: None,
        seconds: 10.0,
        pid: Some(4711),
        calls: Vec::new(),
        in_flight: Some(("cuInit".to_owned(), None)),
        stuck: Some(stuck),
        notes: Vec::new(),
        end_notes: Vec::new(),
        traced: false,
        origin: at("probe:cuinit#1"),
    }
}

fn hanging(outcome: Outcome, stuck: Stuck) -> Facts {
    let mut facts = loaded("590.48.01", Flavour::Open);
    facts.cuda.trials.push(trial(TrialResult::Hung { killable: None }));
    facts.probes.push(hung_probe(outcome, stuck));
    facts
}

fn nvml_answers(facts: &mut Facts, code: i64) {
    facts.nvml.init = Observed::seen(NvmlResult::Code(code), at("probe:nvml#1"));
}

#[test]
fn a_version_cut_to_two_parts_proves_no_equality() {
    let mut facts = loaded("550.90.07", Flavour::Open);
    nvml_answers(&mut facts, 18);
    facts.library.reported = Observed::seen(version("550.90"), at("nvidia-smi"));
    assert_eq!(verdict("module.version-skew", &facts), Verdict::Likely);
    facts.library.reported = Observed::seen(version("550.90.07"), at("nvidia-smi"));
    assert_eq!(verdict("module.version-skew", &facts), Verdict::RuledOut);
    facts.library.reported = Observed::seen(version("550.90.12"), at("nvidia-smi"));
    assert_eq!(verdict("module.version-skew", &facts), Verdict::Confirmed);
    facts.library.reported = Observed::seen(version("565.57"), at("nvidia-smi"));
    assert_eq!(verdict("module.version-skew", &facts), Verdict::Confirmed);
}

#[test]
fn the_name_of_a_firmware_file_decides_nothing() {
    let mut facts = loaded("590.48.01", Flavour::Open);
    facts.cuda.trials.push(trial(TrialResult::Code(100)));
    facts.nvml.gpus.push(gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition"));
    let mut file = GspFile {
        path: "/lib/firmware/nvidia/590.48.01/gsp_ga10x.bin".to_owned(),
        version: None,
        families: Observed::default(),
        families_complete: false,
        faults: Vec::new(),
        origin: at("ls"),
    };
    let with = |file: &GspFile, facts: &mut Facts| {
        facts.firmware.files = Observed::seen(vec![file.clone()], at("ls"));
    };
    with(&file, &mut facts);
    assert_eq!(verdict("firmware.gsp-lacks-chip", &facts), Verdict::Unknown);
    assert_eq!(verdict("firmware.gsp-missing", &facts), Verdict::RuledOut);
    // Part of a list of strings without the family is no proof either, one with it is.
    file.families = Observed::seen(vec!["ga10x".to_owned()], at("strings"));
    with(&file, &mut facts);
    assert_eq!(verdict("firmware.gsp-lacks-chip", &facts), Verdict::Unknown);
    file.families = Observed::seen(vec!["gb20x".to_owned()], at("strings"));
    with(&file, &mut facts);
    assert_eq!(verdict("firmware.gsp-lacks-chip", &facts), Verdict::RuledOut);
    file.families = Observed::seen(vec!["ga10x".to_owned()], at("readelf"));
    file.families_complete = true;
    with(&file, &mut facts);
    facts.nvml.gpus.clear();
    facts.nvml.count = Observed::seen(0, at("nvidia-smi"));
    assert_eq!(
        verdict("firmware.gsp-lacks-chip", &facts),
        Verdict::Unknown,
        "the chip is not known"
    );
    let id = nvabi::pci_id::by_device(0x2bb5).unwrap();
    facts.module.gpus.push(Seen::new(
        facts::model::module::GpuInformation {
            model: id.product_name.map(str::to_owned),
            ..Default::default()
        },
        at("information"),
    ));
    assert_eq!(verdict("firmware.gsp-lacks-chip", &facts), Verdict::Confirmed);
}

#[test]
fn a_container_says_nothing_of_the_hosts_files() {
    let mut facts = loaded("590.48.01", Flavour::Open);
    facts.cuda.trials.push(trial(TrialResult::Code(100)));
    facts.firmware.files = Observed::Absent(at("/lib/firmware/nvidia/590.48.01"));
    assert_eq!(verdict("firmware.gsp-missing", &facts), Verdict::Possible);
    facts.host.container = Observed::seen(ContainerKind::Docker, at("/.dockerenv"));
    assert_eq!(verdict("firmware.gsp-missing", &facts), Verdict::Unknown);
}

#[test]
fn grace_hopper_needs_the_open_modules_and_hopper_does_not() {
    let mut facts = loaded("550.163.01", Flavour::Proprietary);
    facts.cuda.trials.push(trial(TrialResult::Code(100)));
    let model = |name: &str| {
        let information = facts::model::module::GpuInformation {
            model: Some(name.to_owned()),
            ..Default::default()
        };
        Seen::new(information, at("information"))
    };
    facts.module.gpus = vec![model("NVIDIA GH200 480GB")];
    assert_eq!(verdict("module.needs-open", &facts), Verdict::Confirmed);
    facts.module.gpus = vec![model("NVIDIA H100 PCIe")];
    assert_eq!(verdict("module.needs-open", &facts), Verdict::RuledOut);
}

#[test]
fn a_process_that_is_busy_in_user_space_waits_for_no_lock() {
    let busy = Stuck {
        pid: 4711,
        state: "R".to_owned(),
        user_share: Some(0.6),
        system_share: Some(0.4),
        ..Stuck::default()
    };
    let mut facts = hanging(Outcome::TimedOut, busy);
    facts.nvml.init = Observed::seen(NvmlResult::Hung, at("probe:nvml#1"));
    assert!(verdict("module.deadlock", &facts) < Verdict::Possible);
    assert!(verdict("uvm.hmm", &facts) < Verdict::Possible);
}

#[test]
fn a_lock_of_the_driver_is_a_deadlock_and_hmm_is_not() {
    let stack = |frames: &[&str]| Stuck {
        pid: 4711,
        state: "D".to_owned(),
        stack: frames.iter().map(|frame| (*frame).to_owned()).collect(),
        ..Stuck::default()
    };
    let waiting = stack(&[
        "down+0x54/0x80",
        "os_acquire_mutex+0x2f/0x40 [nvidia]",
        "rm_ioctl+0x9a/0xd0 [nvidia]",
    ]);
    let mut facts = hanging(Outcome::Unkillable, waiting);
    facts.nvml.init = Observed::seen(NvmlResult::Hung, at("probe:nvml#1"));
    assert_eq!(verdict("module.deadlock", &facts), Verdict::Likely);
    let hmm =
        stack(&["memremap_pages+0x2d8/0x7b0", "devmem_alloc_pagemap+0x1c5/0x300 [nvidia_uvm]"]);
    let mut facts = hanging(Outcome::Unkillable, hmm);
    nvml_answers(&mut facts, 0);
    assert!(verdict("module.deadlock", &facts) < Verdict::Possible);
    assert_eq!(verdict("uvm.hmm", &facts), Verdict::Likely);
}

#[test]
fn a_fabric_manager_is_missing_only_where_there_is_a_fabric() {
    let mut facts = loaded("580.159.04", Flavour::Open);
    facts.cuda.trials.push(trial(TrialResult::Code(802)));
    facts.fabric.manager = Observed::seen(ServiceState::NotInstalled, at("systemctl"));
    assert_eq!(verdict("fabric.manager-missing", &facts), Verdict::Possible);
    facts.nvml.gpus = vec![gpu("NVIDIA H200 NVL")];
    assert_eq!(verdict("fabric.manager-missing", &facts), Verdict::RuledOut);
    facts.nvml.gpus = vec![gpu("NVIDIA H200")];
    assert_eq!(verdict("fabric.manager-missing", &facts), Verdict::Likely);
    facts.fabric.nvswitch = Observed::seen(true, at("lspci"));
    assert_eq!(verdict("fabric.manager-missing", &facts), Verdict::Confirmed);
    facts.fabric.manager = Observed::seen(ServiceState::Running, at("systemctl"));
    assert_eq!(verdict("fabric.manager-missing", &facts), Verdict::RuledOut);
    facts.cuda.trials = vec![trial(TrialResult::Code(3))];
    facts.fabric = facts::model::Fabric::default();
    facts.nvml.gpus = vec![gpu("NVIDIA GeForce RTX 4090")];
    assert_eq!(verdict("fabric.manager-missing", &facts), Verdict::NotApplicable);
}

#[test]
fn a_gpu_that_another_driver_owns_is_on_the_bus() {
    let mut facts = Facts::default();
    nvml_answers(&mut facts, 9);
    facts.pci.devices = Observed::Absent(at("/sys/bus/pci/devices"));
    assert_eq!(verdict("pci.no-gpu", &facts), Verdict::Confirmed);
    facts.host.container = Observed::seen(ContainerKind::Gvisor, at("/proc/version"));
    assert!(verdict("pci.no-gpu", &facts) < Verdict::Possible);
    facts.host.container = Observed::default();
    facts.host.wsl = Observed::seen(true, at("/dev/dxg"));
    assert_eq!(verdict("pci.no-gpu", &facts), Verdict::NotApplicable);
}

#[test]
fn hmm_is_not_excluded_by_trials_that_work_now_and_then() {
    let mut facts = loaded("590.48.01", Flavour::Open);
    nvml_answers(&mut facts, 0);
    facts.module.uvm_disable_hmm = Observed::seen(false, at("uvm_disable_hmm"));
    facts.cuda.trials = vec![
        trial(TrialResult::Hung { killable: Some(false) }),
        trial(TrialResult::Code(0)),
        trial(TrialResult::Hung { killable: Some(false) }),
    ];
    assert_eq!(verdict("uvm.hmm", &facts), Verdict::Likely);
    // A failure that only a used process shows is another thing.
    let mut forked = trial(TrialResult::Code(3));
    forked.fresh_process = Some(false);
    facts.cuda.trials = vec![forked, trial(TrialResult::Code(0))];
    assert_eq!(verdict("uvm.hmm", &facts), Verdict::RuledOut);
}

/// "Could not look" is never "there is none".
#[test]
fn a_machine_that_nobody_could_look_at_is_undetermined() {
    let mut facts = facts::Facts::default();
    facts.live = true;
    assert_eq!(reason::diagnose(&facts).state, reason::State::Undetermined);
    let bus = facts::Origin::item("/sys/bus/pci/devices");
    facts.pci.devices = facts::Observed::Absent(bus);
    assert_eq!(reason::diagnose(&facts).state, reason::State::NoGpu);
}
