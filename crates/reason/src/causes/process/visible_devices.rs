//! `process.visible-devices`

use facts::model::engine::EngineFault;
use facts::model::process::Lever;
use facts::{Facts, Layer, Observed, Origin, Seen};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.visible-devices",
    layer: Layer::Process,
    claim: "CUDA_VISIBLE_DEVICES hides GPUs that the program needs",
    explanation: "libcuda reads CUDA_VISIBLE_DEVICES once, at cuInit, and lists only the GPUs \
        named in it, by index or UUID. It stops at the first entry that it does not know, so that \
        an empty value, -1, an index that is too high, an unknown UUID or a word such as \"all\" \
        (which only NVIDIA_VISIBLE_DEVICES knows) leaves none, and cuInit answers 100. NVML and \
        nvidia-smi do not read the variable and go on listing every GPU.",
    explains: &[
        SymptomId::CudaInitFails,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
        SymptomId::ContainerRefused,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "process.index-remapped",
            tell: "cuInit answers 0 and a later call 101: the program counts as if all were visible",
        },
        LookAlike { id: "node.missing", tell: "cuInit answers 100 with the variable unset" },
        LookAlike {
            id: "sandbox.gpu-not-requested",
            tell: "NVIDIA_VISIBLE_DEVICES (the engine's variable) names none, and NVML is absent too",
        },
    ],
    references: &[
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars",
        "https://github.com/numba/numba/issues/5793",
    ],
    weigh,
    remedy,
};

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    if let Some(seen) = asked_of_the_engine(facts) {
        let statement =
            format!("the engine was asked for device {}, which is not there", seen.value);
        weighing.confirms(statement, &seen.origin);
        return weighing;
    }
    match facts.process.env(VARIABLE) {
        Observed::Seen(seen) => weigh_value(facts, &seen, &mut weighing),
        Observed::Absent(origin) => {
            weighing.rules_out(format!("{VARIABLE} is not set"), &origin);
        }
        Observed::Denied(..) | Observed::Unknown(_) => {
            if let Some(origin) = readings::cuda_works(facts).filter(|_| !counts_fewer(facts)) {
                weighing.rules_out("CUDA starts and counts every GPU", origin);
            } else {
                weighing.needs(Need::Environment);
            }
        }
    }
    weighing
}

/// A device that the engine's own option or variable names and the driver does not list.
fn asked_of_the_engine(facts: &Facts) -> Option<Seen<String>> {
    engine::fault(facts, |fault| match fault {
        EngineFault::UnknownDevice(device) => Some(device.clone()),
        _ => None,
    })
}

fn weigh_value(facts: &Facts, seen: &Seen<String>, weighing: &mut Weighing) {
    let shown = format!("{VARIABLE}={}", if seen.value.is_empty() { "\"\"" } else { &seen.value });
    match facts.process.tried(|lever| lever == Lever::VisibleDevices) {
        Some((attempt, origin)) if attempt.helped && attempt.controlled => {
            weighing.confirms(format!("it fails with {shown} and works without"), origin);
            nvml_lists(facts, weighing);
            return;
        }
        Some((attempt, origin)) if attempt.helped => {
            weighing.supports(Strong, format!("it works without {VARIABLE}"), origin);
        }
        Some((attempt, origin)) if attempt.controlled => {
            weighing.rules_out(format!("it is the same without {shown}"), origin);
            return;
        }
        Some((_, origin)) => {
            weighing.objects(Moderate, format!("unsetting {VARIABLE} does not help"), origin);
        }
        None => {}
    }
    match visible(facts, &seen.value) {
        Visible::None(why) => {
            if let Some(trial) = readings::init_failed_with(facts, code::NO_DEVICE) {
                weighing.confirms(format!("{shown} {why}"), &seen.origin);
                weighing.supports(Moderate, "cuInit answers 100: no device", &trial.origin);
            } else if let Some(origin) = readings::cuda_works(facts) {
                weighing.supports(Moderate, format!("{shown} {why}"), &seen.origin);
                weighing.rules_out("CUDA starts in this environment all the same", origin);
            } else {
                weighing.supports(Strong, format!("{shown} {why}"), &seen.origin);
                without_code(facts, weighing);
            }
            nvml_lists(facts, weighing);
        }
        Visible::Some { named, stops_at } => {
            named_some(facts, seen, &shown, named, stops_at.as_deref(), weighing);
        }
        Visible::Unknown(need) => {
            let statement = format!("{shown} may name no GPU that is here");
            if readings::init_failed_with(facts, code::NO_DEVICE).is_some() {
                weighing.supports(Moderate, statement, &seen.origin);
            }
            weighing.needs(need);
        }
    }
}

