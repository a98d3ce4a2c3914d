//! `module.uptime-hang`

use facts::model::module::Flavour;
use facts::model::nvml::NvmlResult;
use facts::{Facts, Layer, Observed, Origin, Seen};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::machine;
use crate::need::Need;
use crate::readings;
use crate::remedy::{Impact, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "module.uptime-hang",
    layer: Layer::Module,
    claim: "this driver build hangs once the machine has been up for about 66 days",
    explanation: "With open kernel modules of branches 570 and 580 on machines with NVLink (reports \
        name B200), nvidia-smi and whatever asks NVML stop returning about 66 days and 12 hours \
        after boot, on one machine after another. The log repeats every four seconds that the \
        NVLink receive-detect mask could not be updated. Reports say that the proprietary flavour \
        of the same release is not affected, that 580.105.08 still is, and that a reboot helps for \
        the next 66 days. Why it is that time is disputed (a proposed fix points to a clock derived \
        from jiffies), and no release was named as the first good one.",
    explains: &[
        SymptomId::NvmlHangs,
        SymptomId::NvmlFails,
        SymptomId::CudaInitHangs,
        SymptomId::GpuFaulted,
    ],
    specializes: &["module.deadlock"],
    look_alikes: &[
        LookAlike {
            id: "module.deadlock",
            tell: "it comes at any uptime, and the stuck task's stack holds a lock",
        },
        LookAlike {
            id: "firmware.gsp-timeout",
            tell: "Xid 119 or 120 in the kernel log before the hang",
        },
        LookAlike {
            id: "fabric.nvlink-down",
            tell: "an Xid of NVLink (74, 145, 149) names the link that failed",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/971",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/pull/1014",
        "https://github.com/leptonai/gpud/pull/1271",
    ],
    weigh,
    remedy,
};

/// 66 days: what all reports have in common. They say about 66 days and 12 hours.
const ONSET_DAYS: f64 = 66.0;

const SECONDS_A_DAY: f64 = 86_400.0;

/// Stamps below this count from boot, those above from 1970.
const LONGEST_UPTIME_S: f64 = 1e9;

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let hang = hang(facts);
    let mask = facts.log.with("NVLINK_RXDET").next();
    if hang.is_none() && mask.is_none() {
        return weighing;
    }
    if let Some(event) = mask {
        let statement = "the driver cannot update its NVLink receive-detect mask any more";
        weighing.supports(Strong, statement, &event.origin);
    }
    let late = uptime(facts, &mut weighing);
    if let Some((statement, origin)) = &hang {
        // Many things hang, and most of them on the first day.
        let strength = if late || mask.is_some() { Moderate } else { Weak };
        weighing.supports(strength, *statement, origin);
    }
    if let (Some((_, origin)), true, true) = (&hang, late, mask.is_some()) {
        weighing.confirms("both began after 66 days, as in every report", origin);
    }
    if late || mask.is_some() {
        build(facts, &mut weighing);
    }
    if let Some((xid, event)) = facts.log.xids().find(|(xid, _)| matches!(xid, 79 | 119 | 120)) {
        weighing.objects(Strong, format!("Xid {xid}: the GPU stopped answering"), &event.origin);
    }
    weighing
}

fn hang(facts: &Facts) -> Option<(&'static str, Origin)> {
    if let Observed::Seen(Seen { value: NvmlResult::Hung, origin }) = &facts.nvml.init {
        return Some(("NVML hangs in its first call", origin.clone()));
    }
    if let Some(query) = facts.nvml.hung().next() {
        return Some(("nvidia-smi does not return", query.origin.clone()));
    }
    let trial = readings::init_hang(facts)?;
    // It is NVML that every report names; while it answers, a hanging cuInit is another fault.
    let silent = readings::nvml_works(facts).is_none();
    silent.then(|| ("cuInit does not return", trial.origin.clone()))
}

/// Time since boot, or the stamp of a line of the log. Returns whether it is late enough.
fn uptime(facts: &Facts, weighing: &mut Weighing) -> bool {
    let stamped = facts.log.with("NVLINK_RXDET").find_map(|event| {
        let seconds = event.time_s.filter(|seconds| *seconds < LONGEST_UPTIME_S)?;
        Some((seconds / SECONDS_A_DAY, event.origin.clone()))
    });
    let shown = facts.host.uptime_s.as_seen();
    let shown = shown.map(|seen| (seconds(seen.value) / SECONDS_A_DAY, seen.origin.clone()));
    let Some((days, origin)) = shown.or(stamped) else {
        weighing.needs(Need::Uptime);
        return false;
    };
    if days < ONSET_DAYS {
        let statement = format!("the machine has been up for {days:.0} days only");
        weighing.rules_out(statement, &origin);
        return false;
    }
    weighing.supports(Strong, format!("the machine has been up for {days:.0} days"), &origin);
    true
}

/// A number of seconds since boot fits 32 bits for 136 years.
fn seconds(value: u64) -> f64 {
    u32::try_from(value).map_or(f64::INFINITY, f64::from)
}

/// Reports are of open modules of 570 and 580.
fn build(facts: &Facts, weighing: &mut Weighing) {
    if let Some(seen) = facts.module.flavour() {
        match seen.value {
            Flavour::Open => weighing.supports(Weak, "the open kernel module runs", &seen.origin),
            Flavour::Proprietary => {
                let statement = "the proprietary module runs, which reports call unaffected";
                weighing.objects(Strong, statement, &seen.origin)
            }
        };
    }
    if let Some(seen) = readings::driver_version(facts) {
        let version = &seen.value;
        match version.branch() {
            570..=580 => {
                let statement = format!("driver {version} is of the branches in the reports");
                weighing.supports(Moderate, statement, &seen.origin);
            }
            branch if branch < 570 => {
                let statement = format!("no report names driver {version} or its branch");
                weighing.objects(Moderate, statement, &seen.origin);
            }
            _ => {
                let statement = format!("driver {version} is newer than those in the reports");
                weighing.objects(Weak, statement, &seen.origin);
            }
        }
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::Reboots, "everything on the machine")
        .step_to(place, "reboot", "the tools answer again, for the next 66 days")
        .step_to(
            place,
            "plan a reboot of each such node before its 66th day",
            "stagger them: nodes that were booted together hang together",
        )
        .step_to(
            place,
            "install the newest release of branch 580 or a later branch",
            "no release was named as the first good one, so keep watching the uptime",
        )
        .undo("nothing to undo")
        .verify("nvidia-smi answers at once; uptime counts from 0")
        .will_not_help("kill -9 of the stuck tools: they sleep in the kernel")
        .will_not_help("nvidia-smi --gpu-reset or rmmod: both wait for the same module")
}
