//! `pci.power-state`

use facts::model::log::LogEvent;
use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_state;
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;
use crate::xid_burst::OFF_THE_BUS;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "pci.power-state",
    layer: Layer::Pci,
    claim: "the GPU is powered down and cannot be woken",
    explanation: "Laptops cut the discrete GPU's power while it idles (D3cold), by the firmware's own \
        method or by tools such as bbswitch. When the slot does not come back, the kernel says that \
        it cannot change the power state, every function of the card reads as all ones, and the \
        driver then calls the GPU fallen off the bus. A rule that puts the GPU under runtime power \
        management while it is still being switched on does the same. That D3cold is allowed, or \
        that an idle GPU is in it, is normal: only a GPU that does not wake is at fault.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::NvmlFails,
        SymptomId::NvmlHangs,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::CudaInitHangs,
        SymptomId::CudaContextFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[
        "pci.fell-off-bus",
        "pci.no-gpu",
        "module.rm-init-failed",
        "gpu.xid",
        "gpu.needs-reset",
    ],
    look_alikes: &[
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "Xid 79 stands first, and lines about power states only follow it",
        },
        LookAlike {
            id: "uvm.stale-after-suspend",
            tell: "the whole machine slept; NVML answers, and only CUDA fails",
        },
        LookAlike {
            id: "kernel.nouveau-bound",
            tell: "the GPU is awake and another driver owns it",
        },
        LookAlike { id: "pci.no-gpu", tell: "no function of the card is on the bus at all" },
    ],
    references: &[
        "https://github.com/system76/firmware-open/issues/259",
        "https://github.com/Bumblebee-Project/bbswitch/issues/226",
        "https://github.com/linux-surface/linux-surface/issues/376",
        "https://github.com/JuliaGPU/CUDAdrv.jl/issues/50",
        "https://docs.kernel.org/power/pci.html",
        "drivers/pci/pci.c (pci_power_up)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    kernel_lines(facts, &mut weighing);
    switched_off(facts, &mut weighing);
    rules(facts, &mut weighing);
    bus(facts, &mut weighing);
    if weighing.support.is_empty() {
        awake(facts, &mut weighing);
        return weighing;
    }
    triple(facts, &mut weighing);
    if !facts.log.read.is_seen() {
        weighing.needs(Need::KernelLog);
    }
    if readings::nvml_works(facts).is_none() && facts.pci.gpus().next().is_none() {
        weighing.needs(Need::PowerState);
    }
    weighing
}

/// The kernel's own word on a GPU that does not wake. After a GPU fell off the bus the same line
/// is only an echo.
fn kernel_lines(facts: &Facts, weighing: &mut Weighing) {
    let fell = |event: &LogEvent| {
        let xid = event.signature == "XID"
            && event.get("xid").and_then(|x| x.parse().ok()) == Some(OFF_THE_BUS);
        xid || event.signature.starts_with("FALLEN_BUS")
    };
    let gone = facts.log.events.iter().position(fell);
    let lines: Vec<(usize, &LogEvent)> = super::not_woken(facts).collect();
    let Some((index, event)) = lines.first().copied() else { return };
    if gone.is_some_and(|gone| gone < index) {
        let statement = "the kernel cannot change the GPU's power state, after it was gone already";
        weighing.supports(Weak, statement, &event.origin);
        return;
    }
    let text = facts::observed::clean_excerpt(&event.text);
    let statement = format!("the kernel could not wake the GPU: {text}");
    if event.text.starts_with("vfio-pci") {
        // A card that does not come back from a guest's reset says the same.
        weighing.supports(Strong, statement, &event.origin);
    } else if event.text.contains("D3cold") {
        weighing.confirms(statement, &event.origin);
    } else {
        weighing.supports(Strong, statement, &event.origin);
    }
    if let Some(lost) = facts.pci.lost.first() {
        let statement = "its configuration space reads as all ones, as without power";
        weighing.supports(Moderate, statement, &lost.origin);
    }
    if let Some(works) = readings::cuda_works(facts) {
        weighing.objects(Strong, "CUDA works, so that it has woken since", works);
    }
    let functions: Vec<_> = lines.iter().filter_map(|(_, event)| event.device).collect();
    if functions.first().is_some_and(|first| functions.iter().any(|other| other != first)) {
        let statement = "several functions of the card do not wake";
        weighing.supports(Weak, statement, &event.origin);
    }
}

/// Tools that cut the power, and programs that give it.
fn switched_off(facts: &Facts, weighing: &mut Weighing) {
    if let Some(off) = facts.power.switched_off.first() {
        if let Some(works) = readings::cuda_works(facts) {
            weighing.objects(Strong, "CUDA works all the same", works);
        }
        weighing.supports(Strong, "bbswitch has switched the GPU off", &off.origin);
    }
    if let Some(works) = facts.power.works_switched_on.first() {
        let statement = "CUDA works under a program that switches the GPU on first";
        weighing.supports(Strong, statement, &works.origin);
    }
    let points = !weighing.support.is_empty();
    if let Some(trial) = readings::init_failed_with(facts, code::UNKNOWN).filter(|_| points) {
        weighing.supports(Moderate, "cuInit answers 999 without it", &trial.origin);
    }
}

