//! Messages that the driver writes over several lines become one.

use super::ParsedLine;
use super::scanner;
use crate::model::pci::PciAddress;

/// How many lines may lie between the first line of a message and its last; lines of other
/// processors get between them.
const REACH: u32 = 4;

/// Carries what an earlier line told to the lines that belong to it.
#[derive(Default)]
pub(super) struct Joiner {
    /// Index and line of the head of an API mismatch.
    mismatch: Option<(usize, u32)>,
    /// `NVRM: The NVIDIA GPU 0000:81:00.0 (PCI ID: 10de:2bb5)`: its line, the device, the id.
    device: Option<(u32, PciAddress)>,
    pci_id: Option<(u32, String)>,
    /// Index and line of the head of a refusal whose version or branch stands in a later line.
    refusal: Option<(usize, u32)>,
}

impl Joiner {
    /// Takes in the next line, and enters in it and in `earlier` what belongs together:
    /// `client_version` and `kernel_version` in the first line of an API mismatch, the device and
    /// `pci_id` in the verdict on a GPU that the line before names, `version` and `branch` in the
    /// first line of a refusal.
    pub(super) fn join(&mut self, line: &mut ParsedLine, earlier: &mut [ParsedLine]) {
        self.note_device(line);
        for found in &mut line.matches {
            match found.signature.id {
                "NVRM_API_MISMATCH" => self.mismatch = Some((earlier.len(), line.number)),
                "NVRM_API_MISMATCH_OLD" => {
                    self.mismatch = Some((earlier.len(), line.number));
                    if let Some(client) = found.captures.get("client").cloned() {
                        found.captures.insert("client_version", client);
                    }
                }
                "UNSUPPORTED_GPU" | "LEGACY_GPU" => {
                    self.refusal = Some((earlier.len(), line.number));
                }
                _ => {}
            }
        }
        self.enter_versions(line, earlier);
        self.enter_release(line, earlier);
        if line.matches.is_empty() {
            return;
        }
        let near = |at: u32| line.number.saturating_sub(at) <= REACH;
        if line.device.is_none() {
            line.device = self.device.filter(|(at, _)| near(*at)).map(|(_, device)| device);
        }
        if let Some((_, id)) = self.pci_id.as_ref().filter(|(at, _)| near(*at)) {
            for found in line.matches.iter_mut().filter(|found| is_verdict(found.signature.id)) {
                found.captures.insert("pci_id", id.clone());
            }
        }
    }

    fn note_device(&mut self, line: &ParsedLine) {
        if line.text.starts_with("NVRM: The NVIDIA GPU ") {
            self.device = scanner::first_address(&line.text).map(|device| (line.number, device));
            self.pci_id = None;
        }
        if let Some((_, rest)) = line.text.split_once("(PCI ID: ") {
            let id = rest.split(')').next().unwrap_or("").to_owned();
            self.pci_id = Some((line.number, id));
        }
    }

    /// Enters the driver's version and the branch for the GPU into the head of a refusal.
    fn enter_release(&self, line: &ParsedLine, earlier: &mut [ParsedLine]) {
        let parts = ["UNSUPPORTED_RELEASE", "LEGACY_BRANCH", "LEGACY_RELEASE"];
        let head = self.refusal.filter(|(_, at)| line.number.saturating_sub(*at) <= REACH);
        let Some(head) = head.and_then(|(index, _)| earlier.get_mut(index)) else { return };
        let Some(head) = head.matches.iter_mut().find(|found| is_verdict(found.signature.id))
        else {
            return;
        };
        for found in line.matches.iter().filter(|found| parts.contains(&found.signature.id)) {
            for (group, value) in &found.captures {
                head.captures.entry(group).or_insert_with(|| value.clone());
            }
        }
    }

    /// Enters the versions of a following line into the head of an API mismatch.
    fn enter_versions(&self, line: &ParsedLine, earlier: &mut [ParsedLine]) {
        let Some((index, at)) = self.mismatch else {
            return;
        };
        if line.number.saturating_sub(at) > REACH {
            return;
        }
        let Some(head) = earlier.get_mut(index).and_then(|head| {
            head.matches
                .iter_mut()
                .find(|found| found.signature.id.starts_with("NVRM_API_MISMATCH"))
        }) else {
            return;
        };
        for found in &line.matches {
            for (group, value) in &found.captures {
                let key = match (found.signature.id, *group) {
                    ("NVRM_API_MISMATCH_VERS" | "API_MISMATCH_TAIL", "client") => "client_version",
                    (_, "module" | "module2" | "kernel") => "kernel_version",
                    _ => continue,
                };
                let version = value.trim_end_matches(['.', ',']).to_owned();
                head.captures.entry(key).or_insert(version);
            }
        }
    }
}

/// Second lines of a message about the GPU that the first line names.
fn is_verdict(id: &str) -> bool {
    matches!(
        id,
        "NEED_OPEN_MODULES"
            | "OPEN_NO_GSP"
            | "UNSUPPORTED_GPU"
            | "LEGACY_GPU"
            | "FALLEN_BUS_INIT"
            | "OPEN_UNSUPPORTED_OLD"
    )
}
