//! Symptoms of traffic between GPUs, of the fabric that carries it, and of shared GPUs.

use facts::model::fabric::ManagerLine;
use facts::model::p2p::{PeerResult, PeerSwitch};
use facts::{Facts, Seen};

use super::derive::push;
use super::{Symptom, SymptomId};
use crate::{peers, readings};

/// Symptoms of CUDA itself come first: where it does not start, nothing between GPUs can be judged.
pub(super) fn derive(facts: &Facts, found: &mut Vec<Symptom>) {
    manager(facts, found);
    index(facts, found);
    let beneath = |symptom: &Symptom| {
        matches!(
            symptom.id,
            SymptomId::CudaInitFails
                | SymptomId::CudaInitHangs
                | SymptomId::CudaInitCrashes
                | SymptomId::DriverAbsent
                | SymptomId::NvmlFails
        )
    };
    if found.iter().any(beneath) {
        return;
    }
    broken(facts, found);
    absent(facts, found);
}

/// A fabric manager that ends by itself leaves CUDA waiting, whether or not anybody tried.
fn manager(facts: &Facts, found: &mut Vec<Symptom>) {
    let tried = found.iter().any(|symptom| symptom.id == SymptomId::CudaInitFails);
    if tried || readings::cuda_works(facts).is_some() {
        return;
    }
    let ended = facts.fabric.manager_lines.iter().find(|line| {
        matches!(
            line.value,
            ManagerLine::VersionMismatch(..)
                | ManagerLine::Usage(_)
                | ManagerLine::ModuleMissing(_)
                | ManagerLine::BadConfiguration(_)
        )
    });
    if let Some(line) = ended {
        let summary = "the fabric manager does not start, and CUDA waits for it".to_owned();
        push(found, SymptomId::CudaInitFails, None, summary, &line.origin);
    }
}

/// A framework that counts GPUs by NVML reaches for one that CUDA does not list.
fn index(facts: &Facts, found: &mut Vec<Symptom>) {
    if let Some(said) = facts.share.index_beyond_count.first() {
        let summary = "the framework reaches for a device that CUDA does not list".to_owned();
        push(found, SymptomId::GpuMissing, None, summary, &said.origin);
        return;
    }
    let named = facts.process.env("CUDA_VISIBLE_DEVICES");
    let Some(named) = named.as_seen() else { return };
    let instances = named.value.matches("MIG-").count();
    if let Some(count) = facts.cuda.count.as_seen()
        && instances > 1
        && usize::try_from(count.value).is_ok_and(|count| count < instances)
    {
        let summary = format!("CUDA counts {} of {instances} MIG devices named to it", count.value);
        push(found, SymptomId::GpuMissing, None, summary, &count.origin);
    }
}

fn broken(facts: &Facts, found: &mut Vec<Symptom>) {
    // A GPU that has failed takes the traffic with it: that is no symptom of its own, unless
    // something that was tried says that it is about the traffic.
    let faulted = found.iter().any(|symptom| symptom.id == SymptomId::GpuFaulted);
    let tried = facts.p2p.runs.iter().any(|run| {
        let cured = !run.value.under.is_empty() && run.value.result == PeerResult::Completed;
        cured || run.value.result == PeerResult::WrongData
    });
    let mut say = |summary: String, seen: &facts::Origin| {
        push(found, SymptomId::P2pBroken, None, summary, seen);
    };
    let only = [
        PeerSwitch::P2pOff,
        PeerSwitch::MulticastOff,
        PeerSwitch::CustomAllReduceOff,
        PeerSwitch::AcsOff,
        PeerSwitch::BridgeChanged,
    ];
    if let Some(run) = facts.p2p.broken().filter(|_| tried || !faulted) {
        let how = match run.value.result {
            PeerResult::Hung => "does not end",
            PeerResult::WrongData => "delivers wrong data",
            PeerResult::Failed | PeerResult::Completed => "fails",
        };
        say(format!("{} {how}", run.value.what), &run.origin);
    } else if let Some(run) = facts.p2p.completed_under(&only)
        && facts.p2p.plain_runs().next().is_none()
    {
        say(format!("{} works only under a condition", run.value.what), &run.origin);
    } else if let Some(failure) = facts.fabric.multicast_failures.first() {
        say("a call for NVLink multicast fails".to_owned(), &failure.origin);
    } else if let Some((down, all, origin)) = links_down(facts) {
        say(format!("{down} of {all} NVLinks are down"), &origin);
    } else if let Some(said) = facts.fabric.link_statements.first() {
        say("NVLinks are said to be lacking".to_owned(), &said.origin);
    }
}

/// Links that are down on GPUs that have others up: how many of how many. A GPU whose links are
/// all inactive has nothing at its connector, which is no fault.
pub(crate) fn links_down(facts: &Facts) -> Option<(usize, usize, facts::Origin)> {
    let links = &facts.fabric.links;
    let up = |gpu: Option<u32>| links.iter().any(|link| link.value.gpu == gpu && link.value.active);
    let down: Vec<&Seen<_>> =
        links.iter().filter(|link| !link.value.active && up(link.value.gpu)).collect();
    let first = down.first()?;
    Some((down.len(), links.len(), first.origin.clone()))
}

fn absent(facts: &Facts, found: &mut Vec<Symptom>) {
    if found.iter().any(|symptom| symptom.id == SymptomId::P2pBroken) {
        return;
    }
    if let Some(refused) = peers::refused(facts) {
        push(found, SymptomId::P2pAbsent, None, refused.value, &refused.origin);
        return;
    }
    let complaint = facts.p2p.slow.first().or_else(|| facts.p2p.given_up.first());
    if let Some(said) = complaint.filter(|_| peers::flat_matrix(facts).is_some()) {
        let summary = "GPUs reach each other, or a NIC, only the slow way".to_owned();
        push(found, SymptomId::P2pAbsent, None, summary, &said.origin);
    } else if let Some(run) = facts.p2p.completed_under(&[PeerSwitch::TopologyFile]) {
        let summary = "GPUs reach each other well only with a topology file".to_owned();
        push(found, SymptomId::P2pAbsent, None, summary, &run.origin);
    }
}
