//! `firmware.gsp-timeout`

use facts::model::log::LogEvent;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Place, Remedy};
use crate::stuck;
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

mod rpc;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "firmware.gsp-timeout",
    layer: Layer::Firmware,
    claim: "the GSP, the GPU's own management processor, stopped answering",
    explanation: "From Turing on the driver asks the GSP to do most things for it and waits for each \
        answer, 6 seconds on graphics boards, 45 on compute boards. If none comes the log has Xid \
        119 with the call that went unanswered, or 120 when the GSP itself reported a crash; every \
        later call waits as long and fails, and nvidia-smi hangs or shows errors. The GSP works in \
        a locked region of the GPU's memory (WPR2) that survives a warm reboot: the next boot then \
        finds 'unexpected WPR2 already up' at its first attempt, until the power is cut or the GPU \
        gets a function-level reset.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::NvmlHangs,
        SymptomId::NvmlFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitSlow,
        SymptomId::CudaContextFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed", "module.deadlock", "gpu.xid"],
    look_alikes: &[
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "Xid 79 comes first: a GPU that is gone answers nothing, the GSP included",
        },
        LookAlike {
            id: "module.deadlock",
            tell: "no Xid 119 or 120; the stuck task sleeps in state D and does not spin",
        },
        LookAlike {
            id: "module.rm-init-failed",
            tell: "another failure of RmInitAdapter stands before the first 'WPR2 already up'",
        },
        LookAlike { id: "gpu.vbios", tell: "GFW_BOOT never completes: the GSP was never started" },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1353",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/446",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1230",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1239",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/876",
        "src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let first = first_silence(facts);
    if let Some((place, event)) = first {
        let statement = rpc::silence(facts, event);
        match before(facts, place) {
            None => weighing.confirms(statement, &event.origin),
            Some(earlier) => {
                let text = facts::observed::clean_excerpt(&earlier.text);
                let objection = format!("the silence only follows; first came: {text}");
                weighing.supports(Weak, statement, &event.origin);
                weighing.rules_out(objection, &earlier.origin)
            }
        };
    }
    wpr2(facts, first.is_some(), &mut weighing);
    told(facts, &mut weighing);
    spins(facts, &mut weighing);
    if weighing.support.is_empty() {
        return weighing;
    }
    if let Some(origin) = readings::cuda_works(facts) {
        weighing.objects(Strong, "cuInit answers 0", origin);
    }
    if let Some(query) = facts.nvml.hung().next() {
        weighing.supports(Weak, format!("{} does not return", query.query), &query.origin);
    }
    weighing
}

/// Whether a line says that the GSP gave no answer or crashed.
fn is_silence(event: &LogEvent) -> bool {
    match event.signature {
        "XID" => matches!(event.get("xid"), Some("119" | "120")),
        "GSP_RPC_TIMEOUT"
        | "GSP_RPC_TIMEOUT_OLD"
        | "GSP_HEARTBEAT"
        | "GSP_HEARTBEAT_RM"
        | "GSP_HEARTBEAT_LIBOS"
        | "GSP_TIMEOUT_BANNER"
        | "GSP_CRASHCAT"
        | "GSP_CRASHCAT_ANY" => true,
        "GSP_CLASS" => event.get("what").is_some_and(|what| !what.contains("slow")),
        _ => false,
    }
}

/// The first such line, and its place among the events. The line of an Xid tells most of those
/// that belong together.
fn first_silence(facts: &Facts) -> Option<(usize, &LogEvent)> {
    let events = &facts.log.events;
    let place = events.iter().position(is_silence)?;
    let telling = events.iter().skip(place).find(|event| rpc::tells_call(event));
    Some((place, telling.or_else(|| events.get(place))?))
}

/// A GPU that is gone, or an Xid of another kind shortly before: the silence only follows.
fn before(facts: &Facts, place: usize) -> Option<&LogEvent> {
    let events = &facts.log.events;
    let silence = events.get(place)?;
    let mut earlier = events.iter().take(place).filter(|event| same_board(event, silence));
    earlier.find(|event| {
        let fallen = matches!(event.signature, "FALLEN_BUS" | "FALLEN_BUS_INIT" | "PCI_D3COLD");
        fallen || event.get("xid") == Some("79") || (is_fault(event) && near(event, silence))
    })
}

/// How long one burst of Xids lasts, in seconds.
const BURST_S: f64 = 300.0;

fn near(event: &LogEvent, silence: &LogEvent) -> bool {
    match (event.time_s, silence.time_s) {
        (Some(at), Some(then)) => (then - at).abs() < BURST_S,
        _ => true,
    }
}

