//! Running all faults, several at a time, and what came of each.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::codes::{Codes, Recorded};
use crate::fault::{Caps, Fault, Via};
use crate::judge::{self, Judged};
use crate::machine::Machine;
use crate::peers::{self, Peer, Word};
use crate::run::{self, End, Ran};

/// Time beyond gpudx's own deadline in which it must have ended.
const GRACE: Duration = Duration::from_secs(3);
/// Its deadline when nothing else is asked for.
const DEADLINE: Duration = Duration::from_secs(20);

/// What came of a fault.
#[derive(Debug)]
pub(crate) struct Score {
    /// The fault.
    pub(crate) fault: Fault,
    /// How it went.
    pub(crate) result: Outcome,
}

/// How a fault went.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It could not be made here.
    NotHere(String),
    /// It was made and judged.
    Made(Box<Made>),
}

/// A fault that was made.
#[derive(Debug)]
pub(crate) struct Made {
    /// What gpudx said.
    pub(crate) judged: Judged,
    /// How long it took.
    pub(crate) time: Duration,
    /// The raw codes.
    pub(crate) codes: Option<Codes>,
    /// How the codes differ from recorded ones.
    pub(crate) difference: Option<String>,
    /// What each peer said, in the order of the peers, with its own words.
    pub(crate) peers: Vec<(Word, String)>,
    /// What was left behind.
    pub(crate) left: Vec<String>,
    /// gpudx's report.
    pub(crate) report: String,
}

impl Score {
    /// Whether it was made and everything was right.
    pub(crate) fn is_right(&self) -> bool {
        matches!(&self.result, Outcome::Made(made)
            if made.judged.complaints.is_empty() && made.left.is_empty())
    }

    /// Whether it was made at all.
    pub(crate) fn was_made(&self) -> bool {
        matches!(self.result, Outcome::Made(_))
    }
}

/// How faults are made, and what is asked beside gpudx.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// How many faults are made at the same time.
    pub(crate) jobs: usize,
    /// When no further fault is begun.
    pub(crate) ends_at: Option<Instant>,
    /// Other tools.
    pub(crate) peers: Vec<Peer>,
    /// What each of them prints without a fault.
    pub(crate) usual: Vec<String>,
}

/// Runs the faults, several at a time; those that must be alone come last, one by one. `tell` is
/// called as each is done.
pub(crate) fn all(
    machine: &Machine,
    faults: Vec<Fault>,
    recorded: &[Recorded],
    beside: &Beside,
    tell: &(dyn Fn(&Score) + Sync),
) -> Result<Vec<Score>> {
    let (alone, together): (Vec<Fault>, Vec<Fault>) =
        faults.into_iter().partition(|fault| fault.alone);
    let one = |fault: Fault| -> Result<Score> {
        let result = score(machine, &fault, beside, recorded)?;
        let score = Score { fault, result };
        tell(&score);
        Ok(score)
    };
    let queue: Mutex<VecDeque<(usize, Fault)>> =
        Mutex::new(together.into_iter().enumerate().collect());
    let next = || queue.lock().ok().and_then(|mut queue| queue.pop_front());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..beside.jobs.max(1) {
            scope.spawn(|| {
                while let Some((place, fault)) = next() {
                    let score = one(fault);
                    if let Ok(mut done) = done.lock() {
                        done.push((place, score));
                    }
                }
            });
        }
    });
    let mut scores = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    scores.sort_by_key(|(place, _)| *place);
    scores.into_iter().map(|(_, score)| score).chain(alone.into_iter().map(one)).collect()
}

fn score(
    machine: &Machine,
    fault: &Fault,
    beside: &Beside,
    recorded: &[Recorded],
) -> Result<Outcome> {
    if beside.ends_at.is_some_and(|end| Instant::now() >= end) {
        return Ok(Outcome::NotHere("no time was left".to_owned()));
    }
    if let Some(lacking) = machine.lacks(&fault.needs) {
        return Ok(Outcome::NotHere(lacking.to_owned()));
    }
    if !machine.root && (!fault.setup.is_empty() || fault.caps != Caps::Root) {
        return Ok(Outcome::NotHere("not root".to_owned()));
    }
    let ran = diagnose(machine, fault)?;
    if let End::NotInjected(why) = ran.end {
        return Ok(Outcome::NotHere(why));
    }
    let mut made = Made {
        judged: judge::judge(fault, &ran),
        time: ran.time,
        codes: None,
        difference: None,
        peers: Vec::new(),
        left: ran.left,
        report: ran.stdout,
    };
    if fault.via == Via::Check {
        let (codes, left) = Codes::ask(machine, fault)?;
        made.difference = difference(machine, fault, &codes, recorded);
        if let (Some(difference), true) = (&made.difference, machine.kernel_side.is_some()) {
            // The same libraries over the same stand-in: a difference is a fault of ours.
            let complaint = format!("the codes are {codes}, and were {difference}");
            made.judged.complaints.push(complaint);
        }
        made.codes = Some(codes);
        made.left.extend(left);
    }
    if fault.without_peers {
        made.peers = vec![(Word::NotRun, String::new()); beside.peers.len()];
        return Ok(Outcome::Made(Box::new(made)));
    }
    let words = fault.expect.top.first().map(|cause| peers::words_of(cause)).unwrap_or_default();
    for (peer, usual) in beside.peers.iter().zip(&beside.usual) {
        let low = usual.to_lowercase();
        let telling: Vec<String> =
            words.iter().filter(|word| !low.contains(&word.to_lowercase())).cloned().collect();
        made.peers.push(peer.ask(machine, fault, &telling, usual)?);
    }
    Ok(Outcome::Made(Box::new(made)))
}

/// Runs gpudx inside the fault, or on what a program prints there.
fn diagnose(machine: &Machine, fault: &Fault) -> Result<Ran> {
    let gpudx = machine.bin.join("gpudx").display().to_string();
    let limit = deadline(fault) + GRACE;
    match fault.via {
        Via::Check => {
            let mut program = vec![gpudx];
            program.extend(["check", "--format", "json"].map(str::to_owned));
            program.extend(fault.check.iter().cloned());
            run::inside(machine, fault, &program, limit)
        }
        Via::Read => {
            // The program's own failure is what is read, so its status does not count.
            let line =
                format!("{{ {}; }} 2>&1 | \"$BIN/gpudx\" read - --format json", fault.program);
            run::inside(machine, fault, &["bash".to_owned(), "-c".to_owned(), line], limit)
        }
    }
}

fn deadline(fault: &Fault) -> Duration {
    let mut words = fault.check.iter();
    let given = words.find(|word| *word == "--deadline").and_then(|_| words.next());
    let seconds = given.and_then(|text| text.trim_end_matches('s').parse().ok());
    seconds.map_or(DEADLINE, Duration::from_secs_f64)
}

fn difference(
    machine: &Machine,
    fault: &Fault,
    codes: &Codes,
    recorded: &[Recorded],
) -> Option<String> {
    let row = recorded.iter().find(|row| row.fault == fault.name)?;
    let same_gpus = machine.gpus.len() == row.gpus;
    codes
        .differ(&row.codes, same_gpus)
        .then(|| format!("{} with {} and {} GPUs", row.codes, row.driver, row.gpus))
}

/// What each peer prints without a fault.
pub(crate) fn usual(machine: &Machine, peers: &[Peer]) -> Result<Vec<String>> {
    let none = Fault { name: "none".to_owned(), ..Fault::default() };
    peers.iter().map(|peer| peer.output(machine, &none)).collect()
}
