//! `platform.guest-mmio-window`

use facts::{Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::gpu_bars::{self, Bars};
use crate::gpu_state;
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "platform.guest-mmio-window",
    layer: Layer::Platform,
    claim: "the guest's 64-bit window for devices is too small for the GPU's registers (BARs)",
    explanation: "A guest's firmware places the windows of passed-through devices in an address range \
        whose size the hypervisor sets. The window onto a GPU's memory is as large as that memory, \
        rounded up to a power of two, and eight of them need a terabyte; what finds no room is left \
        without an address. The driver in the guest then reports 'BAR1 is 0M @ 0x0' and refuses the \
        GPU, while the same card works on the host. A guest that boots in BIOS mode has no such \
        64-bit range at all.",
    explains: &[
        SymptomId::GpuFaulted,
        SymptomId::GpuMissing,
        SymptomId::NvmlFails,
        SymptomId::DriverAbsent,
        SymptomId::CudaInitFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[
        "pci.bar-unassigned",
        "module.rm-init-failed",
        "module.not-loaded",
        "pci.no-gpu",
    ],
    look_alikes: &[
        LookAlike {
            id: "pci.bar-unassigned",
            tell: "this is no guest: the machine's own firmware or kernel left the window out",
        },
        LookAlike {
            id: "gpu.vbios",
            tell: "the windows have addresses, and the card's own firmware does not finish its boot",
        },
        LookAlike {
            id: "module.needs-open",
            tell: "the windows have addresses, and the driver names its flavour as the reason",
        },
    ],
    references: &[
        "https://docs.nvidia.com/vgpu/latest/grid-vgpu-user-guide/",
        "https://pve.proxmox.com/wiki/PCI_Passthrough",
        "https://knowledge.broadcom.com/external/article/323402",
        "kernel-open/nvidia/nv-pci.c (nv_pci_probe)",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let guest = gpu_state::hypervisor(facts);
    let bars = Bars::of(facts);
    let by_kernel = bars.no_space.as_ref().filter(|_| bars.placed.is_none());
    let told = bars.zero_line.is_some()
        || bars.refused.is_some()
        || bars.listed.is_some()
        || by_kernel.is_some();
    if guest.is_none() && (!told || facts.host.hypervisor.is_seen()) {
        return Weighing::not_applicable();
    }
    let mut weighing = Weighing::new();
    if !told {
        if let Some(origin) = &bars.placed {
            weighing.rules_out("every window of the GPUs has an address", origin);
        }
        return weighing;
    }
    let Some(guest) = guest else {
        weighing.needs(Need::Hypervisor);
        return weighing;
    };
    evidence(&bars, &mut weighing);
    // A reading of the machine says more than a report that speaks of a guest.
    let strength = if facts.host.hypervisor.is_seen() { Moderate } else { Weak };
    weighing.supports(strength, format!("this is a guest of {}", guest.value), &guest.origin);
    if let Some(origin) = &bars.placed {
        weighing.objects(Strong, gpu_bars::PLACED, origin);
    }
    weighing
}

fn evidence(bars: &Bars, weighing: &mut Weighing) {
    let without_address = bars.zero_line.as_ref().or(bars.listed.as_ref());
    match (without_address, &bars.no_space) {
        (Some((statement, origin)), Some(_)) => {
            weighing.confirms(statement.clone(), origin);
        }
        (Some((statement, origin)), None) => {
            weighing.supports(Strong, statement.clone(), origin);
        }
        (None, _) => {}
    }
    if let Some(origin) = &bars.no_space {
        weighing.supports(Strong, gpu_bars::NO_SPACE, origin);
    }
    if let Some(origin) = &bars.refused {
        let strength = if without_address.is_some() { Strong } else { Moderate };
        weighing.supports(strength, gpu_bars::REFUSED, origin);
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let hypervisor = gpu_state::hypervisor(facts).map(|seen| seen.value).unwrap_or_default();
    let remedy = Remedy::new(Impact::Reboots, "this guest, which is stopped and started");
    let remedy = match hypervisor.as_str() {
        "vmware" => on_esxi(remedy),
        "microsoft" => on_hyper_v(remedy),
        _ => on_kvm(remedy),
    };
    remedy
        .step_to(Place::Hypervisor, "stop and start the guest", "a reboot from inside keeps the old window")
        .undo("set the window back to what it was")
        .verify("in the guest, dmesg has no 'BAR … is 0M @ 0x0', and lspci -vs of the GPU shows a Region 1 with an address")
        .will_not_help("another driver in the guest: the check comes before any code for a particular GPU")
        .will_not_help("pci=realloc in the guest, while the window itself is too small")
}

fn on_kvm(remedy: Remedy) -> Remedy {
    remedy
        .step_to(
            Place::Hypervisor,
            "firmware OVMF and machine type q35 for the guest (Proxmox: qm set VMID --bios ovmf --machine q35)",
            "SeaBIOS places nothing above 4 GiB",
        )
        .step_to(
            Place::Hypervisor,
            "qm set VMID --args '-fw_cfg name=opt/ovmf/X-PciMmio64Mb,string=1048576'; in libvirt the same under <qemu:commandline>",
            "the window in MiB: twice the memory of all its GPUs, as a power of two",
        )
        .step_to(
            Place::Hypervisor,
            "qm set VMID --cpu host (libvirt: host-passthrough, with <maxphysaddr mode='passthrough'/>)",
            "a guest's processor with 40 address bits has no room for large windows",
        )
}

fn on_esxi(remedy: Remedy) -> Remedy {
    remedy
        .step_to(
            Place::Hypervisor,
            "boot firmware EFI for the guest, and in its advanced settings pciPassthru.use64bitMMIO = TRUE",
            "a guest in BIOS mode has no 64-bit range",
        )
        .step_to(
            Place::Hypervisor,
            "pciPassthru.64bitMMIOSizeGB = 256 (twice the memory of all its GPUs, as a power of two)",
            "the size of the window",
        )
}

fn on_hyper_v(remedy: Remedy) -> Remedy {
    remedy.step_to(
        Place::Hypervisor,
        "Set-VM -Name NAME -LowMemoryMappedIoSpace 3Gb -HighMemoryMappedIoSpace 512Gb -GuestControlledCacheTypes $true",
        "twice the memory of all its GPUs; the guest must be off",
    )
}
