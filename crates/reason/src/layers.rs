//! One line a layer: what the terminal shows first.

use facts::model::host::ContainerKind;
use facts::{Facts, Layer, Observed, Why};

use crate::diagnose::Finding;
use crate::readings;
use crate::symptom::{Symptom, SymptomId};
use crate::weigh::Verdict;
use crate::xid_burst;

mod cuda;
mod driver;
mod files;
mod hardware;

/// How a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerStatus {
    /// It was looked at and is as it should be.
    Ok,
    /// A symptom or a likely cause lies here.
    Fault,
    /// It could not be looked at.
    Unknown,
    /// A fault in a layer beneath keeps it from being judged.
    Blocked,
    /// It does not exist on this machine.
    NotApplicable,
}

impl LayerStatus {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LayerStatus::Ok => "ok",
            LayerStatus::Fault => "fault",
            LayerStatus::Unknown => "unknown",
            LayerStatus::Blocked => "blocked",
            LayerStatus::NotApplicable => "not-applicable",
        }
    }
}

/// A layer's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerLine {
    /// The layer.
    pub layer: Layer,
    /// Its status.
    pub status: LayerStatus,
    /// One line on it.
    pub summary: String,
}

/// The lines, bottom to top: what each layer looks like, and where the symptoms and the likely
/// causes lie.
pub fn layer_lines(facts: &Facts, symptoms: &[Symptom], findings: &[Finding]) -> Vec<LayerLine> {
    if nothing_here(facts, symptoms) {
        return vec![hardware::pci(facts).of(Layer::Pci)];
    }
    let mut lines: Vec<LayerLine> = Vec::new();
    for layer in Layer::ALL {
        let lower_fault = lines.iter().find(|line| line.status == LayerStatus::Fault);
        let seen = observe(layer, facts);
        let line = match (fault(layer, facts, symptoms, findings), seen) {
            // The layer's own words where they tell the fault, else what was found.
            (Some(_), Some(line)) if line.status == LayerStatus::Fault => Some(line),
            (Some(said), _) => Some(Line::fault(said)),
            (None, Some(line)) => Some(line),
            (None, None) => of_a_program(layer, symptoms),
        };
        let blocked = lower_fault.filter(|_| layer == Layer::Framework);
        match (line, blocked) {
            (Some(line), Some(lower)) if line.status != LayerStatus::Fault => {
                lines.push(Line::blocked(lower.layer).of(layer));
            }
            (Some(line), _) => lines.push(line.of(layer)),
            (None, _) => {}
        }
    }
    lines
}

/// No GPU, nothing that wants one, and no symptom: then one line is enough.
fn nothing_here(facts: &Facts, symptoms: &[Symptom]) -> bool {
    symptoms.is_empty()
        && facts.pci.gpus().next().is_none()
        && facts.module.version().is_none()
        && facts.nvml.gpus.is_empty()
        && facts.cuda.trials.is_empty()
        && !facts.library.cuda.is_seen()
}

/// What the facts say of a layer.
fn observe(layer: Layer, facts: &Facts) -> Option<Line> {
    match layer {
        Layer::Pci => Some(hardware::pci(facts)),
        Layer::Module => Some(driver::module(facts)),
        Layer::Uvm => driver::uvm(facts),
        Layer::Firmware => Some(files::firmware(facts)),
        Layer::Node => Some(files::node(facts)),
        Layer::Sandbox => sandbox(facts),
        Layer::Library => Some(files::library(facts)),
        Layer::Nvml => Some(driver::nvml(facts)),
        Layer::Fabric => hardware::fabric(facts),
        Layer::Cuda => Some(cuda::cuda(facts)),
        Layer::Framework => cuda::framework(facts),
        Layer::Gpu
        | Layer::Platform
        | Layer::Kernel
        | Layer::Process
        | Layer::Share
        | Layer::P2p => None,
    }
}

/// What is wrong in a layer: the symptom that shows there, or the claim of a cause that lies there
/// and is at least likely. A cause in nvidia_uvm shows in CUDA, and its module's line tells the rest.
fn fault(
    layer: Layer,
    facts: &Facts,
    symptoms: &[Symptom],
    findings: &[Finding],
) -> Option<String> {
    let likely =
        |finding: &&Finding| finding.cause.layer == layer && finding.verdict >= Verdict::Likely;
    let here = |symptom: &&Symptom| shows_in(symptom.id, facts) == layer;
    let symptom = symptoms.iter().find(|symptom| here(symptom) && !is_of_a_program(symptom));
    let cause = findings.iter().find(likely).filter(|_| layer != Layer::Uvm);
    cause.map(|finding| finding.cause.claim.to_owned()).or_else(|| Some(symptom?.summary.clone()))
}

