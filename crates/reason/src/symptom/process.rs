//! Symptoms that lie in the process: a slow start, memory that cannot be shared or registered, an
//! index that no GPU has.

use facts::Facts;
use facts::model::process::Refusal;

use super::derive::push;
use super::{Symptom, SymptomId};

/// nvidia-smi or cuInit takes longer than this only when something is wrong.
const SLOW_SECONDS: f64 = 12.0;

/// Adds them to what was found beneath.
pub(super) fn derive(facts: &Facts, found: &mut Vec<Symptom>) {
    let slow = facts
        .process
        .slow_starts
        .iter()
        .find(|seen| seen.value.1.is_none_or(|seconds| seconds >= SLOW_SECONDS));
    if let Some(seen) = slow {
        let summary = match &seen.value {
            (what, Some(seconds)) => format!("{what} takes {seconds:.0} s"),
            (what, None) => format!("{what} is slow"),
        };
        push(found, SymptomId::CudaInitSlow, None, summary, &seen.origin);
    }
    let beneath = found.iter().any(|symptom| {
        matches!(
            symptom.id,
            SymptomId::CudaInitFails | SymptomId::CudaContextFails | SymptomId::DriverAbsent
        )
    });
    if let Some(origin) = facts.process.refused(Refusal::Ordinal)
        && !beneath
    {
        let summary = "a program asks for a GPU index that it does not see".to_owned();
        push(found, SymptomId::CudaContextFails, None, summary, origin);
    }
    if let Some(origin) = facts.process.refused(Refusal::Thread)
        && found.is_empty()
    {
        let summary = "the system refuses a program more threads".to_owned();
        push(found, SymptomId::CudaContextFails, None, summary, origin);
    }
    if found.iter().any(|symptom| symptom.id == SymptomId::P2pBroken) {
        return;
    }
    let refusals = [
        (Refusal::LockedMemory, "memory cannot be registered with the network card"),
        (Refusal::SharedMemory, "processes cannot share memory through /dev/shm"),
        (Refusal::BusError, "a process dies of a bus error, as it does when /dev/shm is full"),
    ];
    for (refusal, summary) in refusals {
        if let Some(origin) = facts.process.refused(refusal) {
            push(found, SymptomId::P2pBroken, None, summary.to_owned(), origin);
            return;
        }
    }
}
