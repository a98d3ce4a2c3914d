//! `gpu.xid`

use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::xid_burst::{self, Burst, BurstXid};

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "gpu.xid",
    layer: Layer::Gpu,
    claim: "the driver reports an error of the GPU (Xid) that has no cause of its own here",
    explanation: "Xids are the driver's numbered errors. They come in bursts, of which the first \
        names the fault and the others follow from it: 45 when channels are torn down, 154 when the \
        driver says what it wants now, 79 when the GPU is gone in the end. Some are no fault of the \
        GPU at all: 13, 31, 43 and 45 by themselves report a program that reached outside its memory \
        or was ended, and the next program runs.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::CudaContextFails,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::NvmlFails,
        SymptomId::NvmlHangs,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["gpu.needs-reset"],
    look_alikes: &[
        LookAlike {
            id: "gpu.memory-fault",
            tell: "the first Xid is one of memory: 48, 63, 64, 92, 94, 95",
        },
        LookAlike { id: "firmware.gsp-timeout", tell: "the first Xid is 119 or 120" },
        LookAlike {
            id: "fabric.nvlink-down",
            tell: "the first Xid is one of NVLink: 74, 144 to 150",
        },
        LookAlike { id: "pci.fell-off-bus", tell: "the first Xid is 79" },
    ],
    references: &[
        "https://docs.nvidia.com/deploy/xid-errors/",
        "https://forums.developer.nvidia.com/t/371272",
        "src/common/sdk/nvidia/inc/nverror.h",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let bursts = xid_burst::bursts(facts);
    let own = unowned(&bursts);
    for lead in &own {
        fault(facts, *lead, &mut weighing);
    }
    if own.is_empty() {
        programs(&bursts, &mut weighing);
        return weighing;
    }
    companions(facts, &bursts, &own, &mut weighing);
    if readings::cuda_works(facts).is_some()
        && let Some(origin) = gpu_state::no_recovery_asked(facts)
    {
        let statement = "CUDA works, and the driver asks for no recovery";
        weighing.objects(Moderate, statement, &origin);
    }
    weighing
}

/// The leading Xids to which no cause of the catalogue lays claim.
fn unowned<'a>(bursts: &[Burst<'a>]) -> Vec<BurstXid<'a>> {
    bursts
        .iter()
        .filter_map(Burst::leading)
        .filter(|lead| xid_burst::owner(lead.number).is_none())
        .collect()
}

/// What NVIDIA's catalogue advises against programs' faults, and what it asks for else.
fn fault(facts: &Facts, lead: BurstXid<'_>, weighing: &mut Weighing) {
    let name = xid_burst::named(lead.number);
    let origin = &lead.event.origin;
    let known = nvabi::xid::by_number(lead.number);
    let bucket = known.map_or("", |xid| xid.immediate_action);
    let mild = matches!(bucket, "RESTART_APP" | "IGNORE");
    let statement = format!("{name} is the first of its burst");
    weighing.supports(if mild { Moderate } else { Strong }, statement, origin);
    match known {
        Some(xid) if !mild && !xid.action.is_empty() => {
            let statement = format!("what is asked for after it: {}", xid.action);
            weighing.supports(Moderate, statement, origin);
        }
        Some(xid) if mild && !xid.typical_cause.is_empty() => {
            let statement = format!("typical of it: {}", xid.typical_cause);
            weighing.supports(Weak, statement, origin);
        }
        _ => {}
    }
    // 169 is how a GPU that only the open modules can drive ends under the proprietary ones.
    let open_only = readings::chips(facts).iter().any(|chip| {
        let architecture = chip.value.architecture;
        architecture.starts_with("Blackwell")
    });
    if lead.number == 169 && open_only {
        let statement = "on this chip the flavour of the module may be what SEC2 halts over";
        weighing.objects(Strong, statement, origin);
    }
}