/// An Xid of the GPU's own, other than those of the GSP and of what is to be done.
fn is_fault(event: &LogEvent) -> bool {
    let number = event.get("xid").and_then(|number| number.parse::<u32>().ok());
    number.is_some_and(|number| {
        let known = nvabi::xid::by_number(number);
        !matches!(number, 119 | 120 | 154) && known.is_some_and(|xid| !xid.application_fault)
    })
}

fn same_board(event: &LogEvent, other: &LogEvent) -> bool {
    match (event.device, other.device) {
        (Some(one), Some(two)) => {
            (one.domain, one.bus, one.device) == (two.domain, two.bus, two.device)
        }
        _ => true,
    }
}

/// WPR2 that is up at the first attempt since boot is what an earlier life of the GSP left behind;
/// after a failed start it is what that start left behind.
fn wpr2(facts: &Facts, silent: bool, weighing: &mut Weighing) {
    let events = &facts.log.events;
    let Some(place) = events.iter().position(|event| event.signature == "GSP_WPR2_UP") else {
        return;
    };
    let Some(event) = events.get(place) else { return };
    // NV_ERR_INVALID_STATE is what WPR2 itself gives: a log may begin between two such attempts.
    let failed = events
        .iter()
        .take(place)
        .find(|event| event.signature == "RMINIT_FAILED" && event.get("status") != Some("0x40"));
    match failed {
        Some(first) if !silent => {
            let statement =
                "RmInitAdapter had failed before WPR2 was found up, which only follows from that";
            weighing.objects(Strong, statement, &first.origin);
            weighing.supports(Weak, "WPR2 is already up", &event.origin);
        }
        Some(_) => {
            weighing.supports(Weak, "WPR2 is already up", &event.origin);
        }
        None => {
            let statement = "WPR2 is already up at the first attempt to start the GSP";
            weighing.supports(Strong, statement, &event.origin);
            let refused = events.iter().skip(place).find(|event| {
                event.signature == "RMINIT_FAILED" && event.get("status") == Some("0x40")
            });
            if let Some(refused) = refused {
                let statement = "RmInitAdapter fails with NV_ERR_INVALID_STATE for that";
                weighing.supports(Moderate, statement, &refused.origin);
            }
        }
    }
}

/// The driver waits for the GSP's answer without sleeping, so a task that spins in the kernel while
/// cuInit hangs fits; what decides is the log.
fn spins(facts: &Facts, weighing: &mut Weighing) {
    let hangs = readings::init_hang(facts).is_some() || facts.nvml.hung().next().is_some();
    let silent = !weighing.support.is_empty();
    if let Some(place) = stuck::spinning(facts).filter(|_| hangs) {
        let strength = if silent { Moderate } else { Weak };
        let statement =
            format!("{} spins in the kernel, as it does waiting for the GSP", place.who);
        weighing.supports(strength, statement, place.origin);
        if !facts.log.read.is_seen() {
            weighing.needs(Need::KernelLog);
        }
    }
}

/// What a report says without the log.
fn told(facts: &Facts, weighing: &mut Weighing) {
    for (index, seen) in facts.firmware.silence_told.iter().take(3).enumerate() {
        let strength = if index == 0 { Strong } else { Moderate };
        weighing.supports(strength, format!("the report says: {}", seen.value), &seen.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let address =
        facts.log.events.iter().find_map(|event| is_silence(event).then_some(event.device)?);
    let bdf = address.map_or("BDF".to_owned(), |address| address.to_string());
    let wpr2 = facts.log.with("GSP_WPR2_UP").next().is_some();
    let remedy = Remedy::new(Impact::PowerCycle, "everything on the machine")
        .step_to(
            place,
            "nvidia-bug-report.sh",
            "before anything else: it keeps the GSP's state for a report to NVIDIA",
        )
        .step_to(
            place,
            format!("with the driver unloaded or unbound: echo flr > /sys/bus/pci/devices/{bdf}/reset_method; echo 1 > /sys/bus/pci/devices/{bdf}/reset"),
            "a function-level reset clears the GSP's region; skip it where reset_method has no flr",
        )
        .step_to(
            Place::Machine,
            "else: switch the machine off, cut its power for half a minute, switch it on",
            "a warm reboot keeps the locked region (WPR2)",
        )
        .step_to(
            place,
            "install the newest release of the branch; on laptops and single boards compare with the previous branch",
            "most such hangs were faults of the firmware of single releases",
        );
    let remedy = if wpr2 {
        remedy.will_not_help("a warm reboot: WPR2 stays up across it")
    } else {
        remedy.will_not_help("restarting the program: every call to this GPU goes through the GSP")
    };
    remedy
        .undo("nothing to undo")
        .verify("nvidia-smi -q answers at once, and dmesg has no new Xid 119")
        .will_not_help("another CUDA toolkit or framework: the GPU's firmware hangs beneath them")
}