/// An Xid by which the driver reports what a program did wrong. It may be a sign of the GPU, and by
/// itself is none.
fn is_of_a_program(symptom: &Symptom) -> bool {
    let number = symptom.code.and_then(|code| u32::try_from(code).ok());
    symptom.id == SymptomId::GpuFaulted && number.is_some_and(xid_burst::is_application)
}

fn of_a_program(layer: Layer, symptoms: &[Symptom]) -> Option<Line> {
    let symptom = symptoms.iter().find(|symptom| is_of_a_program(symptom))?;
    let summary = format!("{}, as of a program's own fault", symptom.summary);
    (layer == Layer::Gpu).then(|| Line::unknown(summary))
}

/// The layer in which a symptom is met.
fn shows_in(symptom: SymptomId, facts: &Facts) -> Layer {
    match symptom {
        SymptomId::CudaInitFails
        | SymptomId::CudaInitHangs
        | SymptomId::CudaInitCrashes
        | SymptomId::CudaInitSlow
        | SymptomId::CudaContextFails => Layer::Cuda,
        SymptomId::NvmlFails | SymptomId::NvmlHangs => Layer::Nvml,
        SymptomId::DriverAbsent if readings::module_loaded(facts).is_some() => Layer::Library,
        SymptomId::DriverAbsent => Layer::Module,
        SymptomId::GpuMissing if facts.nvml.count.is_seen() => Layer::Nvml,
        SymptomId::GpuMissing => Layer::Pci,
        SymptomId::GpuFaulted => Layer::Gpu,
        SymptomId::ContainerRefused => Layer::Sandbox,
        SymptomId::P2pAbsent | SymptomId::P2pBroken => Layer::P2p,
        SymptomId::FrameworkNoGpu | SymptomId::FrameworkNoCode => Layer::Framework,
    }
}

/// A layer's line before it knows its layer.
struct Line {
    status: LayerStatus,
    summary: String,
}

impl Line {
    fn ok(summary: impl Into<String>) -> Line {
        Line { status: LayerStatus::Ok, summary: summary.into() }
    }

    fn fault(summary: impl Into<String>) -> Line {
        Line { status: LayerStatus::Fault, summary: summary.into() }
    }

    fn unknown(summary: impl Into<String>) -> Line {
        Line { status: LayerStatus::Unknown, summary: summary.into() }
    }

    fn not_applicable(summary: impl Into<String>) -> Line {
        Line { status: LayerStatus::NotApplicable, summary: summary.into() }
    }

    fn blocked(by: Layer) -> Line {
        Line { status: LayerStatus::Blocked, summary: format!("by {by}") }
    }

    fn of(self, layer: Layer) -> LayerLine {
        LayerLine { layer, status: self.status, summary: self.summary }
    }
}

/// Why nothing was seen, after the name of the thing.
fn not_seen<T>(what: &str, observed: &Observed<T>) -> String {
    match observed {
        Observed::Denied(errno, _) => format!("{what}: reading it was refused ({errno})"),
        Observed::Unknown(Why::TimedOut(_)) => format!("{what}: reading it did not end in time"),
        Observed::Unknown(Why::Unparsed(_)) => format!("{what}: not understood"),
        Observed::Unknown(Why::NotTried) => format!("{what}: nobody looked"),
        Observed::Unknown(Why::NotInInput) | Observed::Seen(_) | Observed::Absent(_) => {
            format!("{what}: not in this input")
        }
    }
}

/// The container around the process, where there is one.
fn sandbox(facts: &Facts) -> Option<Line> {
    let kind = facts.host.container.value().filter(|kind| **kind != ContainerKind::None)?;
    let filter = match facts.sandbox.seccomp.value() {
        Some(2) => ", with a seccomp filter",
        Some(_) | None => "",
    };
    Some(Line::ok(format!("{}{filter}", kind.name())))
}

#[cfg(test)]
mod tests {
    use facts::raw::{ItemName, RawItem, RawSet};

    use super::*;
    use crate::diagnose;

    fn gpu_line(log: &str) -> LayerLine {
        let item = RawItem::new(ItemName::Text("dmesg.txt".to_owned()), log.as_bytes());
        let facts = facts::extract(&RawSet::from_iter([item]));
        let lines = diagnose::diagnose(&facts).layers;
        lines.into_iter().find(|line| line.layer == Layer::Gpu).expect("a line of the GPU")
    }

    #[test]
    fn what_a_program_did_is_no_fault_of_the_gpu() {
        let xid = |number: u32| {
            format!("[   12.1] NVRM: Xid (PCI:0000:01:00): {number}, pid=2551, name=python3\n")
        };
        assert_eq!(gpu_line(&xid(31)).status, LayerStatus::Unknown);
        assert_eq!(gpu_line(&xid(48)).status, LayerStatus::Fault);
    }
}
