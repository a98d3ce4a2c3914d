//! The raw codes of the driver's libraries, from programs that do nothing else.

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use crate::fault::Fault;
use crate::machine::Machine;
use crate::run::{self, End, Ran};

/// How long a bare program may take. A healthy cuInit takes 0.2 s a GPU, and RM waits 6 s for the
/// GSP at most.
const LIMIT: Duration = Duration::from_secs(7);

/// How long one that is known to ask for ever is waited for.
const LOOPS: Duration = Duration::from_secs(1);

/// What the libraries answered. `-` is what was not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Codes {
    pub(crate) nvml: String,
    pub(crate) nvml_count: String,
    pub(crate) cuda: String,
    pub(crate) cuda_count: String,
}

impl fmt::Display for Codes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Codes { nvml, nvml_count, cuda, cuda_count } = self;
        write!(formatter, "{nvml}/{nvml_count} {cuda}/{cuda_count}")
    }
}

impl Codes {
    /// Asks both libraries inside the fault.
    pub(crate) fn ask(machine: &Machine, fault: &Fault) -> Result<(Codes, Vec<String>)> {
        let program = |name: &str| vec![machine.bin.join(name).display().to_string()];
        let limit = if fault.loops { LOOPS } else { LIMIT };
        let nvml = run::inside(machine, fault, &program("nvml-bare"), limit)?;
        let cuda = run::inside(machine, fault, &program("cuda-count"), limit)?;
        let codes = Codes {
            nvml: code(&nvml),
            nvml_count: count(&nvml),
            cuda: code(&cuda),
            cuda_count: count(&cuda),
        };
        Ok((codes, [nvml.left, cuda.left].concat()))
    }

    /// How these codes differ from recorded ones; counts only where both have one and the machines
    /// have as many GPUs.
    pub(crate) fn differ(&self, recorded: &Codes, same_gpus: bool) -> bool {
        let counts_differ =
            (&self.nvml_count, &self.cuda_count) != (&recorded.nvml_count, &recorded.cuda_count);
        let other = |code: &str, was: &str| was != "-" && code != was;
        other(&self.nvml, &recorded.nvml)
            || other(&self.cuda, &recorded.cuda)
            || (same_gpus && counts_differ)
    }
}

fn code(ran: &Ran) -> String {
    match &ran.end {
        End::Hung => "hangs".to_owned(),
        End::Signal(signal) => format!("signal {signal}"),
        _ => word(&ran.stdout, "init", 1).unwrap_or("-").to_owned(),
    }
}

fn count(ran: &Ran) -> String {
    let answered = word(&ran.stdout, "count", 1) == Some("0");
    let count = word(&ran.stdout, "count", 2).filter(|_| answered);
    count.unwrap_or("-").to_owned()
}

/// The word at this place of the line that begins so.
fn word<'text>(text: &'text str, first: &str, place: usize) -> Option<&'text str> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(first))?;
    line.split(' ').nth(place)
}

/// Recorded codes of a fault.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) fault: String,
    pub(crate) driver: String,
    pub(crate) gpus: usize,
    pub(crate) codes: Codes,
}

/// The table of recorded codes.
pub(crate) fn recorded() -> Vec<Recorded> {
    let rows = include_str!("../recorded.tsv").lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| {
        let mut cells = row.split('\t').map(str::to_owned);
        let mut next = || cells.next();
        Some(Recorded {
            fault: next()?,
            driver: next()?,
            gpus: next()?.parse().ok()?,
            codes: Codes { nvml: next()?, nvml_count: next()?, cuda: next()?, cuda_count: next()? },
        })
    })
    .collect()
}
