//! The small pieces of the mirror, one function each.

use facts::model::experiment::Effect;
use facts::model::{Experiment, ProbeRun};

use super::schema;

pub(super) fn state(state: reason::State) -> schema::State {
    match state {
        reason::State::Healthy => schema::State::Healthy,
        reason::State::Fault => schema::State::Fault,
        reason::State::Undetermined => schema::State::Undetermined,
        reason::State::NoGpu => schema::State::NoGpu,
    }
}

pub(super) fn verdict(verdict: reason::Verdict) -> Option<schema::Verdict> {
    match verdict {
        reason::Verdict::Confirmed => Some(schema::Verdict::Confirmed),
        reason::Verdict::Likely => Some(schema::Verdict::Likely),
        reason::Verdict::Possible => Some(schema::Verdict::Possible),
        reason::Verdict::RuledOut | reason::Verdict::NotApplicable | reason::Verdict::Unknown => {
            None
        }
    }
}

pub(super) fn origin(origin: &facts::Origin) -> schema::Origin {
    let lines = origin.line > 0;
    schema::Origin {
        item: origin.item.to_string(),
        input: origin.input.as_ref().map(ToString::to_string),
        line: lines.then_some(origin.line),
        end_line: lines.then_some(origin.end_line),
        excerpt: (!origin.excerpt.is_empty()).then(|| origin.excerpt.to_string()),
        taken_at: origin.taken_at,
    }
}

pub(super) fn evidence(pieces: &[reason::Evidence]) -> Vec<schema::Evidence> {
    let piece = |piece: &reason::Evidence| schema::Evidence {
        statement: piece.statement.clone(),
        strength: strength(piece.strength),
        origin: origin(&piece.origin),
    };
    pieces.iter().map(piece).collect()
}

fn strength(strength: reason::Strength) -> schema::Strength {
    match strength {
        reason::Strength::Weak => schema::Strength::Weak,
        reason::Strength::Moderate => schema::Strength::Moderate,
        reason::Strength::Strong => schema::Strength::Strong,
        reason::Strength::Decisive => schema::Strength::Decisive,
    }
}

pub(super) fn remedy(remedy: &reason::Remedy) -> schema::Remedy {
    let step = |step: &reason::remedy::Step| schema::Step {
        place: place(step.place),
        run: step.run.clone(),
        why: step.why.clone(),
    };
    schema::Remedy {
        steps: remedy.steps.iter().map(step).collect(),
        impact: impact(remedy.impact),
        stops: remedy.stops.clone(),
        undo: remedy.undo.clone(),
        verify: remedy.verify.clone(),
        will_not_help: remedy.will_not_help.clone(),
    }
}

fn place(place: reason::Place) -> schema::Place {
    match place {
        reason::Place::Here => schema::Place::Here,
        reason::Place::Host => schema::Place::Host,
        reason::Place::Container => schema::Place::Container,
        reason::Place::Engine => schema::Place::Engine,
        reason::Place::Hypervisor => schema::Place::Hypervisor,
        reason::Place::Guest => schema::Place::Guest,
        reason::Place::Program => schema::Place::Program,
        reason::Place::Machine => schema::Place::Machine,
    }
}

fn impact(impact: reason::Impact) -> schema::Impact {
    match impact {
        reason::Impact::None => schema::Impact::None,
        reason::Impact::RestartsProcess => schema::Impact::RestartsProcess,
        reason::Impact::RecreatesContainer => schema::Impact::RecreatesContainer,
        reason::Impact::RestartsService => schema::Impact::RestartsService,
        reason::Impact::ReloadsModule => schema::Impact::ReloadsModule,
        reason::Impact::Reboots => schema::Impact::Reboots,
        reason::Impact::PowerCycle => schema::Impact::PowerCycle,
        reason::Impact::Hardware => schema::Impact::Hardware,
    }
}

pub(super) fn layer_status(status: reason::layers::LayerStatus) -> schema::LayerStatus {
    use reason::layers::LayerStatus;
    match status {
        LayerStatus::Ok => schema::LayerStatus::Ok,
        LayerStatus::Fault => schema::LayerStatus::Fault,
        LayerStatus::Unknown => schema::LayerStatus::Unknown,
        LayerStatus::Blocked => schema::LayerStatus::Blocked,
        LayerStatus::NotApplicable => schema::LayerStatus::NotApplicable,
    }
}

