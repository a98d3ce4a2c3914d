//! Causes in the GSP firmware, and what they share.

use facts::model::firmware::GspFile;
use facts::{Facts, Observed, Origin, Seen};
use nvabi::chip::{self, Chip};

use crate::machine;
use crate::readings::{self, code};

pub(super) mod gsp_lacks_chip;
pub(super) mod gsp_missing;
pub(super) mod gsp_timeout;
pub(super) mod gsp_version_skew;

/// Where it was seen that GSP firmware runs on every GPU that says anything of it, and its version
/// there. `None` when one says that none runs, and when nothing is known.
fn running(facts: &Facts) -> Option<(String, Origin)> {
    let first = facts.firmware.running.first()?;
    let everywhere = facts.firmware.not_running.is_empty();
    everywhere.then(|| (first.value.to_string(), first.origin.clone()))
}

/// The chips of the GPUs at hand.
fn chips(facts: &Facts) -> Vec<Seen<Chip>> {
    readings::chips(facts)
        .into_iter()
        .filter_map(|product| Some(Seen::new(chip::by_name(product.value.chip?)?, product.origin)))
        .collect()
}

/// The name of the file that the driver asks for on behalf of this chip. Each release of a branch
/// asks for the same one.
fn file_name(facts: &Facts, chip: &Chip) -> Option<&'static str> {
    let family = chip.gsp_family?;
    let branch = readings::driver_version(facts).map(|version| version.value.branch());
    match branch {
        Some(branch) if branch < FILES_SETTLED => {
            nvabi::gsp_firmware::file_for(branch, family).map(|firmware| firmware.file)
        }
        _ => chip.gsp_file,
    }
}

/// From this branch on a chip's firmware has kept its file.
const FILES_SETTLED: u32 = 535;

/// The files that the loaded module could take: those in the folder of its version or with its
/// version inside. When its version is not known, every file.
fn files_for_module(facts: &Facts) -> Vec<&GspFile> {
    let wanted = readings::driver_version(facts);
    let files = facts.firmware.files.value().into_iter().flatten();
    files
        .filter(|file| match &wanted {
            Some(wanted) => belongs_to(file, &wanted.value.to_string()),
            None => true,
        })
        .collect()
}

fn belongs_to(file: &GspFile, version: &str) -> bool {
    let inside = file.version.as_ref().is_some_and(|found| found.to_string() == version);
    inside || file.path.contains(&format!("/{version}/"))
}

/// The last part of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether what the input says of firmware files holds for the kernel that would load them: a
/// container has a file system of its own, and the kernel reads the host's.
fn files_are_the_kernels(facts: &Facts) -> bool {
    !machine::in_container(facts)
}

/// Where it was seen that no GPU came up: the kernel log, an empty list, or a node that gives EIO.
fn gpu_did_not_start(facts: &Facts) -> Option<Origin> {
    if let Some(origin) = readings::logged(facts, &["RMINIT_FAILED", "RM_INIT_ADAPTER"]) {
        return Some(origin.clone());
    }
    if let Observed::Seen(Seen { value: 0, origin }) = &facts.nvml.count {
        return Some(origin.clone());
    }
    facts.firmware.not_running.first().cloned()
}

/// True when cuInit fails with a code that comes from above or before the GPU's start, so that its
/// firmware is not in question: libraries (34, 803, 804), the fabric (802), memory (2) and calls of
/// the operating system (304).
fn fails_elsewhere(facts: &Facts) -> bool {
    const CODES: [i64; 6] = [
        code::OUT_OF_MEMORY,
        code::STUB_LIBRARY,
        code::OPERATING_SYSTEM,
        code::SYSTEM_NOT_READY,
        code::DRIVER_MISMATCH,
        code::COMPAT_NOT_SUPPORTED,
    ];
    let above = readings::init_failure(facts).is_some_and(|(number, _)| CODES.contains(&number));
    above && gpu_did_not_start(facts).is_none()
}
