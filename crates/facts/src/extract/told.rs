//! Faults of the GPU that a report tells of count as the kernel's lines do where it quotes none.

use std::collections::BTreeMap;

use crate::model::log::LogEvent;
use crate::model::{Facts, Note};
use crate::observed::{Origin, Seen};

/// Enters what was told, and remarks on Xids that say nothing of the GPU.
pub(super) fn apply(facts: &mut Facts) {
    if facts.log.with("XID").next().is_none() {
        let told = facts.log.told_xids.iter();
        facts.log.events.extend(told.map(|xid| event("XID", Some(xid.value), &xid.origin)));
    }
    if facts.log.with("NVSWITCH_SXID").next().is_none() {
        facts.log.events.extend(facts.log.told_sxids.iter().map(switch_event));
    }
    let known = ["FALLEN_BUS", "FALLEN_BUS_INIT"];
    if facts.log.first(&known).is_none()
        && !facts.log.xids().any(|(xid, _)| xid == 79)
        && let Some(origin) = facts.log.told_off_bus.first().cloned()
    {
        facts.log.events.push(event("FALLEN_BUS_TOLD", None, &origin));
    }
    application_faults(facts);
}

fn event(signature: &'static str, xid: Option<u32>, origin: &Origin) -> LogEvent {
    let mut captures = BTreeMap::new();
    if let Some(xid) = xid {
        captures.insert("xid", xid.to_string());
    }
    LogEvent {
        signature,
        captures,
        time_s: None,
        device: None,
        origin: origin.clone(),
        text: origin.excerpt.to_string(),
    }
}

/// `SXid 20034 Fatal`: what stands behind the number is the message.
fn switch_event(sxid: &Seen<u32>) -> LogEvent {
    let number = sxid.value.to_string();
    let mut told = event("NVSWITCH_SXID", None, &sxid.origin);
    if let Some((_, message)) = told.text.split_once(&number) {
        let message = message.trim_start_matches([',', ':', ' ', '(']).to_owned();
        told.captures.insert("msg", message);
    }
    told.captures.insert("sxid", number);
    told
}

/// Xids of programs alone are no fault of the GPU, and a reader who searches for them must know.
fn application_faults(facts: &mut Facts) {
    let mut programs: Option<(u32, Origin)> = None;
    for (number, event) in facts.log.xids() {
        if !nvabi::xid::by_number(number).is_some_and(|xid| xid.application_fault) {
            return;
        }
        programs = programs.or_else(|| Some((number, event.origin.clone())));
    }
    let Some((number, origin)) = programs else { return };
    let text = format!(
        "Xid {number} reports a fault of a program that used the GPU, not one of the GPU itself"
    );
    if !facts.notes.iter().any(|note| note.text == text) {
        facts.notes.push(Note { text, origin });
    }
}
