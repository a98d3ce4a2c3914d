//! `GPUDX_FAKE`, read once.

use core::ffi::c_int;
use std::sync::OnceLock;
use std::time::Duration;

use crate::act::Act;
use crate::condition::Condition;

/// The settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Calls that do something else than succeed, by their name in the settings.
    acts: Vec<(String, Vec<Condition>, Act)>,
    /// Number of devices.
    pub(crate) count: u32,
    /// Driver version.
    pub(crate) driver: String,
    /// CUDA version of the driver: 1000 × major + 10 × minor.
    pub(crate) cuda: c_int,
    /// Name of each device.
    pub(crate) name: String,
    /// Compute capability.
    pub(crate) capability: (c_int, c_int),
    /// Compute mode.
    pub(crate) compute_mode: c_int,
    /// NVML's fabric state.
    pub(crate) fabric: u8,
    /// NVML's addressing mode.
    pub(crate) addressing: u32,
    /// NVML's fields, by number.
    pub(crate) fields: Vec<(u32, u64)>,
    /// Performance state.
    pub(crate) pstate: u32,
    /// PCIe generation now and at most, lanes now and at most.
    pub(crate) link: [u32; 4],
    /// Utilization in percent.
    pub(crate) utilization: u32,
    /// Memory errors that could not be corrected.
    pub(crate) ecc: u64,
    /// Rows replaced, waiting to be replaced, that could not be replaced.
    pub(crate) rows: [u32; 3],
    /// Confidential computing: on, and ready.
    pub(crate) confidential: [u32; 2],
    /// NVML's MIG mode.
    pub(crate) mig: u32,
    /// Whether devices can access each other.
    pub(crate) peers: c_int,
    /// Whether copies come back wrong.
    pub(crate) copy_wrong: bool,
    /// Whether kernels compute wrongly.
    pub(crate) kernel_wrong: bool,
    /// Where deeds are written down.
    pub(crate) record: Option<String>,
}

/// The process's settings.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let text = std::env::var("GPUDX_FAKE").unwrap_or_default();
        let mut settings = Settings::healthy();
        for setting in text.split(',').filter(|setting| !setting.is_empty()) {
            if settings.apply(setting).is_none() {
                complain(setting);
            }
        }
        settings
    })
}

fn complain(setting: &str) -> ! {
    let message = format!("GPUDX_FAKE: cannot read setting {setting:?}\n");
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
    std::process::abort()
}

impl Settings {
    fn healthy() -> Self {
        Self {
            acts: Vec::new(),
            count: 1,
            driver: "590.48.01".to_owned(),
            cuda: 13010,
            name: "NVIDIA H200".to_owned(),
            capability: (9, 0),
            compute_mode: 0,
            fabric: 0,
            addressing: 0,
            fields: Vec::new(),
            pstate: 0,
            link: [5, 5, 16, 16],
            utilization: 0,
            ecc: 0,
            rows: [0; 3],
            confidential: [0, 1],
            mig: 0,
            peers: 1,
            copy_wrong: false,
            kernel_wrong: false,
            record: None,
        }
    }

    /// What a call of this name is to do, if anything else than succeed.
    pub(crate) fn act(&self, name: &str) -> Option<&Act> {
        let fits = |(set, conditions, _): &&(String, Vec<Condition>, Act)| {
            set == name && conditions.iter().all(Condition::holds)
        };
        self.acts.iter().rfind(fits).map(|(_, _, act)| act)
    }

    fn apply(&mut self, setting: &str) -> Option<()> {
        let (name, value) = setting.split_once('=')?;
        match (name, value) {
            ("count", _) => self.count = value.parse().ok()?,
            ("driver", _) => value.clone_into(&mut self.driver),
            ("cuda", _) => self.cuda = value.parse().ok()?,
            ("name", _) => value.clone_into(&mut self.name),
            ("capability", _) => {
                let (major, minor) = value.split_once('.')?;
                self.capability = (major.parse().ok()?, minor.parse().ok()?);
            }
            ("computemode", _) => self.compute_mode = value.parse().ok()?,
            ("fabric", _) => self.fabric = value.parse().ok()?,
            ("addressing", _) => self.addressing = value.parse().ok()?,
            ("field", _) => {
                let (id, number) = value.split_once(':')?;
                self.fields.push((id.parse().ok()?, number.parse().ok()?));
            }
            ("pstate", _) => self.pstate = value.parse().ok()?,
            ("link", _) => self.link = numbers(value)?,
            ("utilization", _) => self.utilization = value.parse().ok()?,
            ("ecc", _) => self.ecc = value.parse().ok()?,
            ("rows", _) => self.rows = numbers(value)?,
            ("confidential", _) => self.confidential = numbers(value)?,
            ("mig", _) => self.mig = value.parse().ok()?,
            ("peers", _) => self.peers = value.parse().ok()?,
            ("record", _) => self.record = Some(value.to_owned()),
            ("copy", "wrong") => self.copy_wrong = true,
            ("kernel", "wrong") => self.kernel_wrong = true,
            ("load" | "cuinit" | "context" | "alloc" | "copy" | "kernel" | "nvml", _) => {
                self.add_act(name, value)?;
            }
            _ if name.starts_with("nvml.") || name.starts_with("cuda.") => {
                self.add_act(name, value)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn add_act(&mut self, name: &str, value: &str) -> Option<()> {
        let (conditions, value) = value.split_once('?').unwrap_or(("", value));
        let conditions = conditions.split('&').filter(|condition| !condition.is_empty());
        let conditions: Option<Vec<Condition>> = conditions.map(Condition::parse).collect();
        self.acts.push((name.to_owned(), conditions?, act(value)?));
        Some(())
    }
}

/// Numbers with `/` between them.
fn numbers<const COUNT: usize>(text: &str) -> Option<[u32; COUNT]> {
    let numbers: Option<Vec<u32>> = text.split('/').map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn act(text: &str) -> Option<Act> {
    if let Ok(code) = text.parse() {
        return Some(Act::Return(code));
    }
    let (verb, rest) = text.split_once(':').unwrap_or((text, ""));
    Some(match verb {
        "hang" | "constructor-hang" => Act::Hang,
        "hang-deaf" => Act::HangDeaf,
        "spin" => Act::Spin,
        "crash" => Act::Crash,
        "abort" => Act::Abort,
        "exit" => Act::Exit(rest.parse().ok()?),
        "stop" => Act::Stop,
        "slow" => Act::Slow(Duration::from_millis(rest.parse().ok()?)),
        "dstate" => Act::DState(rest.to_owned()),
        "flood" => Act::Flood,
        "print" => Act::Print(rest.to_owned()),
        "fork" => Act::Fork { away: false },
        "fork-away" => Act::Fork { away: true },
        "mischief" => Act::Mischief(rest.to_owned()),
        "flaky" => flaky(rest)?,
        _ => return None,
    })
}

fn flaky(text: &str) -> Option<Act> {
    let (counter, rest) = text.split_once(':')?;
    let (failure, share) = rest.rsplit_once(':')?;
    let (successes, trials) = share.split_once('/')?;
    let trials = trials.parse().ok().filter(|trials| *trials > 0)?;
    Some(Act::Flaky {
        counter: counter.to_owned(),
        failure: Box::new(act(failure)?),
        successes: successes.parse().ok()?,
        trials,
    })
}
