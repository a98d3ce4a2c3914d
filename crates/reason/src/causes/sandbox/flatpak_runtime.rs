//! `sandbox.flatpak-runtime`

use facts::version::DriverVersion;
use facts::{Facts, Layer, Origin, Seen};

use crate::cause::{Cause, LookAlike};
use crate::engine;
use crate::evidence::Strength::{Moderate, Strong, Weak};
use crate::need::Need;
use crate::readings::{self, code};
use crate::remedy::{Impact, Place, Remedy};
use crate::symptom::SymptomId;
use crate::weigh::Weighing;

pub(in crate::causes) static CAUSE: Cause = Cause {
    id: "sandbox.flatpak-runtime",
    layer: Layer::Sandbox,
    claim: "Flatpak's runtime brings driver libraries of another release than the loaded module",
    explanation: "Programs under Flatpak do not see the host's libraries. The driver's user half \
        comes as an extension of the runtime, org.freedesktop.Platform.GL.nvidia-VERSION, and its \
        version must be the module's. After an upgrade of the host's driver the extension stays \
        behind until flatpak update, and until then only programs under Flatpak lose the GPU.",
    explains: &[
        SymptomId::NvmlFails,
        SymptomId::CudaInitFails,
        SymptomId::DriverAbsent,
        SymptomId::GpuMissing,
        SymptomId::FrameworkNoGpu,
    ],
    specializes: &["module.version-skew", "library.missing", "library.bundled-driver"],
    look_alikes: &[
        LookAlike {
            id: "module.version-skew",
            tell: "native programs fail as well: the host's own libraries are not the module's",
        },
        LookAlike {
            id: "library.bundled-driver",
            tell: "an image or program ships the libraries itself, without Flatpak's extension",
        },
    ],
    references: &[
        "https://github.com/ublue-os/bazzite/issues/4842",
        "https://github.com/Jeffser/Alpaca/issues/776",
        "https://docs.flatpak.org/en/latest/extension.html",
    ],
    weigh,
    remedy,
};

fn weigh(facts: &Facts) -> Weighing {
    let mut weighing = Weighing::new();
    let installed = &facts.sandbox.engine.flatpak;
    let told = facts.sandbox.engine.flatpak_only.first();
    let driver = module_version(facts);
    if let Some(first) = installed.first() {
        let Some(driver) = &driver else {
            weighing.needs(Need::ModuleVersion);
            return weighing;
        };
        // Flatpak mounts the extension whose name has the very version of the module.
        if let Some(same) = installed.iter().find(|seen| seen.value == driver.value) {
            let statement = format!("Flatpak's extension is {} like the module", same.value);
            weighing.rules_out(statement, &same.origin);
            return weighing;
        }
        differs(facts, first, driver, &mut weighing);
    }
    if let Some(seen) = told {
        weighing.supports(
            Moderate,
            "programs under Flatpak fail, others do not, or since the driver was updated",
            &seen.origin,
        );
        if installed.is_empty() {
            weighing.needs(Need::FlatpakExtensions);
        }
    }
    if weighing.support.is_empty() {
        return weighing;
    }
    if let Some(origin) = engine::cured_by(facts, &["flatpak update"]) {
        weighing.supports(Strong, "flatpak update cures it", origin);
    }
    if let Some(origin) = mismatch(facts) {
        weighing.supports(Moderate, "the failing program speaks of a version mismatch", &origin);
    }
    weighing
}

/// The module's version. nvidia-smi inside the sandbox would tell the same.
fn module_version(facts: &Facts) -> Option<Seen<DriverVersion>> {
    readings::driver_version(facts)
}

fn differs(
    facts: &Facts,
    first: &Seen<DriverVersion>,
    driver: &Seen<DriverVersion>,
    weighing: &mut Weighing,
) {
    let versions: Vec<String> =
        facts.sandbox.engine.flatpak.iter().map(|seen| seen.value.to_string()).collect();
    let statement = format!(
        "Flatpak has the extension of {}, and the module is {}",
        versions.join(", "),
        driver.value
    );
    let failing = mismatch(facts).is_some() || readings::init_failure(facts).is_some();
    if failing || !facts.sandbox.engine.flatpak_only.is_empty() {
        weighing.confirms(statement, &first.origin);
    } else {
        weighing.supports(Strong, statement, &first.origin);
    }
    weighing.supports(Weak, format!("the driver is {}", driver.value), &driver.origin);
}

fn mismatch(facts: &Facts) -> Option<Origin> {
    readings::nvml_failed_with(facts, code::NVML_VERSION_MISMATCH).or_else(|| {
        let trial = readings::init_failed_with(facts, code::DRIVER_MISMATCH)?;
        Some(trial.origin.clone())
    })
}

fn remedy(facts: &Facts) -> Remedy {
    let version = module_version(facts)
        .map_or("VERSION-WITH-DASHES".to_owned(), |seen| seen.value.to_string().replace('.', "-"));
    Remedy::new(Impact::RestartsProcess, "the programs under Flatpak")
        .step_to(
            Place::Here,
            "flatpak update",
            "with the user's and the system's installation alike",
        )
        .step_to(
            Place::Here,
            format!("flatpak install org.freedesktop.Platform.GL.nvidia-{version}"),
            "where the update brings it not",
        )
        .step_to(
            Place::Here,
            "reboot",
            "when the host's driver was upgraded and the old module still runs",
        )
        .undo("flatpak uninstall the extension again")
        .verify(
            "flatpak list --runtime | grep nvidia shows the version of /proc/driver/nvidia/version",
        )
        .will_not_help("reinstalling the host's driver: native programs work with it")
        .will_not_help("reinstalling the program: the libraries come with the runtime's extension")
}
