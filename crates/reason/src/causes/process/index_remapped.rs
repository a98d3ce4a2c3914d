//! `process.index-remapped`

use facts::model::process::{Lever, Refusal};
use facts::{Facts, Layer, Seen};

use super::limits::tried;
use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "process.index-remapped",
    layer: Layer::Process,
    claim: "the program asks for a GPU index beyond those that it can see",
    explanation: "With CUDA_VISIBLE_DEVICES=5 the process sees one GPU, and its index is 0, not 5: \
        indices count within the visible set, in its order. A container or a batch system that \
        hands out some of the GPUs does the same. A program, a script or a saved model that names \
        the number of nvidia-smi then gets 101, invalid device ordinal, though the GPU is there \
        and works.",
    explains: &[SymptomId::CudaContextFails, SymptomId::CudaInitFails, SymptomId::FrameworkNoGpu],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "process.visible-devices",
            tell: "cuInit answers 100: the variable leaves no GPU at all",
        },
        LookAlike {
            id: "share.mig-one-per-process",
            tell: "MIG is on: a process sees one MIG device, whatever the index",
        },
        LookAlike {
            id: "node.missing",
            tell: "a GPU is lost to every program: CUDA counts fewer without the variable too",
        },
    ],
    references: &[
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars",
        "https://github.com/maudzung/RTM3D/issues/11",
        "https://github.com/openai/summarize-from-feedback/issues/5",
    ],
    weigh,
    remedy,
};

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let code = facts.cuda.plain().find(|trial| trial.failure_code() == Some(code::INVALID_DEVICE));
    let refused = facts.process.refused(Refusal::Ordinal);
    match (code, refused) {
        (Some(trial), _) => {
            weighing.supports(Moderate, "CUDA answers 101, invalid device ordinal", &trial.origin);
        }
        (None, Some(origin)) => {
            weighing.supports(Moderate, "a program was refused the GPU of that index", origin);
        }
        (None, None) => return weighing,
    }
    compare(facts, &mut weighing);
    tried(
        facts,
        |lever| lever == Lever::VisibleIndex,
        "it works with the variable set and index 0",
        "index 0 within the visible set does not work either",
        &mut weighing,
    );
    there(facts, &mut weighing);
    if let Some(gpu) = facts.nvml.gpus.iter().find(|gpu| gpu.value.mig == Some(true)) {
        weighing.objects(Moderate, "MIG is on, which changes what an index means", &gpu.origin);
    }
    weighing
}

/// How many GPUs the process sees: as CUDA counts them, or as the variable lists them.
fn visible(facts: &Facts) -> Option<Seen<(u32, String)>> {
    if let Some(seen) = facts.process.env.get(VARIABLE) {
        let entries = seen.value.split(',').map(str::trim);
        let plain = entries.clone().all(|entry| {
            entry.parse::<u32>().is_ok() || entry.starts_with("GPU-") || entry.starts_with("MIG-")
        });
        let count = u32::try_from(entries.count()).unwrap_or(u32::MAX);
        if plain {
            let words = format!("{VARIABLE}={} leaves {count}", seen.value);
            return Some(Seen::new((count, words), seen.origin.clone()));
        }
    }
    let seen = facts.cuda.count.as_seen()?;
    Some(Seen::new((seen.value, format!("CUDA counts {}", seen.value)), seen.origin.clone()))
}

/// The index asked for against the count.
fn compare(facts: &Facts, weighing: &mut Weighing) {
    let highest = facts.process.ordinals_wanted.iter().max_by_key(|seen| seen.value);
    match (visible(facts), highest) {
        (Some(visible), Some(wanted)) => {
            let (count, words) = &visible.value;
            if wanted.value >= *count {
                let last = count.saturating_sub(1);
                let statement = format!(
                    "{words}, so that the last index is {last}; {} is asked for",
                    wanted.value
                );
                weighing.confirms(statement, &wanted.origin);
            } else {
                let statement = format!("{words}, and index {} is among them", wanted.value);
                weighing.objects(Strong, statement, &wanted.origin);
            }
        }
        (Some(visible), None) => {
            let (count, words) = &visible.value;
            let strength = if facts.process.env.contains_key(VARIABLE) { Moderate } else { Weak };
            weighing.supports(
                strength,
                format!("{words} of the GPUs: indices 0 to {}", count.saturating_sub(1)),
                &visible.origin,
            );
            weighing.needs(Need::DeviceIndex);
        }
        (None, Some(wanted)) => {
            let statement = format!("index {} is asked for", wanted.value);
            weighing.supports(Weak, statement, &wanted.origin);
            weighing.needs(Need::Environment);
            weighing.needs(Need::DeviceIndex);
        }
        (None, None) => {
            weighing.needs(Need::Environment);
            weighing.needs(Need::DeviceIndex);
        }
    }
}

/// nvidia-smi lists a GPU of that number: it is not missing.
fn there(facts: &Facts, weighing: &mut Weighing) {
    let listed = facts.nvml.count.as_seen();
    let wanted = facts.process.ordinals_wanted.iter().map(|seen| seen.value).max();
    if let (Some(listed), Some(wanted)) = (listed, wanted)
        && listed.value > wanted
    {
        let statement =
            format!("nvidia-smi lists {} GPUs, number {wanted} among them", listed.value);
        weighing.supports(Moderate, statement, &listed.origin);
    } else if let Some(origin) = readings::nvml_works(facts) {
        weighing.supports(Weak, "nvidia-smi works", &origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let set = facts.process.env.get(VARIABLE).map(|seen| seen.value.clone());
    let highest = facts.process.ordinals_wanted.iter().map(|seen| seen.value).max();
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program in question").step_to(
        Place::Program,
        "count from 0 within the visible set: cuda:0 is the first GPU that the variable names",
        "in the program's own option or code (--gpu 0, torch.device(\"cuda:0\"))",
    );
    if set.is_some() {
        let index = highest.map_or("N".to_owned(), |index| index.to_string());
        remedy = remedy.step_to(
            Place::Program,
            format!("unset {VARIABLE}"),
            &format!("or let every GPU be visible, and index {index} is nvidia-smi's again with CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        );
    }
    remedy
        .step_to(
            Place::Program,
            "torch.load(FILE, map_location=\"cuda:0\")",
            "for a model that was saved on another GPU",
        )
        .undo(format!("export {VARIABLE} with its former value"))
        .verify("torch.cuda.device_count() is larger than every index that is used")
        .will_not_help("reinstalling the driver or a reboot: the GPU is there")
        .will_not_help("a higher index in the variable: it names the GPUs of nvidia-smi, and the program counts anew")
}
