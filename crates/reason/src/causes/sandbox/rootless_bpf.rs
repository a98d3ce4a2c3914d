//! `sandbox.rootless-bpf`

use facts::model::engine::{EngineFault, ProgramStep};
use facts::{Errno, Facts, Layer};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.rootless-bpf",
    layer: Layer::Sandbox,
    claim: "a rootless or nested engine may not install device rules",
    explanation: "NVIDIA's hook adds the GPUs to the container's device policy by itself: under \
        cgroup v2 it queries and replaces a BPF program, under cgroup v1 it writes devices.allow. \
        Both need rights over the cgroup that an engine without root, or one inside an \
        unprivileged container, does not have, and the hook gives up. Such an engine needs no \
        rules, since no policy of its own stands in the way.",
    explains: &[SymptomId::ContainerRefused],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "sandbox.bpf-old-kernel",
            tell: "the kernel answers 'invalid argument' and not 'operation not permitted'",
        },
        LookAlike {
            id: "sandbox.seccomp",
            tell: "the container starts, and a call inside it is refused",
        },
        LookAlike {
            id: "sandbox.no-cgroups-set",
            tell: "the container starts, and NVML inside says 'Unknown Error'",
        },
        LookAlike {
            id: "sandbox.userns",
            tell: "the outer container is unprivileged, and its nodes cannot be opened either",
        },
    ],
    references: &[
        "https://github.com/NVIDIA/libnvidia-container/issues/154",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/139",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1487",
        "https://github.com/NVIDIA/nvidia-docker/issues/1546",
        "https://docs.docker.com/engine/security/rootless/",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let refused = |errno: Errno| matches!(errno, Errno::EPERM | Errno::EACCES);
    let program = engine::fault(facts, |fault| match fault {
        EngineFault::DeviceProgram(step, errno) if refused(*errno) => Some((*step, *errno)),
        _ => None,
    });
    let list = engine::fault(facts, |fault| match fault {
        EngineFault::DeviceList(errno) if refused(*errno) => Some(*errno),
        _ => None,
    });
    if let Some(seen) = &program {
        let (step, errno) = seen.value;
        let statement = format!("the kernel refuses {} ({errno})", name(step));
        // The verifier answers EACCES to a program it does not like, which is no lack of rights.
        if step == ProgramStep::Load && errno == Errno::EACCES {
            weighing.supports(Strong, statement, &seen.origin);
        } else {
            weighing.confirms(statement, &seen.origin);
        }
    }
    if let Some(seen) = &list {
        let statement = format!("the hook may not write devices.allow ({})", seen.value);
        weighing.confirms(statement, &seen.origin);
    }
    if weighing.support.is_empty() {
        invalid(facts, &mut weighing);
        return weighing;
    }
    if let Some(origin) = engine::rootless(facts) {
        weighing.supports(Moderate, "the engine runs without root", origin);
    }
    if let Some(origin) = engine::user_namespace(facts) {
        weighing.supports(Weak, "a user namespace is around it", origin);
    }
    if let Some(seen) = engine::setting(facts, "no-cgroups").filter(|seen| seen.value == "true") {
        let statement = "no-cgroups = true is set; the hook does not seem to read that file";
        weighing.objects(Weak, statement, &seen.origin);
    }
    weighing
}

fn invalid(facts: &Facts, weighing: &mut Weighing) {
    let other = engine::fault(facts, |fault| match fault {
        EngineFault::DeviceProgram(_, errno) => Some(*errno),
        _ => None,
    });
    if let Some(seen) = other {
        let statement = format!("the kernel answers {}, and a lack of rights is EPERM", seen.value);
        weighing.rules_out(statement, &seen.origin);
    }
}

/// What the step is for, in words.
pub(super) fn name(step: ProgramStep) -> &'static str {
    match step {
        ProgramStep::Query => "the query of the cgroup's device programs",
        ProgramStep::Load => "loading a device program",
        ProgramStep::Attach => "attaching a device program",
    }
}

fn remedy(facts: &Facts) -> Remedy {
    let rootless = engine::rootless(facts).is_some();
    let config = if rootless {
        "nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place --config-file=$HOME/.config/nvidia-container-runtime/config.toml"
    } else {
        "nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place"
    };
    Remedy::new(Impact::RestartsService, "this engine's containers")
        .step_to(
            Place::Engine,
            config,
            "where this engine runs; in the file that its hook reads, /etc/nvidia-container-runtime/config.toml unless XDG_CONFIG_HOME says otherwise",
        )
        .step_to(
            Place::Engine,
            if rootless { "systemctl --user restart docker" } else { "systemctl restart docker" },
            "or the engine in question",
        )
        .step_to(
            Place::Engine,
            "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, then run with --device nvidia.com/gpu=all",
            "the other way: CDI leaves device rules to the engine",
        )
        .undo("nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place; an engine with root that shares the file needs it false")
        .verify("docker run --rm --gpus all IMAGE nvidia-smi -L lists the GPUs")
        .will_not_help("seccomp=unconfined: no filter is at work, the right to touch the cgroup is lacking")
        .will_not_help("another driver or image: the hook fails before the container exists")
}
