//! A program that was found inside the driver and does not come back is a symptom of its own.

use facts::Facts;
use facts::model::task::Hang;

use super::derive::push;
use super::{Symptom, SymptomId};
use crate::stuck;

/// Adds it where nothing of the kind was found.
pub(super) fn derive(facts: &Facts, found: &mut Vec<Symptom>) {
    let hangs =
        |symptom: &Symptom| matches!(symptom.id, SymptomId::CudaInitHangs | SymptomId::NvmlHangs);
    if found.iter().any(hangs) {
        return;
    }
    for place in stuck::hung_tasks(facts) {
        let of_nvml = place.stuck.name.as_deref().is_some_and(|name| name.starts_with("nvidia-"));
        let id = if of_nvml { SymptomId::NvmlHangs } else { SymptomId::CudaInitHangs };
        let how = Hang::of(place.stuck).map_or("does not return", Hang::words);
        let at = place.stuck.place().map_or(String::new(), |place| format!(", {place}"));
        push(found, id, None, format!("{} {how}{at}", place.who), place.origin);
    }
}
