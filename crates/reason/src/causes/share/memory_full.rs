//! `share.memory-full`

use facts::model::cuda::{Stage, Trial};
use facts::model::nvml::NvmlGpu;
use facts::model::share::GpuProcess;
use facts::{Facts, Layer, Origin, Seen};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings::code;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "share.memory-full",
    layer: Layer::Share,
    claim: "other programs hold the GPU's memory, so that not even a context fits",
    explanation: "A context takes some hundred MiB of the GPU's own memory before the program asks \
        for any. When other programs hold the rest, cuInit works and the GPU is listed, and the \
        first call that needs a context answers 2, out of memory. Whoever holds it may be a worker \
        that was left over, another container, or a server that takes all it can get; nvidia-smi \
        inside a container shows the memory that is in use, and not the other container's process. \
        Driver and GPU are sound.",
    explains: &[SymptomId::CudaContextFails, SymptomId::FrameworkNoGpu],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "process.address-space",
            tell: "cuInit itself answers 2, and the GPU's memory is free: ulimit -v",
        },
        LookAlike { id: "share.compute-mode", tell: "the code is 46: no second owner is let in" },
    ],
    references: &[
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#context",
        "https://pytorch.org/docs/stable/notes/cuda.html#memory-management",
    ],
    weigh,
    remedy,
};

/// Below this much free memory a context may not fit. A context of driver 580 on an H200 takes
/// some half of it, and NVML's "used" leaves out what the driver reserves for itself.
const SCARCE_MIB: u64 = 1024;

fn weigh(facts: &Facts) -> Weighing {
    let Some(refused) = refused(facts) else { return Weighing::not_applicable() };
    let mut weighing = Weighing::new();
    // What a context needs is little; what a program asks for later is its own affair first.
    let strength = if refused.stage == Stage::Context { Moderate } else { Weak };
    let statement = format!("{} answers 2, out of memory", refused.what);
    weighing.supports(strength, statement, &refused.origin);
    let others = held_by_others(facts);
    if let Some((statement, origin)) = &others {
        weighing.supports(Moderate, statement.clone(), origin);
    }
    if asks_for_more(refused) {
        let statement =
            "the program had a context and asked for more: its own use may fill the GPU";
        let strength = if others.is_some() { Weak } else { Strong };
        weighing.objects(strength, statement, &refused.origin);
    }
    match full(facts) {
        Some(gpu) => on_full_gpu(facts, refused, gpu, &mut weighing),
        None => by_absence(facts, &mut weighing),
    }
    weighing
}

/// A call behind cuInit that answers 2. A limit of the address space makes cuInit itself answer so.
fn refused(facts: &Facts) -> Option<&Trial> {
    facts.cuda.plain().find(|trial| {
        trial.failure_code() == Some(code::OUT_OF_MEMORY)
            && matches!(trial.stage, Stage::Context | Stage::Allocation)
    })
}

/// What the program's own account leaves to others, where that is much. Its context is in no
/// account of PyTorch's up to 2.1, and needs less than this.
fn held_by_others(facts: &Facts) -> Option<(String, Origin)> {
    const MUCH_MIB: f64 = 2048.0;
    const SHARE: f64 = 0.2;
    let account = facts.share.memory_account.as_ref()?;
    let (others, total) = (account.value.others_mib(), account.value.total_mib);
    (others > MUCH_MIB && others > SHARE * total).then(|| {
        let statement = format!(
            "{:.1} of the GPU's {:.1} GiB are neither free nor the program's",
            others / 1024.0,
            total / 1024.0
        );
        (statement, account.origin.clone())
    })
}

/// The message tells how much was asked for, as PyTorch's does, and that the program holds memory.
fn asks_for_more(trial: &Trial) -> bool {
    let text = &trial.origin.excerpt;
    text.contains("Tried to allocate") && !text.contains(" 0 bytes is allocated")
}