pub(super) fn probe(run: &ProbeRun) -> schema::Probe {
    let in_flight = run.in_flight.as_ref().map(|(call, on)| match on {
        Some(on) => format!("{call} on {on}"),
        None => call.clone(),
    });
    schema::Probe {
        probe: run.probe.clone(),
        trial: run.trial,
        outcome: outcome(run.outcome),
        code: run.code,
        seconds: run.seconds,
        in_flight,
        stuck: run
            .stuck
            .as_ref()
            .map(|found| schema::Stuck { hang: run.hang().map(hang), ..stuck(found) }),
        notes: run.end_notes.clone(),
        traced: run.traced,
    }
}

pub(super) fn experiment(made: &Experiment) -> schema::Experiment {
    schema::Experiment {
        trial: made.number,
        change: made.change.kind(),
        description: made.change.words(),
        why: made.why.clone(),
        effect: effect(made),
        result: crate::view::experiment_result(made),
        seconds: made.seconds,
        origin: origin(&made.origin),
    }
}

fn effect(made: &Experiment) -> schema::Effect {
    match (&made.run, made.effect) {
        (None, _) => schema::Effect::None,
        (Some(_), Effect::Works) => schema::Effect::Works,
        (Some(_), Effect::Fails) => schema::Effect::Fails,
        (Some(_), Effect::Differs) => schema::Effect::Differs,
        (Some(_), Effect::Same) => schema::Effect::Same,
        (Some(_), Effect::Unclear) => schema::Effect::Unclear,
    }
}

fn outcome(outcome: facts::wire::Outcome) -> schema::Outcome {
    use facts::wire::Outcome;
    match outcome {
        Outcome::Returned => schema::Outcome::Returned,
        Outcome::Crashed => schema::Outcome::Crashed,
        Outcome::TimedOut => schema::Outcome::TimedOut,
        Outcome::Unkillable => schema::Outcome::Unkillable,
        Outcome::NotStarted => schema::Outcome::NotStarted,
        Outcome::Malformed => schema::Outcome::Malformed,
    }
}

pub(super) fn task(task: &facts::model::Task, facts: &facts::Facts) -> schema::Task {
    let log = reason::stuck::log_near(facts, task);
    schema::Task {
        stuck: stuck(&task.stuck),
        watched_s: task.watched_s,
        log: log.into_iter().map(|event| origin(&event.origin)).collect(),
        origin: origin(&task.origin),
    }
}

fn stuck(stuck: &facts::wire::Stuck) -> schema::Stuck {
    schema::Stuck {
        pid: stuck.pid,
        tid: stuck.tid,
        name: stuck.name.clone(),
        hang: facts::model::task::Hang::of(stuck).map(hang),
        state: stuck.state.clone(),
        wchan: stuck.wchan.clone(),
        stack: stuck.stack.clone(),
        call: stuck.call.clone(),
        user_share: stuck.user_share,
        system_share: stuck.system_share,
        switches: stuck.switches,
        asleep_s: stuck.asleep_s,
        age_s: stuck.age_s,
        kill_pending: stuck.kill_pending,
        descriptors: stuck.descriptors.clone(),
        same_place: stuck.same_place.clone(),
        not_readable: stuck.not_readable.clone(),
    }
}

fn hang(hang: facts::model::task::Hang) -> schema::Hang {
    use facts::model::task::Hang;
    match hang {
        Hang::SleepsInKernel => schema::Hang::SleepsInKernel,
        Hang::WakesInKernel => schema::Hang::WakesInKernel,
        Hang::SpinsInKernel => schema::Hang::SpinsInKernel,
        Hang::RepeatsCalls => schema::Hang::RepeatsCalls,
        Hang::BusyInUserSpace => schema::Hang::BusyInUserSpace,
        Hang::Waits => schema::Hang::Waits,
        Hang::Stopped => schema::Hang::Stopped,
        Hang::Ended => schema::Hang::Ended,
    }
}
