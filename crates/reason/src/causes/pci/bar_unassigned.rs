//! `pci.bar-unassigned`

use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_bars::{self as bars, Bars};
use crate::gpu_state;
use crate::machine::{self, Distribution};
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "pci.bar-unassigned",
    layer: Layer::Pci,
    claim: "firmware or kernel left a register window (BAR) of the GPU without an address",
    explanation: "A GPU is driven through windows in the machine's address space, and the one onto \
        its memory is as large as that memory. When the firmware leaves one out and the kernel finds \
        no room for it, the driver sees 'BAR1 is 0M @ 0x0' and refuses the GPU before it knows what \
        card it is. Above 4G Decoding that is switched off, a firmware that does not place what was \
        hot-plugged, and bridges with windows that are too small are the usual reasons. In a virtual \
        machine the hypervisor sets the window, which is a fault of its own.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::NvmlFails,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.rm-init-failed", "module.not-loaded", "pci.no-gpu"],
    look_alikes: &[
        LookAlike {
            id: "platform.guest-mmio-window",
            tell: "this is a guest: its hypervisor sets the window",
        },
        LookAlike {
            id: "module.not-loaded",
            tell: "the module was never loaded; here it was, and it refused the GPU",
        },
        LookAlike {
            id: "pci.fell-off-bus",
            tell: "the windows have addresses, and behind them everything reads as all ones",
        },
    ],
    references: &[
        "https://github.com/h8d13/archinstoo/pull/244",
        "https://docs.kernel.org/admin-guide/kernel-parameters.html",
        "kernel-open/nvidia/nv-pci.c (nv_pci_probe)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let bars = Bars::of(facts);
    if let Some((statement, origin)) = &bars.zero_line {
        weighing.confirms(statement.clone(), origin);
    }
    if let Some(origin) = &bars.refused {
        weighing.supports(Strong, bars::REFUSED, origin);
    }
    if let Some((statement, origin)) = &bars.listed {
        weighing.supports(Strong, statement.clone(), origin);
    }
    if weighing.support.is_empty() && bars.no_space.is_none() {
        if let Some(origin) = gpu_state::registers_all_placed(facts) {
            weighing.rules_out("every window of the GPUs has an address", &origin);
        }
        return weighing;
    }
    if let Some(origin) = &bars.no_space {
        weighing.supports(Moderate, bars::NO_SPACE, origin);
    }
    if let Some(origin) = &bars.placed {
        weighing.objects(Strong, bars::PLACED, origin);
    }
    if let Some(told) = gpu_state::hypervisor(facts) {
        let statement = format!("this is a guest of {}, which sets the window", told.value);
        weighing.objects(Strong, statement, &told.origin);
    } else if !facts.host.hypervisor.is_seen() {
        weighing.needs(Need::Hypervisor);
    }
    triple(facts, &mut weighing);
    if !facts.log.read.is_seen() {
        weighing.needs(Need::KernelLog);
    }
    weighing
}

/// RM_INIT_REG_SETUP_FAILED.
fn triple(facts: &Facts, weighing: &mut Weighing) {
    let failed = facts.log.with("RMINIT_FAILED").find(|event| event.get("code") == Some("0x10"));
    if let Some(event) = failed {
        weighing.supports(Weak, "RmInitAdapter could not map the registers", &event.origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let place = machine::kernel_place(facts);
    Remedy::new(Impact::Reboots, "the whole machine, for a restart")
        .step_to(
            Place::Machine,
            "firmware setup: switch on Above 4G Decoding (and Resizable BAR), switch off CSM; update the firmware",
            "the firmware then places windows where there is room for them",
        )
        .step_to(
            place,
            add_parameter(facts),
            "the kernel places anew what the firmware left out",
        )
        .step_to(place, "reboot", "windows are placed at boot")
        .undo("take pci=realloc=on out of the kernel command line again")
        .verify("dmesg has no 'BAR … is 0M @ 0x0', and lspci -vs of the GPU shows a Region 1 with an address")
        .will_not_help("another driver branch or flavour: the check comes before any code for a particular GPU")
        .will_not_help("blacklisting nouveau or reinstalling the module")
}

fn add_parameter(facts: &Facts) -> &'static str {
    match machine::distribution(facts) {
        Distribution::Fedora | Distribution::Rhel => {
            "grubby --update-kernel=ALL --args=pci=realloc=on"
        }
        Distribution::Arch => {
            "add pci=realloc=on to GRUB_CMDLINE_LINUX_DEFAULT and run grub-mkconfig -o /boot/grub/grub.cfg (or to the loader's entry)"
        }
        Distribution::Suse => {
            "add pci=realloc=on to GRUB_CMDLINE_LINUX_DEFAULT and run grub2-mkconfig -o /boot/grub2/grub.cfg"
        }
        Distribution::Proxmox => {
            "add pci=realloc=on to GRUB_CMDLINE_LINUX_DEFAULT and run update-grub, or to /etc/kernel/cmdline and run proxmox-boot-tool refresh"
        }
        Distribution::Nixos => "boot.kernelParams = [ \"pci=realloc=on\" ]; and nixos-rebuild boot",
        Distribution::Debian | Distribution::Ubuntu | Distribution::Other => {
            "add pci=realloc=on to GRUB_CMDLINE_LINUX_DEFAULT and run update-grub"
        }
    }
}
