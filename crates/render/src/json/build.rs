//! From a report to its mirror.

use reason::diagnose::{Finding, RuledOut, UnknownCause};
use reason::need::Need;
use reason::next_step::NextStep;

use super::parts;
use super::schema;
use crate::{Report, VERSION, view};

/// The mirror of a report.
pub fn build(report: &Report<'_>) -> schema::ReportV1 {
    let diagnosis = report.diagnosis;
    schema::ReportV1 {
        schema: super::SCHEMA,
        gpudx: VERSION,
        input: report.input.to_owned(),
        live: report.facts.live,
        state: parts::state(diagnosis.state),
        machine: machine(report),
        symptoms: diagnosis.symptoms.iter().map(symptom).collect(),
        causes: diagnosis.causes.iter().filter_map(cause).collect(),
        ruled_out: diagnosis.ruled_out.iter().map(ruled_out).collect(),
        unknown: diagnosis.unknown.iter().map(unknown).collect(),
        explained_away: diagnosis
            .explained_away
            .iter()
            .map(|gone| schema::ExplainedAway { id: gone.id, by: gone.by })
            .collect(),
        next: diagnosis.next.iter().map(next).collect(),
        layers: diagnosis.layers.iter().map(layer).collect(),
        experiments: report.facts.experiments.iter().map(parts::experiment).collect(),
        probes: diagnosis.probes.iter().map(parts::probe).collect(),
        tasks: report.facts.tasks.iter().map(|task| parts::task(task, report.facts)).collect(),
        notes: diagnosis.notes.iter().map(note).collect(),
        not_understood: diagnosis.not_understood.iter().map(parts::origin).collect(),
    }
}

fn machine(report: &Report<'_>) -> schema::Machine {
    let machine = view::machine(report.facts);
    let model = |(name, count)| schema::GpuModel { name, count };
    schema::Machine {
        hostname: machine.hostname,
        os: machine.os,
        kernel: machine.kernel,
        arch: machine.arch,
        container: machine.container,
        hypervisor: machine.hypervisor,
        gpus: machine.gpus.into_iter().map(model).collect(),
    }
}

fn symptom(symptom: &reason::Symptom) -> schema::Symptom {
    schema::Symptom {
        id: symptom.id.name(),
        code: symptom.code,
        summary: symptom.summary.clone(),
        origin: parts::origin(&symptom.origin),
        explained_by: symptom.explained_by.clone(),
    }
}

/// A finding whose verdict is none of the three in play is not a cause of the report.
fn cause(finding: &Finding) -> Option<schema::Cause> {
    Some(schema::Cause {
        id: finding.cause.id,
        verdict: parts::verdict(finding.verdict)?,
        claim: finding.cause.claim,
        support: parts::evidence(&finding.weighing.support),
        against: parts::evidence(&finding.weighing.against),
        remedy: parts::remedy(&finding.remedy),
    })
}

fn ruled_out(cause: &RuledOut) -> schema::RuledOut {
    schema::RuledOut { id: cause.cause.id, evidence: parts::evidence(&cause.evidence) }
}

fn unknown(unknown: &UnknownCause) -> schema::Unknown {
    let needs = unknown.needs.iter().copied().map(Need::observe).collect();
    schema::Unknown { id: unknown.cause.id, needs }
}

fn next(step: &NextStep) -> schema::Next {
    schema::Next { observe: step.need.observe(), separates: step.separates.clone() }
}

fn layer(line: &reason::layers::LayerLine) -> schema::Layer {
    schema::Layer {
        layer: line.layer.name(),
        status: parts::layer_status(line.status),
        summary: line.summary.clone(),
    }
}

fn note(note: &facts::model::Note) -> schema::Note {
    schema::Note { text: note.text.clone(), origin: parts::origin(&note.origin) }
}
