//! What all formats show, in the user's words: one plain model that the terminal and Markdown
//! print, made from a diagnosis without any decision of its own about causes.

mod experiments;
mod head;
mod machine;
mod ruled_out;

pub use experiments::{ExperimentRow, experiments, result as experiment_result};
pub use head::head;
pub use machine::{Machine, machine};
pub use ruled_out::{RuledOutRow, ruled_out};

use facts::Layer;
use reason::layers::{LayerLine, LayerStatus};
use reason::{Diagnosis, State, Symptom, SymptomId, Verdict};

use crate::Report;

/// One layer's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerRow {
    /// The layer.
    pub layer: Layer,
    /// Its status.
    pub status: LayerStatus,
    /// The status in a word: `ok`, `HANGS`, `FAILS`, `unknown`, `blocked`. A fault stands in
    /// capitals, so that it is seen without color.
    pub word: &'static str,
    /// One line on it.
    pub summary: String,
}

/// The layers that exist on this machine.
pub fn layers(diagnosis: &Diagnosis) -> Vec<LayerRow> {
    let exists = |line: &&LayerLine| line.status != LayerStatus::NotApplicable;
    let row = |line: &LayerLine| LayerRow {
        layer: line.layer,
        status: line.status,
        word: status_word(line, &diagnosis.symptoms),
        summary: line.summary.clone(),
    };
    diagnosis.layers.iter().filter(exists).map(row).collect()
}

fn status_word(line: &LayerLine, symptoms: &[Symptom]) -> &'static str {
    match line.status {
        LayerStatus::Ok => "ok",
        LayerStatus::Unknown => "unknown",
        LayerStatus::Blocked => "blocked",
        LayerStatus::NotApplicable => "none",
        LayerStatus::Fault => {
            let of_layer =
                symptoms.iter().filter(|symptom| symptom_layer(symptom.id) == line.layer);
            of_layer.map(|symptom| symptom_word(symptom.id)).next().unwrap_or("FAULT")
        }
    }
}

/// The layer in which a symptom is met.
fn symptom_layer(symptom: SymptomId) -> Layer {
    match symptom {
        SymptomId::CudaInitFails
        | SymptomId::CudaInitHangs
        | SymptomId::CudaInitCrashes
        | SymptomId::CudaInitSlow
        | SymptomId::CudaContextFails => Layer::Cuda,
        SymptomId::NvmlFails | SymptomId::NvmlHangs => Layer::Nvml,
        SymptomId::DriverAbsent => Layer::Module,
        SymptomId::GpuMissing => Layer::Pci,
        SymptomId::GpuFaulted => Layer::Gpu,
        SymptomId::ContainerRefused => Layer::Sandbox,
        SymptomId::P2pAbsent | SymptomId::P2pBroken => Layer::P2p,
        SymptomId::FrameworkNoGpu | SymptomId::FrameworkNoCode => Layer::Framework,
    }
}

fn symptom_word(symptom: SymptomId) -> &'static str {
    match symptom {
        SymptomId::CudaInitFails | SymptomId::CudaContextFails | SymptomId::NvmlFails => "FAILS",
        SymptomId::CudaInitHangs | SymptomId::NvmlHangs => "HANGS",
        SymptomId::CudaInitCrashes => "CRASHES",
        SymptomId::CudaInitSlow => "SLOW",
        SymptomId::DriverAbsent | SymptomId::GpuMissing | SymptomId::P2pAbsent => "MISSING",
        SymptomId::ContainerRefused => "REFUSED",
        SymptomId::GpuFaulted
        | SymptomId::P2pBroken
        | SymptomId::FrameworkNoGpu
        | SymptomId::FrameworkNoCode => "FAULT",
    }
}

/// The whole verdict in one sentence.
pub fn verdict_sentence(report: &Report<'_>) -> String {
    let diagnosis = report.diagnosis;
    match (diagnosis.state, diagnosis.causes.first()) {
        (State::Healthy, _) => "Healthy: CUDA starts here, and nothing looks wrong.".to_owned(),
        (State::NoGpu, _) => {
            "No GPU: there is no device, driver or library of NVIDIA's here, and nothing asks for one."
                .to_owned()
        }
        (State::Fault, Some(first)) => {
            format!("Fault: {} [{}, {}]", first.cause.claim, first.cause.id, first.verdict.name())
        }
        (State::Fault, None) => "Fault: the cause lies outside the layers shown.".to_owned(),
        (State::Undetermined, Some(_)) => {
            "Undetermined: something is wrong, and what was seen does not settle the cause."
                .to_owned()
        }
        (State::Undetermined, None) if diagnosis.symptoms.is_empty() => {
            "Undetermined: nothing looks wrong, but too little could be seen to call it healthy."
                .to_owned()
        }
        (State::Undetermined, None) => {
            "Undetermined: something is wrong, and no known cause fits it.".to_owned()
        }
    }
}

/// The symptoms that nothing in play explains.
pub fn unexplained(diagnosis: &Diagnosis) -> impl Iterator<Item = &Symptom> {
    diagnosis.symptoms.iter().filter(|symptom| symptom.explained_by.is_empty())
}

/// How many of the ranked causes deserve to be shown in full: the first, and any after it that is
/// at least likely and explains a symptom that those before it do not.
pub fn shown_in_full(diagnosis: &Diagnosis) -> usize {
    let mut count = 0;
    for finding in &diagnosis.causes {
        let earlier = diagnosis.causes.get(..count).unwrap_or_default();
        let new = |symptom: &Symptom| {
            let explained_by = &symptom.explained_by;
            let known = earlier.iter().any(|known| explained_by.contains(&known.cause.id));
            explained_by.contains(&finding.cause.id) && !known
        };
        let worthy = finding.verdict >= Verdict::Likely && diagnosis.symptoms.iter().any(new);
        if count > 0 && !worthy {
            break;
        }
        count += 1;
    }
    count
}
