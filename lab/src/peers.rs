//! What other tools say of the same faults.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use crate::fault::Fault;
use crate::machine::Machine;
use crate::run::{self, End, Ran};

/// How long a tool may take before it counts as hung. torch's report takes 6 s on a healthy machine.
const LIMIT: Duration = Duration::from_secs(25);

/// A tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// Its name, as the table shows it.
    pub(crate) name: &'static str,
    command: &'static [&'static str],
    /// How it says that all is well.
    well: Well,
}

/// How a tool says that all is well.
#[derive(Debug, Clone, Copy)]
enum Well {
    /// By its exit status.
    Status,
    /// By these words.
    Words(&'static str),
    /// By complaining of nothing of which it does not complain without a fault.
    NothingNew,
}

const ENV_DOCTOR: &str =
    "import sys; sys.argv = ['env-doctor', 'check']; from env_doctor.cli import main; main()";

const PEERS: [Peer; 4] = [
    Peer { name: "nvidia-smi", command: &["nvidia-smi"], well: Well::Status },
    Peer {
        name: "torch collect_env",
        command: &["python3", "-m", "torch.utils.collect_env"],
        well: Well::Words("Is CUDA available: True"),
    },
    Peer { name: "all-smi doctor", command: &["all-smi", "doctor"], well: Well::NothingNew },
    Peer { name: "env-doctor", command: &["python3", "-c", ENV_DOCTOR], well: Well::NothingNew },
];

/// What a tool said of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// It did not come back in time.
    Hung,
    /// It said that all is well.
    Healthy,
    /// Its output holds the fault's own words.
    Named,
    /// Something is wrong, but not what.
    Unnamed,
    /// It could not be run inside this fault.
    NotRun,
}

impl Word {
    /// As the tables write it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Word::Hung => "hung",
            Word::Healthy => "healthy",
            Word::Named => "named",
            Word::Unnamed => "unnamed",
            Word::NotRun => "not run",
        }
    }
}

/// The tools that this machine has, and those that it lacks.
pub(crate) fn here(machine: &Machine) -> (Vec<Peer>, Vec<&'static str>) {
    let (have, lack): (Vec<Peer>, Vec<Peer>) =
        PEERS.into_iter().partition(|peer| is_here(machine, peer));
    (have, lack.iter().map(|peer| peer.name).collect())
}

fn is_here(machine: &Machine, peer: &Peer) -> bool {
    match peer.name {
        "torch collect_env" => machine.has_torch(),
        "env-doctor" => starts("python3", &["-c", "import env_doctor"]),
        _ => starts(&program(machine, peer.command[0]), &["--version"]),
    }
}

fn starts(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// One that was carried here comes before one that is installed.
fn program(machine: &Machine, name: &str) -> String {
    let carried = machine.bin.join(name);
    if carried.exists() { carried.display().to_string() } else { name.to_owned() }
}

impl Peer {
    /// Runs the tool inside a fault. `words` are those that would name the fault.
    pub(crate) fn ask(
        &self,
        machine: &Machine,
        fault: &Fault,
        words: &[String],
        usual: &str,
    ) -> Result<(Word, String)> {
        let ran = self.run(machine, fault)?;
        let said = said(&ran);
        let complaint = new_complaint(&said, usual);
        let word = self.word(&ran, &said, words, complaint.is_none());
        let line = complaint.or_else(|| said.lines().next()).unwrap_or_default();
        Ok((word, line.trim().chars().take(160).collect()))
    }

    /// All that the tool prints inside a fault.
    pub(crate) fn output(&self, machine: &Machine, fault: &Fault) -> Result<String> {
        Ok(said(&self.run(machine, fault)?))
    }

    fn run(&self, machine: &Machine, fault: &Fault) -> Result<Ran> {
        let mut line: Vec<String> = self.command.iter().map(|word| (*word).to_owned()).collect();
        line[0] = program(machine, &line[0]);
        run::inside(machine, fault, &line, LIMIT)
    }

    fn word(&self, ran: &Ran, said: &str, words: &[String], nothing_new: bool) -> Word {
        match &ran.end {
            End::Hung => return Word::Hung,
            End::NotInjected(_) | End::Status(126 | 127) => return Word::NotRun,
            _ => {}
        }
        let low = said.to_lowercase();
        let status = ran.end == End::Status(0);
        let well = match self.well {
            Well::Status => status,
            Well::Words(words) => status && said.contains(words),
            // Its status may tell of what it complains of without a fault as well.
            Well::NothingNew => nothing_new,
        };
        if words.iter().any(|word| low.contains(&word.to_lowercase())) {
            return Word::Named;
        }
        if well { Word::Healthy } else { Word::Unnamed }
    }
}

fn said(ran: &Ran) -> String {
    format!("{}\n{}", ran.stdout, ran.stderr)
}

/// The first line that speaks of trouble and is not printed without a fault. Numbers do not count:
/// temperatures and times differ from run to run.
fn new_complaint<'said>(said: &'said str, usual: &str) -> Option<&'said str> {
    let shape = |line: &str| line.chars().filter(|ch| !ch.is_ascii_digit()).collect::<String>();
    let usual: Vec<String> = usual.lines().map(shape).collect();
    // A line may say of itself that it is no complaint: `PASS platform.hardware  no …`.
    let fine = |line: &str| ["PASS", "SKIP", "\u{2705}"].iter().any(|mark| line.starts_with(mark));
    let speaks = |line: &str| {
        let low = line.to_lowercase();
        let words =
            ["error", "fail", "unable", "couldn't", "warn", "not ", "no ", "unknown", "\u{274c}"];
        words.iter().any(|word| low.contains(word))
    };
    let mut lines = said.lines().map(str::trim_start);
    lines.find(|line| !fine(line) && speaks(line) && !usual.contains(&shape(line)))
}

/// Words of which one in a tool's output names the cause. Generous: a tool that prints the node's
/// name or the variable's counts as having named it.
pub(crate) fn words_of(cause: &str) -> Vec<String> {
    let rows = include_str!("../peer_words.tsv").lines().filter(|line| !line.starts_with('#'));
    let found = rows.filter_map(|row| row.split_once('\t')).find(|(id, _)| *id == cause);
    found.map_or_else(Vec::new, |(_, words)| words.split('|').map(str::to_owned).collect())
}
