//! Facts made by hand, so that these tests do not depend on any parser.

pub(crate) mod schema;

use facts::model::cuda::{Stage, Trial, TrialResult};
use facts::model::host::{ConfigValue, ContainerKind};
use facts::model::module::{Flavour, NvrmVersion};
use facts::model::nvml::{NvmlGpu, NvmlResult};
use facts::model::sandbox::IdMapRange;
use facts::model::{Note, ProbeRun};
use facts::version::{DriverVersion, KernelRelease};
use facts::wire::{Outcome, Stuck};
use facts::{Errno, Facts, Observed, Origin, Seen};

/// An origin in the pasted report.
pub(crate) fn at(line: u32, excerpt: &str) -> Origin {
    let mut origin = Origin::item("text:report.txt").with_excerpt(excerpt);
    origin.input = Some("report.txt".into());
    origin.line = line;
    origin.end_line = line;
    origin
}

fn trial(result: TrialResult, hmm_disabled: bool, line: u32) -> Trial {
    Trial {
        stage: Stage::Init,
        result,
        fresh_process: None,
        hmm_disabled: Some(hmm_disabled),
        seconds: None,
        traced: false,
        what: "cuInit".to_owned(),
        under: None,
        origin: at(line, "cuInit(0)"),
    }
}

fn base() -> Facts {
    let mut facts = Facts::default();
    facts.mentions_gpu = true;
    facts.host.hostname = Observed::seen("pve".to_owned(), at(1, "root@pve"));
    facts.host.proxmox = Observed::seen("8.4.1".to_owned(), at(2, "pve-manager/8.4.1"));
    facts.host.kernel =
        Observed::seen(KernelRelease::parse("6.8.12-9-pve").unwrap(), at(3, "6.8.12-9-pve"));
    let nvrm = NvrmVersion {
        version: DriverVersion::parse("590.48.01").unwrap(),
        flavour: Some(Flavour::Open),
    };
    facts.module.nvrm = Observed::seen(nvrm, at(4, "NVRM version: 590.48.01"));
    for index in 0..8 {
        let gpu = NvmlGpu {
            index: Some(index),
            name: Some("NVIDIA RTX PRO 6000 Blackwell Server Edition".to_owned()),
            ..NvmlGpu::default()
        };
        facts.nvml.gpus.push(Seen::new(gpu, at(5 + index, "GPU")));
    }
    facts.nvml.init = Observed::seen(NvmlResult::Code(0), at(5, "GPU 0"));
    facts
}

/// The host on which cuInit does not return and HMM is on.
pub(crate) fn hanging() -> Facts {
    let mut facts = base();
    facts.host.container = Observed::seen(ContainerKind::Lxc, at(20, "lxc"));
    facts.sandbox.cgroups = Observed::seen(vec!["0::/lxc/129/ns".to_owned()], at(21, ""));
    let whole = IdMapRange { inside: 0, outside: 0, count: u32::MAX };
    facts.sandbox.uid_map = Observed::seen(vec![whole], at(22, "0 0 4294967295"));
    for name in ["HMM_MIRROR", "DEVICE_PRIVATE"] {
        let value = Observed::seen(ConfigValue::Yes, at(30, "=y"));
        facts.host.config.insert(name.to_owned(), value);
    }
    facts.module.uvm_disable_hmm = Observed::seen(false, at(31, "N"));
    facts.cuda.trials.push(trial(TrialResult::Hung { killable: Some(false) }, false, 32));
    facts.probes.push(stuck_run());
    facts.notes.push(Note {
        text: "the strace line proves nothing: without -f it watched only timeout".to_owned(),
        origin: at(40, "exited with 0"),
    });
    facts.log.unlisted.push(at(41, "nvidia: something new\u{1b}[31m"));
    facts.node.euid = Observed::Denied(Errno::EACCES, at(42, "id"));
    facts
}

fn stuck_run() -> ProbeRun {
    ProbeRun {
        probe: "cuinit".to_owned(),
        trial: 1,
        outcome: Outcome::Unkillable,
        code: None,
        seconds: 10.0,
        pid: Some(4242),
        calls: Vec::new(),
        in_flight: Some(("cuInit".to_owned(), None)),
        stuck: Some(Stuck {
            pid: 4242,
            tid: 4242,
            state: "D".to_owned(),
            wchan: Some("uvm_hmm_va_space_initialize".to_owned()),
            stack: vec!["uvm_register_gpu [nvidia_uvm]".to_owned()],
            call: Some("ioctl UVM_REGISTER_GPU on /dev/nvidia-uvm".to_owned()),
            ..Stuck::default()
        }),
        notes: Vec::new(),
        end_notes: vec!["SIGKILL does not end it".to_owned()],
        traced: false,
        origin: Origin::item("probe:cuinit#1"),
    }
}

/// The same machine with HMM off: cured.
pub(crate) fn cured() -> Facts {
    let mut facts = base();
    facts.module.uvm_disable_hmm = Observed::seen(true, at(31, "Y"));
    facts.cuda.trials.push(trial(TrialResult::Code(0), true, 32));
    facts
}

/// What an attacker would put into a log.
pub(crate) fn hostile() -> Facts {
    let mut facts = hanging();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J|`<script>`\u{202e}\r\nfake: line".to_owned();
    facts.host.hostname = Observed::seen(evil.clone(), at(1, &evil));
    facts.notes.push(Note { text: evil.clone(), origin: at(50, &evil) });
    facts.cuda.trials.push(Trial { what: evil, ..trial(TrialResult::Code(999), false, 51) });
    facts
}

/// Each of the above, and a machine of which nothing is known.
pub(crate) fn all() -> Vec<Facts> {
    vec![hanging(), cured(), hostile(), Facts::default()]
}
