//! The fault lab: faults around a real driver, one at a time, and whether gpudx names them.
//!
//! `lab/run` builds what is needed and starts this. Each fault of `lab/faults/` is made in a mount
//! namespace or a process of its own, `gpudx check` runs inside it, two bare programs ask the
//! driver's libraries for their raw codes there, and what gpudx said is compared with what must be
//! said. Nothing on the machine is changed, and that is compared as well.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};

mod codes;
mod expectations;
mod fault;
mod judge;
mod leftovers;
mod machine;
mod paths;
mod peers;
mod report;
mod run;
mod score;
mod sim;

use machine::Machine;
use score::{Beside, Score};

/// Makes faults around the real driver and scores how gpudx names them.
///
/// Exit status: 0 every fault was named right and nothing was left behind, 1 not, 2 there is
/// nothing to make faults around here.
#[derive(Debug, Parser)]
#[command(name = "lab/run")]
struct Arguments {
    /// Only faults whose names hold one of these words, separated by commas
    #[arg(long, value_name = "WORDS")]
    faults: Option<String>,
    /// Take programs from this folder and build nothing
    #[arg(long, value_name = "DIR")]
    prebuilt: Option<PathBuf>,
    /// Form of the score
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Faults made at the same time
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Run other tools that are installed on the same faults
    #[arg(long)]
    peers: bool,
    /// Also write the score in every form, and each report, into this folder
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Without a GPU: the real driver libraries of Debian's packages over a stand-in for the
    /// kernel side, with every row of the fault matrices as a fault
    #[arg(long)]
    sim: bool,
    /// With --sim: the branch of the libraries, 535, 550 or 555
    #[arg(long, value_name = "BRANCH", default_value = "550")]
    driver: String,
    /// Only the K-th of N equal parts of the faults, as K/N
    #[arg(long, value_name = "K/N", value_parser = part)]
    part: Option<(usize, usize)>,
    /// Begin no further fault after so many seconds, and write the score of those made
    #[arg(long, value_name = "SECONDS")]
    within: Option<u64>,
    /// List the faults
    #[arg(long)]
    list: bool,
}

/// Form of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people at a terminal.
    Text,
    /// JSON.
    Json,
    /// Markdown: the body of docs/lab.md.
    Md,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            tell(&format!("lab: {error:#}\n"));
            ExitCode::from(2)
        }
    }
}

/// Says something to whoever waits; what is asked for goes to standard output.
fn tell(text: &str) {
    // A closed standard error takes nothing from the score.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (faults, recorded) = chosen(arguments)?;
    if arguments.list {
        let lines = faults.iter().map(|fault| format!("{:32} {}\n", fault.name, fault.what));
        print(&lines.collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let binaries = match &arguments.prebuilt {
        Some(folder) => folder.clone(),
        None => std::env::current_exe()?.parent().context("this program has no folder")?.to_owned(),
    };
    let machine = if arguments.sim {
        sim::machine(&binaries, &arguments.driver)?
    } else {
        let machine = Machine::find(&binaries, &[])?;
        refuse_elsewhere(&machine)?;
        machine
    };
    let before = leftovers::snapshot(machine.cgroup_v2.as_deref());
    let ends_at = arguments.within.map(|limit| Instant::now() + Duration::from_secs(limit));
    let mut beside = Beside { jobs: arguments.jobs, ends_at, ..Beside::default() };
    let mut lacking = Vec::new();
    if arguments.peers {
        (beside.peers, lacking) = peers::here(&machine);
        beside.usual = score::usual(&machine, &beside.peers)?;
    }
    let scores = score::all(&machine, faults, &recorded, &beside, &progress)?;
    let after = leftovers::snapshot(machine.cgroup_v2.as_deref());
    let report = report::Report {
        machine: &machine,
        scores: &scores,
        peers: &beside.peers,
        lacking: &lacking,
        left: leftovers::differences(&before, &after),
    };
    if let Some(folder) = &arguments.output {
        report.write(folder)?;
    }
    print(&match arguments.format {
        Format::Text => report.text(),
        Format::Json => report.json(),
        Format::Md => report.markdown(),
    })?;
    Ok(if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads `2/8`.
fn part(text: &str) -> Result<(usize, usize), String> {
    let both = text.split_once('/').and_then(|(part, parts)| {
        Some((part.parse::<usize>().ok()?, parts.parse::<usize>().ok()?))
    });
    both.filter(|(part, parts)| (1..=*parts).contains(part))
        .ok_or_else(|| "a part is K/N with K from 1 to N".to_owned())
}

/// The faults that are asked for, and the codes that are recorded for them.
fn chosen(arguments: &Arguments) -> Result<(Vec<fault::Fault>, Vec<codes::Recorded>)> {
    let (mut faults, mut recorded) = (fault::all()?, codes::recorded());
    faults.retain(|fault| !arguments.sim || fault.sim || fault.fakerm.is_some());
    if arguments.sim {
        let (rows, answers) = sim::matrix(&arguments.driver)?;
        faults.extend(rows);
        recorded = answers;
    } else {
        faults.retain(|fault| fault.fakerm.is_none());
    }
    if let Some(words) = &arguments.faults {
        let words: Vec<&str> = words.split(',').collect();
        faults.retain(|fault| words.iter().any(|word| fault.name.contains(word)));
    }
    if let Some((part, parts)) = arguments.part {
        let mut place = 0;
        faults.retain(|_| {
            place += 1;
            place % parts == part % parts
        });
    }
    if faults.is_empty() {
        bail!("no fault has such a name; --list shows all");
    }
    Ok((faults, recorded))
}

fn refuse_elsewhere(machine: &Machine) -> Result<()> {
    if machine.driver.is_none() {
        bail!("no NVIDIA driver is loaded here, so that there is nothing to make faults around");
    }
    if !machine.root {
        bail!("faults are made in mount namespaces, which needs root");
    }
    Ok(())
}

fn progress(score: &Score) {
    let line = match (&score.result, score.is_right()) {
        (score::Outcome::NotHere(why), _) => format!("not here ({why})"),
        (score::Outcome::Made(made), true) => made.judged.verdict(),
        (score::Outcome::Made(made), false) => {
            format!("WRONG: {}", [&made.judged.complaints[..], &made.left].concat().join("; "))
        }
    };
    tell(&format!("{:32} {line}\n", score.fault.name));
}

fn print(text: &str) -> Result<()> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