fn on_full_gpu(facts: &Facts, refused: &Trial, gpu: &Seen<NvmlGpu>, weighing: &mut Weighing) {
    let Some((free, total)) = free_mib(&gpu.value) else { return };
    let which = gpu.value.index.map_or("a GPU".to_owned(), |index| format!("GPU {index}"));
    let statement = format!("{free} MiB of {which}'s {total} MiB are free");
    // gpudx's own probe holds nothing itself.
    if facts.live && refused.stage == Stage::Context {
        weighing.confirms(statement, &gpu.origin);
    } else {
        weighing.supports(Strong, statement, &gpu.origin);
    }
    if let Some(holder) = holder(facts, gpu) {
        let GpuProcess { pid, name, .. } = &holder.value;
        let held = holder.value.memory_mib.map_or(String::new(), |mib| format!(" of {mib} MiB"));
        weighing.supports(
            Moderate,
            format!("process {pid} ({name}) holds memory{held}"),
            &holder.origin,
        );
    } else if let Some(origin) = &facts.share.no_processes {
        let statement = "nvidia-smi shows no process here: the holder is outside this container";
        weighing.supports(Weak, statement, origin);
    }
    if room(facts).is_some() {
        weighing.needs(Need::DeviceIndex);
    }
}

/// The GPUs were listed, and none is full.
fn by_absence(facts: &Facts, weighing: &mut Weighing) {
    let known: Vec<_> = facts.nvml.gpus.iter().filter_map(|gpu| free_mib(&gpu.value)).collect();
    match facts.nvml.gpus.first() {
        Some(first) if known.len() == facts.nvml.gpus.len() => {
            let least = known.iter().map(|(free, _)| *free).min().unwrap_or(0);
            let statement = format!("every GPU has at least {least} MiB of memory free");
            if least >= 2 * SCARCE_MIB {
                weighing.rules_out(statement, &first.origin);
            }
        }
        _ => {
            weighing.needs(Need::NodeHolders);
        }
    }
}

/// Free memory and all of it, in MiB.
fn free_mib(gpu: &NvmlGpu) -> Option<(u64, u64)> {
    let (used, total) = gpu.memory_mib.filter(|(_, total)| *total > 0)?;
    Some((total.saturating_sub(used), total))
}

/// Less than a sixteenth of its memory is free, and that is little.
fn is_full(gpu: &NvmlGpu) -> bool {
    free_mib(gpu).is_some_and(|(free, total)| free < total / 16 && free < SCARCE_MIB)
}

/// The fullest of the GPUs that are full. MIG instances have memory of their own.
fn full(facts: &Facts) -> Option<&Seen<NvmlGpu>> {
    let full =
        facts.nvml.gpus.iter().filter(|gpu| is_full(&gpu.value) && gpu.value.mig != Some(true));
    full.min_by_key(|gpu| free_mib(&gpu.value))
}

/// A GPU that has memory left.
fn room(facts: &Facts) -> Option<&Seen<NvmlGpu>> {
    facts
        .nvml
        .gpus
        .iter()
        .find(|gpu| free_mib(&gpu.value).is_some_and(|(free, total)| free > total / 2))
}

/// The process that holds most of this GPU's memory.
fn holder<'a>(facts: &'a Facts, gpu: &Seen<NvmlGpu>) -> Option<&'a Seen<GpuProcess>> {
    let there = |process: &&Seen<GpuProcess>| {
        process.value.gpu.is_none()
            || gpu.value.index.is_none()
            || process.value.gpu == gpu.value.index
    };
    facts.share.processes.iter().filter(there).max_by_key(|process| process.value.memory_mib)
}

fn remedy(facts: &Facts) -> Remedy {
    let mut remedy = Remedy::new(Impact::RestartsProcess, "the program that holds the memory");
    let holder = full(facts).and_then(|gpu| holder(facts, gpu));
    if let Some(holder) = holder {
        let pid = holder.value.pid;
        remedy = remedy.step_to(
            Place::Host,
            format!("ps -fp {pid}; cat /proc/{pid}/cgroup"),
            "whose it is; its own way to end it frees the memory at once",
        );
    } else {
        remedy = remedy.step_to(
            machine::kernel_place(facts),
            "nvidia-smi --query-compute-apps=gpu_uuid,pid,name,used_memory --format=csv; fuser -v /dev/nvidia*",
            "who holds it, of all containers; a process that has hung is in the second list only",
        );
    }
    if let Some(index) = room(facts).and_then(|gpu| gpu.value.index) {
        remedy = remedy.step_to(
            Place::Program,
            format!("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={index} PROGRAM"),
            "this GPU has memory free",
        );
    }
    remedy
        .undo("start again what was ended")
        .verify("nvidia-smi shows free memory, and gpudx check --context is healthy")
        .will_not_help(
            "smaller batches, PYTORCH_CUDA_ALLOC_CONF or empty_cache(): the memory is another's",
        )
        .will_not_help(
            "resetting the GPU: it is refused while programs hold it, and they are the cause",
        )
}