/// What the variable leaves.
enum Visible {
    /// No GPU, and why.
    None(&'static str),
    /// So many GPUs, and the entry at which the list breaks off, if any.
    Some { named: u32, stops_at: Option<String> },
    /// It depends on what was not seen.
    Unknown(Need),
}

/// Reads the value as libcuda does: entry by entry up to the first that it does not know.
fn visible(facts: &Facts, value: &str) -> Visible {
    if value.trim().is_empty() {
        return Visible::None("is empty and hides every GPU");
    }
    let mut named = 0;
    for entry in value.split(',').map(str::trim) {
        match known(facts, entry) {
            Entry::Known => named += 1,
            Entry::Bad(why) if named == 0 => return Visible::None(why),
            Entry::Bad(_) => {
                return Visible::Some { named, stops_at: Some(entry.to_owned()) };
            }
            Entry::Unsure(need) => return Visible::Unknown(need),
        }
    }
    Visible::Some { named, stops_at: None }
}

/// One entry against the GPUs there are.
enum Entry {
    Known,
    Bad(&'static str),
    Unsure(Need),
}

fn known(facts: &Facts, entry: &str) -> Entry {
    if let Ok(index) = entry.parse::<i64>() {
        if index < 0 {
            return Entry::Bad("names no GPU: a negative index hides every GPU");
        }
        return match gpu_count(facts) {
            Some(count) if index < i64::from(count) => Entry::Known,
            Some(_) => Entry::Bad("names an index that no GPU has"),
            None => Entry::Unsure(Need::Nvml),
        };
    }
    if entry.starts_with("MIG-") {
        return mig(facts);
    }
    if entry.starts_with("GPU-") {
        return uuid(facts, entry);
    }
    Entry::Bad("names no GPU: entries are indices or UUIDs, and a word is neither")
}

fn mig(facts: &Facts) -> Entry {
    let modes: Vec<Option<bool>> = facts.nvml.gpus.iter().map(|gpu| gpu.value.mig).collect();
    let all_off = !modes.is_empty() && modes.iter().all(|mode| *mode == Some(false));
    if all_off {
        Entry::Bad("names a MIG device, and MIG is off")
    } else {
        Entry::Unsure(Need::Nvml)
    }
}

/// A UUID may be cut short as long as it names one GPU.
fn uuid(facts: &Facts, entry: &str) -> Entry {
    let listed: Vec<&str> =
        facts.nvml.gpus.iter().filter_map(|gpu| gpu.value.uuid.as_deref()).collect();
    let of_driver = facts.module.gpus.iter().filter_map(|gpu| gpu.value.uuid.as_deref());
    let listed: Vec<&str> = if listed.is_empty() { of_driver.collect() } else { listed };
    if listed.is_empty() || listed.iter().any(|uuid| uuid.contains('?')) {
        return Entry::Unsure(Need::Nvml);
    }
    if listed.iter().any(|uuid| uuid.starts_with(entry)) {
        Entry::Known
    } else {
        Entry::Bad("names a UUID that no GPU here has")
    }
}

/// How many GPUs there are without the variable: NVML does not read it.
fn gpu_count(facts: &Facts) -> Option<u32> {
    if let Some(count) = facts.nvml.count.value() {
        return Some(*count);
    }
    let listed = [facts.nvml.gpus.len(), facts.module.gpus.len(), facts.pci.gpus().count()];
    let listed = listed.into_iter().find(|count| *count > 0)?;
    u32::try_from(listed).ok()
}

fn counts_fewer(facts: &Facts) -> bool {
    match (facts.cuda.count.value(), gpu_count(facts)) {
        (Some(counted), Some(there)) => *counted < there,
        _ => false,
    }
}

/// The variable names GPUs that exist: it hides the others, and cannot make cuInit fail.
fn named_some(
    facts: &Facts,
    seen: &Seen<String>,
    shown: &str,
    named: u32,
    stops_at: Option<&str>,
    weighing: &mut Weighing,
) {
    let as_named = facts.cuda.count.as_seen().filter(|count| count.value == named);
    let Some(count) = as_named.filter(|_| counts_fewer(facts)) else {
        weighing.rules_out(format!("{shown} names GPUs that exist"), &seen.origin);
        return;
    };
    if let Some(entry) = stops_at {
        let statement = format!("{shown} breaks off at {entry}, which no GPU has");
        weighing.confirms(statement, &seen.origin);
        let statement = format!("CUDA counts {named}, as many as are named before it");
        weighing.supports(Moderate, statement, &count.origin);
    } else {
        // It may well be meant so: a suspicion and no more.
        let statement = format!("{shown} leaves out the other GPUs");
        weighing.supports(Strong, statement, &seen.origin);
    }
}

/// No 100 was seen: another code lies beneath or beside the variable.
fn without_code(facts: &Facts, weighing: &mut Weighing) {
    if let Some((number, trial)) = readings::init_failure(facts) {
        let statement =
            format!("cuInit answers {number}, and for want of a visible GPU it answers 100");
        weighing.objects(Moderate, statement, &trial.origin).stands_alone();
    } else {
        weighing.needs(Need::CudaInit);
    }
}

fn nvml_lists(facts: &Facts, weighing: &mut Weighing) {
    let listed = facts.nvml.count.as_seen().filter(|seen| seen.value > 0).map(|seen| &seen.origin);
    let origin: Option<Origin> = listed.cloned().or_else(|| readings::nvml_works(facts));
    if let Some(origin) = origin {
        weighing.supports(Weak, "NVML, which does not read the variable, lists GPUs", &origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let count = gpu_count(facts).unwrap_or(1).min(64);
    let all: Vec<String> = (0..count).map(|index| index.to_string()).collect();
    Remedy::new(Impact::RestartsProcess, "the program in question")
        .step_to(Place::Program, format!("unset {VARIABLE}"), "then every GPU is visible")
        .step_to(
            Place::Program,
            format!("export {VARIABLE}={}", all.join(",")),
            "or the indices that are meant, as nvidia-smi -L counts them with CUDA_DEVICE_ORDER=PCI_BUS_ID",
        )
        .step_to(
            Place::Program,
            format!("grep -rn {VARIABLE} ~/.bashrc ~/.profile /etc/environment /etc/profile.d *.py"),
            "finds who sets it; scripts set it through os.environ",
        )
        .undo(format!("export {VARIABLE} with its former value"))
        .verify(format!("env | grep {VARIABLE} prints nothing, and cuInit answers 0"))
        .will_not_help("nvidia-smi, reinstalling the driver or a reboot: none of them reads the variable")
}

#[cfg(test)]
mod tests {
    use facts::model::nvml::NvmlGpu;

    use super::*;

    fn two_gpus() -> Facts {
        let mut facts = Facts::default();
        for (index, uuid) in ["GPU-11112222-3333", "GPU-1111aaaa-3333"].into_iter().enumerate() {
            let gpu = NvmlGpu {
                index: u32::try_from(index).ok(),
                uuid: Some(uuid.to_owned()),
                mig: Some(false),
                ..NvmlGpu::default()
            };
            facts.nvml.gpus.push(Seen::new(gpu, Origin::item("$ nvidia-smi -L")));
        }
        facts
    }

    fn count(facts: &Facts, value: &str) -> Option<u32> {
        match visible(facts, value) {
            Visible::None(_) => Some(0),
            Visible::Some { named, .. } => Some(named),
            Visible::Unknown(_) => None,
        }
    }

    #[test]
    fn values_are_read_as_libcuda_reads_them() {
        let facts = two_gpus();
        for (value, named) in [
            ("", 0),
            ("-1", 0),
            ("9", 0),
            ("all", 0),
            ("none", 0),
            ("GPU-00000000", 0),
            ("MIG-00000000", 0),
            ("0", 1),
            ("1,0", 2),
            ("0,9,1", 1),
            ("0,-1,1", 1),
            ("GPU-1111aaaa", 1),
        ] {
            assert_eq!(count(&facts, value), Some(named), "{value:?}");
        }
    }

    #[test]
    fn without_a_list_of_gpus_only_what_never_fits_is_known() {
        let facts = Facts::default();
        assert_eq!(count(&facts, "-1"), Some(0));
        for value in ["0", "GPU-1111", "MIG-1111"] {
            assert_eq!(count(&facts, value), None, "{value:?}");
        }
    }
}