/// A rule alone is no fault; with a GPU that is gone it is.
fn rules(facts: &Facts, weighing: &mut Weighing) {
    let Some(rule) = facts.power.rules.first() else { return };
    if let Some(gone) = facts.log.first(&super::OFF_BUS_LINES) {
        let statement = "a rule puts the GPU under runtime power management as it is added";
        weighing.supports(Strong, statement, &rule.origin);
        weighing.supports(Moderate, super::off_bus_statement(gone), &gone.origin);
    }
}

/// What sysfs shows. A GPU in D3cold that is merely suspended sleeps, as it should.
fn bus(facts: &Facts, weighing: &mut Weighing) {
    for gpu in facts.pci.gpus() {
        let cold = gpu.power_state.as_seen().filter(|seen| seen.value == "D3cold");
        let failed = gpu.runtime_status.value().is_some_and(|status| status == "error");
        if let (Some(cold), true) = (cold, failed) {
            let statement = "the GPU is in D3cold, and waking it has failed";
            weighing.confirms(statement, &cold.origin);
        }
    }
}

/// NV_ERR_GPU_NOT_FULL_POWER in the driver's triple.
fn triple(facts: &Facts, weighing: &mut Weighing) {
    let cold = facts.log.with("RMINIT_FAILED").find(|event| event.get("status") == Some("0x11"));
    if let Some(event) = cold {
        let statement = "RmInitAdapter fails with NV_ERR_GPU_NOT_FULL_POWER";
        weighing.supports(Moderate, statement, &event.origin);
    }
}

fn awake(facts: &Facts, weighing: &mut Weighing) {
    let mut states = facts.pci.gpus().map(|gpu| gpu.power_state.value());
    let first = facts.pci.gpus().find_map(|gpu| gpu.power_state.as_seen());
    if let (Some(first), true) =
        (first, states.all(|state| state.is_some_and(|state| state == "D0")))
    {
        weighing.rules_out("the GPUs are awake (D0)", &first.origin);
    } else if let Some(origin) = readings::cuda_works(facts) {
        weighing.rules_out("cuInit answers 0", origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    let address = super::not_woken(facts)
        .find_map(|(_, event)| event.device)
        .or_else(|| gpu_state::cards(facts).first().copied())
        .map_or("0000:BB:00.0".to_owned(), |address| address.to_string());
    let mut remedy = Remedy::new(Impact::PowerCycle, "everything on the machine while it is off");
    if let Some(rule) = facts.power.rules.first() {
        remedy = remedy.step_to(
            place,
            "grep -rn power/control /etc/udev/rules.d /lib/udev/rules.d, and remove the rule that acts when the device is added",
            if rule.value.is_empty() { "the rule" } else { "the driver's own rule acts on bind, after the GPU is up" },
        );
    }
    let bbswitch =
        !facts.power.switched_off.is_empty() || facts.module.loaded("bbswitch").is_seen();
    if bbswitch {
        remedy = remedy.step_to(
            place,
            remove_bbswitch(facts),
            "the driver manages the GPU's power itself",
        );
    }
    if !facts.power.works_switched_on.is_empty() {
        remedy = remedy.step_to(
            place,
            "prime-select nvidia (or on-demand), or run programs under optirun",
            "keeps the GPU and its libraries in place for every program",
        );
    }
    remedy
        .step_to(
            place,
            "echo 'options nvidia NVreg_DynamicPowerManagement=0x00' > /etc/modprobe.d/nvidia-pm.conf",
            "the driver no longer lets the GPU go to D3",
        )
        .step_to(
            place,
            format!("echo on > /sys/bus/pci/devices/{address}/power/control"),
            "the kernel neither",
        )
        .step_to(
            Place::Machine,
            "shut down, take the mains and battery away, start again; update the firmware of the board",
            "only a power cycle brings a slot back that the firmware does not switch on",
        )
        .undo("rm /etc/modprobe.d/nvidia-pm.conf and restart")
        .verify(format!("cat /sys/bus/pci/devices/{address}/power_state prints D0, and nvidia-smi lists the GPU"))
        .will_not_help("reloading the driver's modules: no driver can talk to a device without power")
        .will_not_help("replacing the power supply or the card before power saving has been switched off")
}

fn remove_bbswitch(facts: &Facts) -> &'static str {
    match machine::distribution(facts) {
        Distribution::Debian | Distribution::Ubuntu => {
            "tee /proc/acpi/bbswitch <<< ON; apt remove bbswitch-dkms bumblebee"
        }
        Distribution::Arch => "tee /proc/acpi/bbswitch <<< ON; pacman -R bbswitch bumblebee",
        _ => "tee /proc/acpi/bbswitch <<< ON; remove bbswitch and what loads it",
    }
}
