//! `sandbox.gvisor-unsupported`

use facts::model::engine::EngineFault;
use facts::model::host::ContainerKind;
use facts::{Facts, Layer};

use super::container;
use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings;
use crate::remedy::{Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.gvisor-unsupported",
    layer: Layer::Sandbox,
    claim: "gVisor's proxy does not know this driver version or call",
    explanation: "gVisor lets no ioctl through that it does not know: nvproxy has a table for each \
        driver version, taken from the driver's own interface. An exact version that is not in it \
        keeps the sandbox from starting, and all the engine shows is 'waiting for sandbox to start: \
        EOF'; the reason stands in runsc's debug log alone. That the branch is known is not enough. \
        A call that the table lacks fails inside a running sandbox.",
    explains: &[
        SymptomId::ContainerRefused,
        SymptomId::CudaInitFails,
        SymptomId::CudaContextFails,
        SymptomId::NvmlFails,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &[],
    look_alikes: &[
        LookAlike {
            id: "sandbox.seccomp",
            tell: "an ordinary container: the kernel is the host's and not 4.4.0",
        },
        LookAlike {
            id: "module.version-skew",
            tell: "NVML says 'version mismatch', and the versions on both sides differ",
        },
        LookAlike {
            id: "sandbox.gpu-not-requested",
            tell: "the sandbox starts without nvproxy and has no nodes",
        },
    ],
    references: &[
        "https://github.com/google/gvisor/issues/12773",
        "https://github.com/google/gvisor/issues/10605",
        "https://github.com/ray-project/ray/issues/66161",
        "https://gvisor.dev/docs/user_guide/gpu/",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let listed = listed(facts, &mut weighing);
    for seen in &facts.sandbox.engine.faults {
        match &seen.value {
            EngineFault::GvisorVersion(Some(version)) => {
                let statement = format!("nvproxy does not support driver {version}");
                weighing.confirms(statement, &seen.origin);
            }
            EngineFault::GvisorVersion(None) => {
                let statement = "the sandbox ended while it was starting (EOF)";
                weighing.supports(Strong, statement, &seen.origin);
                if !listed {
                    weighing.needs(Need::GvisorVersions);
                }
            }
            EngineFault::GvisorCall(said) => {
                weighing.supports(Strong, format!("nvproxy: {said}"), &seen.origin);
                if let Some(trial) = facts.cuda.plain().find(|trial| !trial.ok()) {
                    let statement = "a CUDA call fails there";
                    weighing.supports(Moderate, statement, &trial.origin);
                }
            }
            _ => {}
        }
    }
    let inside = container(facts).filter(|kind| kind.value == ContainerKind::Gvisor);
    if !weighing.support.is_empty()
        && let Some(kind) = inside
    {
        weighing.supports(Moderate, "the process is in a gVisor sandbox", &kind.origin);
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    if let Some(driver) = readings::driver_version(facts) {
        let statement = format!("the host's driver is {}", driver.value);
        weighing.supports(Weak, statement, &driver.origin);
    }
    if let Some(seen) = engine::setting(facts, "nvproxy").filter(|seen| seen.value == "false") {
        weighing.objects(Moderate, "nvproxy is off", &seen.origin);
    }
    weighing
}

/// The driver's version against the list of those that this gVisor knows. True when it was listed.
fn listed(facts: &Facts, weighing: &mut Weighing) -> bool {
    let Some(known) = facts.sandbox.engine.gvisor_supports.as_seen() else { return false };
    let Some(driver) = readings::driver_version(facts) else { return false };
    if known.value.contains(&driver.value) {
        let statement = format!("driver {} is among those that this gVisor knows", driver.value);
        weighing.rules_out(statement, &known.origin);
    } else {
        let statement =
            format!("driver {} is not among those that this gVisor knows", driver.value);
        weighing.supports(Strong, statement, &known.origin);
    }
    true
}

fn remedy(_: &Facts) -> Remedy {
    super::recreate()
        .step_to(
            Place::Host,
            "runsc nvproxy list-supported-drivers",
            "the exact versions that this runsc knows",
        )
        .step_to(
            Place::Host,
            "install a newer runsc, or one of the listed drivers",
            "a driver reloads a module and stops every GPU program; a newer runsc does not",
        )
        .step_to(
            Place::Engine,
            "runsc --nvproxy=true --nvproxy-allow-unsupported-driver …",
            "treats an unknown driver as the nearest known one; --nvproxy-driver-version=VERSION names it",
        )
        .undo("take the flag out again")
        .verify("the sandbox starts, and nvidia-smi -L inside lists the GPUs")
        .will_not_help("a driver of the same branch: the exact version must be in the table")
        .will_not_help("options of the engine or image: the sandbox ends before either is used")
}
