//! `sandbox.bpf-old-kernel`

use facts::model::engine::{EngineFault, ProgramStep};
use facts::{Errno, Facts, Layer, Seen};

use super::rootless_bpf;
use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong};
use crate::need::Need;
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.bpf-old-kernel",
    layer: Layer::Sandbox,
    claim: "the kernel is too old for the toolkit's device rules",
    explanation: "Under cgroup v2 the hook replaces the container's device program by one that also \
        lets the GPUs through. The first versions of it used BPF_F_REPLACE, which kernels have \
        since 5.6; an older one answers 'invalid argument'. A kernel that was built without \
        CONFIG_CGROUP_BPF answers the same to the query before. It is no question of rights, so \
        running as root or privileged changes nothing.",
    explains: &[SymptomId::ContainerRefused],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "sandbox.rootless-bpf",
            tell: "the kernel answers 'operation not permitted'",
        },
        LookAlike {
            id: "sandbox.cgroup-denies",
            tell: "the container starts, and its nodes answer EPERM",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/libnvidia-container/issues/151",
        "https://man7.org/linux/man-pages/man2/bpf.2.html",
        "https://docs.kernel.org/admin-guide/cgroup-v2.html#device-controller",
    ],
    weigh,
    remedy,
};

/// The first kernel with BPF_F_REPLACE for programs of cgroups (include/uapi/linux/bpf.h).
const HAS_REPLACE: (u32, u32) = (5, 6);

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let Some(seen) = rejected(facts) else {
        refused(facts, &mut weighing);
        return weighing;
    };
    let step = seen.value;
    let statement =
        format!("the kernel answers 'invalid argument' to {}", rootless_bpf::name(step));
    match facts.host.kernel.as_seen() {
        Some(kernel) if !kernel.value.at_least(HAS_REPLACE.0, HAS_REPLACE.1) => {
            weighing.supports(Strong, statement, &seen.origin);
            let statement =
                format!("kernel {} is older than 5.6 and has no BPF_F_REPLACE", kernel.value);
            if step == ProgramStep::Attach {
                weighing.confirms(statement, &kernel.origin);
            } else {
                weighing.supports(Moderate, statement, &kernel.origin);
            }
        }
        Some(kernel) => {
            weighing.supports(Moderate, statement, &seen.origin);
            let statement = format!("kernel {} has BPF_F_REPLACE", kernel.value);
            weighing.objects(Strong, statement, &kernel.origin);
        }
        None => {
            let strength = if step == ProgramStep::Attach { Strong } else { Moderate };
            weighing.supports(strength, statement, &seen.origin);
            weighing.needs(Need::KernelLog);
        }
    }
    let config = facts.host.config("CGROUP_BPF");
    if let Some(config) = config.as_seen().filter(|config| !config.value.is_on()) {
        weighing.supports(Strong, "the kernel is built without CONFIG_CGROUP_BPF", &config.origin);
    }
    weighing
}

fn rejected(facts: &Facts) -> Option<Seen<ProgramStep>> {
    engine::fault(facts, |fault| match fault {
        EngineFault::DeviceProgram(step, errno)
            if matches!(*errno, Errno::EINVAL | Errno::ENOSYS) =>
        {
            Some(*step)
        }
        _ => None,
    })
}

fn refused(facts: &Facts, weighing: &mut Weighing) {
    let other = engine::fault(facts, |fault| match fault {
        EngineFault::DeviceProgram(_, errno) => Some(*errno),
        _ => None,
    });
    if let Some(seen) = other {
        let statement =
            format!("the kernel answers {}, and an old one 'invalid argument'", seen.value);
        weighing.rules_out(statement, &seen.origin);
    }
}

fn remedy(_: &Facts) -> Remedy {
    Remedy::new(Impact::RestartsService, "the engine's containers")
        .step_to(
            Place::Host,
            "apt-get install --only-upgrade nvidia-container-toolkit libnvidia-container1 libnvidia-container-tools",
            "1.8.1 and later do without BPF_F_REPLACE; dnf upgrade on RHEL and its kin",
        )
        .step_to(Place::Host, "systemctl restart docker", "or containerd, or the engine in question")
        .step_to(
            Place::Host,
            "boot a kernel of 5.6 or later, or with systemd.unified_cgroup_hierarchy=0 in its command line",
            "where the toolkit must stay as it is; this one reboots",
        )
        .undo("install the former version of the packages")
        .verify("the container starts, and nvidia-smi -L inside lists the GPUs")
        .will_not_help("--privileged or root: the kernel does not know the call, it does not refuse it")
        .will_not_help("another driver: the hook fails before it is asked")
}