/// Lines that only a GPU in real trouble brings, and bursts that come again.
fn companions(facts: &Facts, bursts: &[Burst<'_>], own: &[BurstXid<'_>], weighing: &mut Weighing) {
    let lines = ["PMU_HALTED", "GSP_CRASHCAT", "GSP_CRASHCAT_ANY", "CRASH_DUMP"];
    if let Some(event) = facts.log.first(&lines) {
        let text = facts::observed::clean_excerpt(&event.text);
        weighing.supports(Moderate, format!("beside it: {text}"), &event.origin);
    }
    if let Some(asked) = gpu_state::recovery_action(facts) {
        let statement = format!("after it the driver asks for a recovery: {}", asked.value);
        weighing.supports(Moderate, statement, &asked.origin);
    }
    for (index, lead) in own.iter().enumerate() {
        let again =
            own.get(index + 1..).into_iter().flatten().find(|other| other.number == lead.number);
        if let Some(again) = again {
            let statement = format!("{} came again", xid_burst::named(lead.number));
            weighing.supports(Moderate, statement, &again.event.origin);
        }
    }
    let gone = bursts.iter().find_map(|burst| burst.find(xid_burst::OFF_THE_BUS));
    if let Some(gone) = gone {
        let statement = "the GPU fell off the bus after it";
        weighing.supports(Weak, statement, &gone.event.origin);
    }
}

/// Xids of programs alone: possible at most, and called what they are.
fn programs(bursts: &[Burst<'_>], weighing: &mut Weighing) {
    if bursts.iter().any(|burst| burst.leading().is_some()) {
        return;
    }
    let first = bursts.first().and_then(|burst| burst.xids().first());
    if let Some(xid) = first {
        let statement = format!(
            "{} by itself is a program's own fault, and the GPU stays fit for use",
            xid_burst::named(xid.number)
        );
        weighing.supports(Moderate, statement, &xid.event.origin);
        weighing.needs(Need::CudaContext);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let bursts = xid_burst::bursts(facts);
    match unowned(&bursts).first() {
        None if !bursts.is_empty() => of_program(),
        lead => of_gpu(facts, lead.copied()),
    }
}

fn of_program() -> Remedy {
    Remedy::new(Impact::RestartsProcess, "the program in question")
        .step_to(
            Place::Program,
            "compute-sanitizer PROGRAM, or CUDA_LAUNCH_BLOCKING=1",
            "names the kernel that reaches outside its memory",
        )
        .step_to(
            Place::Here,
            "the same GPU with a program that is known to be good, such as a CUDA sample",
            "only if that fails too is the GPU suspect",
        )
        .undo("nothing to undo")
        .verify("the program runs under compute-sanitizer without an error, and no new Xid comes")
        .will_not_help("resetting or replacing the GPU: the next program runs on it as it is")
        .will_not_help("another driver, while the same program brings the same Xid")
}

fn of_gpu(facts: &Facts, lead: Option<BurstXid<'_>>) -> Remedy {
    let place = machine::kernel_place(facts);
    let number = lead.map_or(0, |lead| lead.number);
    let device = lead.and_then(|lead| lead.event.device);
    let address = device.map_or("BUS-ID".to_owned(), |device| device.to_string());
    let known = nvabi::xid::by_number(number);
    let advice = known.map_or("", |xid| xid.action);
    let advice =
        if advice.is_empty() { "NVIDIA's catalogue has no advice of its own" } else { advice };
    let restart = known.is_some_and(|xid| xid.immediate_action == "RESTART_APP");
    let remedy = if restart {
        Remedy::new(Impact::RestartsProcess, "the program in question").step_to(
            Place::Program,
            "restart the program",
            "what NVIDIA's catalogue advises first",
        )
    } else {
        Remedy::new(Impact::RestartsProcess, "every program on that GPU").step_to(
            place,
            format!("stop what uses the GPU, then nvidia-smi --gpu-reset -i {address}"),
            "clears what the error left behind",
        )
    };
    remedy
        .step_to(
            place,
            "nvidia-bug-report.sh, before the next restart",
            "keeps the driver's own record of the error",
        )
        .step_to(place, format!("for Xid {number}: {advice}"), "from NVIDIA's catalogue")
        .step_to(
            place,
            "another release of the driver, older or newer",
            "when the same Xid comes back with the same program",
        )
        .undo("nothing to undo")
        .verify("no new Xid of that number under the load that used to bring it")
        .will_not_help("treating the later Xids of the burst: they follow from the first")
}
