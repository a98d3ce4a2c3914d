//! Only what was seen to be absent is evidence of absence: turning `Absent` into `Unknown` takes
//! evidence away and never adds any, whatever else is known.

#![expect(clippy::unwrap_used, reason = "a helper of tests that fails is a failed test")]

use facts::model::firmware::GspFile;
use facts::model::library::{LibraryFile, LibraryKind};
use facts::model::module::{CharMajor, Flavour, LoadedModule, ModuleFile, NvrmVersion};
use facts::model::nvml::NvmlResult;
use facts::version::{DriverVersion, KernelRelease};
use facts::{Facts, Observed, Origin};
use proptest::prelude::*;
use reason::{CAUSES, Evidence, Verdict};

/// How one reading turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Seen,
    Absent,
    Unknown,
}

const READINGS: usize = 9;

fn states() -> impl Strategy<Value = [State; READINGS]> {
    let state = prop_oneof![Just(State::Seen), Just(State::Absent), Just(State::Unknown)];
    prop::array::uniform9(state)
}

fn observed<T>(state: State, item: &str, value: T) -> Observed<T> {
    match state {
        State::Seen => Observed::seen(value, Origin::item(item)),
        State::Absent => Observed::Absent(Origin::item(item)),
        State::Unknown => Observed::default(),
    }
}

fn version() -> DriverVersion {
    DriverVersion::parse("580.159.04").unwrap()
}

fn library(soname: &str) -> LibraryFile {
    let path = format!("/usr/lib64/{soname}");
    LibraryFile {
        soname: soname.to_owned(),
        real_path: path.clone(),
        path,
        version: Some(version()),
        kind: LibraryKind::Driver,
        origin: Origin::item("libraries"),
    }
}

/// A machine whose readings are in these states. What fails is always the same: NVML answers 9.
fn machine(states: [State; READINGS]) -> Facts {
    let mut facts = Facts::default();
    let kernel = KernelRelease::parse("6.8.0-79-generic").unwrap();
    facts.host.kernel = Observed::seen(kernel, Origin::item("uname"));
    facts.nvml.init = Observed::seen(NvmlResult::Code(9), Origin::item("nvml"));
    let nvrm = NvrmVersion { version: version(), flavour: Some(Flavour::Open) };
    facts.module.nvrm = observed(states[0], "version", nvrm);
    for (state, name) in [(states[1], "nvidia"), (states[2], "nvidia_uvm")] {
        let module = LoadedModule { name: name.to_owned(), use_count: None, state: None };
        facts.module.loaded.insert(name.to_owned(), observed(state, "modules", module));
    }
    for (state, name) in [(states[3], "nvidia"), (states[4], "nvidia-uvm")] {
        let major = CharMajor { major: 195, name: name.to_owned() };
        facts.module.majors.insert(name.to_owned(), observed(state, "devices", major));
    }
    let module = ModuleFile {
        name: "nvidia".to_owned(),
        path: "/lib/modules/6.8.0-79-generic/updates/dkms/nvidia.ko".to_owned(),
        kernel: Some("6.8.0-79-generic".to_owned()),
        version: Some(version()),
        flavour: None,
        vermagic: None,
        origin: Origin::item("modinfo"),
    };
    facts.module.on_disk = observed(states[5], "modules.dep", vec![module]);
    let firmware = GspFile {
        path: "/lib/firmware/nvidia/580.159.04/gsp_ga10x.bin".to_owned(),
        version: None,
        families: Observed::default(),
        families_complete: false,
        faults: Vec::new(),
        origin: Origin::item("firmware"),
    };
    facts.firmware.files = observed(states[6], "firmware", vec![firmware]);
    facts.library.cuda = observed(states[7], "ld.so.cache", library("libcuda.so.1"));
    facts.pci.devices = match states[8] {
        State::Seen => Observed::default(),
        other => observed(other, "bus", Vec::new()),
    };
    facts
}

fn statements(evidence: &[Evidence]) -> Vec<&str> {
    evidence.iter().map(|piece| piece.statement.as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ignorance_is_no_evidence(given in states(), which in 0..READINGS) {
        let (mut before, mut after) = (given, given);
        before[which] = State::Absent;
        after[which] = State::Unknown;
        let (known, unknown) = (machine(before), machine(after));
        for cause in CAUSES {
            let (more, less) = ((cause.weigh)(&known), (cause.weigh)(&unknown));
            let settled = [Verdict::Confirmed, Verdict::RuledOut];
            let changed = less.verdict() != more.verdict() && settled.contains(&less.verdict());
            prop_assert!(
                !changed,
                "{} was {:?} and is {:?} for not looking at {which}: {:?} / {:?}",
                cause.id,
                more.verdict(),
                less.verdict(),
                statements(&less.support),
                statements(&less.against)
            );
        }
    }
}
