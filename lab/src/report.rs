//! The score, for people, for programs and for docs/lab.md.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::paths;
use crate::peers::{Peer, Word};
use crate::score::{Made, Outcome, Score};

/// All that a run of the lab gave.
#[derive(Debug)]
pub(crate) struct Report<'run> {
    pub(crate) machine: &'run Machine,
    pub(crate) scores: &'run [Score],
    pub(crate) peers: &'run [Peer],
    /// Tools that this machine lacks.
    pub(crate) lacking: &'run [&'static str],
    /// What differs on the machine after the run.
    pub(crate) left: Vec<String>,
}

impl Report<'_> {
    /// Whether everything was named right and nothing was left.
    pub(crate) fn is_right(&self) -> bool {
        self.left.is_empty()
            && self.scores.iter().all(|score| score.is_right() || !score.was_made())
    }

    fn made(&self) -> impl Iterator<Item = (&Score, &Made)> {
        self.scores.iter().filter_map(|score| match &score.result {
            Outcome::Made(made) => Some((score, made.as_ref())),
            Outcome::NotHere(_) => None,
        })
    }

    fn not_made(&self) -> impl Iterator<Item = (&Score, &str)> {
        self.scores.iter().filter_map(|score| match &score.result {
            Outcome::NotHere(why) => Some((score, why.as_str())),
            Outcome::Made(_) => None,
        })
    }

    /// One line of sums.
    fn sums(&self) -> String {
        let right = self.scores.iter().filter(|score| score.is_right()).count();
        let made = self.made().count();
        let slowest = self.made().max_by_key(|(_, made)| made.time);
        let slowest = slowest.map_or_else(String::new, |(score, made)| {
            format!("; the slowest took {:.1} s ({})", made.time.as_secs_f64(), score.fault.name)
        });
        let not_here = self.scores.len() - made;
        let left = match self.left.len() {
            0 => "nothing was left behind".to_owned(),
            number => format!("{number} differences before and after"),
        };
        format!("{right} of {made} right, {not_here} not made here; {left}{slowest}")
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (score, made) in self.made() {
            let mark = if score.is_right() { "right" } else { "WRONG" };
            let codes = made.codes.as_ref().map(ToString::to_string).unwrap_or_default();
            let verdict = made.judged.verdict();
            let seconds = made.time.as_secs_f64();
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{mark} {:32} {codes:14} {seconds:5.1} s  {verdict}",
                score.fault.name
            );
            for line in made.judged.complaints.iter().chain(&made.left) {
                let _ = writeln!(text, "      {line}");
            }
            if let Some(difference) = &made.difference {
                let _ = writeln!(text, "      codes were {difference}");
            }
        }
        for (score, why) in self.not_made() {
            let _ = writeln!(text, "  -   {:32} {why}", score.fault.name);
        }
        for line in &self.left {
            let _ = writeln!(text, "left: {line}");
        }
        let _ = writeln!(text, "{}", self.sums());
        text
    }

    /// For programs.
    pub(crate) fn json(&self) -> String {
        let faults: Vec<Value> = self.scores.iter().map(|score| self.fault(score)).collect();
        let report = json!({
            "driver": self.machine.driver,
            "gpus": self.machine.gpus,
            "faults": faults,
            "left": self.left,
        });
        format!("{report:#}\n")
    }

    fn fault(&self, score: &Score) -> Value {
        let name = &score.fault.name;
        let made = match &score.result {
            Outcome::NotHere(why) => return json!({"fault": name, "not_here": why}),
            Outcome::Made(made) => made,
        };
        let names = self.peers.iter().map(|peer| peer.name);
        let peers: serde_json::Map<String, Value> = names
            .zip(&made.peers)
            .map(|(name, (word, said))| (name.to_owned(), json!([word.text(), said])))
            .collect();
        json!({
            "fault": name,
            "right": score.is_right(),
            "complaints": made.judged.complaints,
            "state": made.judged.state,
            "causes": made.judged.causes,
            "seconds": made.time.as_secs_f64(),
            "codes": made.codes.as_ref().map(ToString::to_string),
            "codes_recorded": made.difference,
            "peers": peers,
            "left": made.left,
        })
    }

    /// For docs/lab.md.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        let driver = self.machine.driver.as_deref().unwrap_or("none");
        let gpus = self.machine.gpus.join(", ");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Driver {driver}; {gpus}; {}.\n", today());
        let _ = writeln!(text, "{}.\n", self.sums());
        let mut head = "| fault | as | NVML/n cuInit/n | gpudx | s |".to_owned();
        let mut rule = "|---|---|---|---|---|".to_owned();
        for peer in self.peers {
            let _ = write!(head, " {} |", peer.name);
            rule.push_str("---|");
        }
        let _ = writeln!(text, "{head}\n{rule}");
        for (score, made) in self.made() {
            let _ = writeln!(text, "{}", row(score, made));
        }
        self.markdown_ends(&mut text);
        text
    }

    fn markdown_ends(&self, text: &mut String) {
        let _ = writeln!(text, "\nNot made here:\n");
        for (score, why) in self.not_made() {
            let _ = writeln!(text, "* {}: {why}", score.fault.name);
        }
        for name in self.lacking {
            let _ = writeln!(text, "* {name} (a peer): not installed");
        }
        let differences = self.made().filter_map(|(score, made)| {
            Some(format!("* {}: {}", score.fault.name, made.difference.as_ref()?))
        });
        let differences: Vec<String> = differences.collect();
        if !differences.is_empty() {
            let _ = writeln!(text, "\nCodes that were recorded otherwise:\n");
            let _ = writeln!(text, "{}", differences.join("\n"));
        }
        let _ = writeln!(text, "\n{}", self.peer_sums());
    }

    /// How often each peer hung, called a fault healthy, or named it.
    fn peer_sums(&self) -> String {
        let faulty: Vec<&Made> = self
            .made()
            .filter(|(score, _)| !score.fault.expect.top.is_empty())
            .map(|(_, made)| made)
            .collect();
        let mut text = String::new();
        let healthy = faulty.iter().filter(|made| made.judged.state == "healthy").count();
        let named = faulty.iter().filter(|made| made.judged.complaints.is_empty()).count();
        let _ = writeln!(
            text,
            "* gpudx: of {} faults it named {named} right, and called {healthy} healthy.",
            faulty.len(),
        );
        for (place, peer) in self.peers.iter().enumerate() {
            let count = |word: Word| {
                faulty
                    .iter()
                    .filter(|made| made.peers.get(place).is_some_and(|(said, _)| *said == word))
                    .count()
            };
            let _ = writeln!(
                text,
                "* {}: of {} faults it named {}, called {} healthy, hung in {}, and told {} without their cause.",
                peer.name,
                faulty.len() - count(Word::NotRun),
                count(Word::Named),
                count(Word::Healthy),
                count(Word::Hung),
                count(Word::Unnamed),
            );
        }
        text
    }

    /// Writes the score in every form, and in one file the reports that were wrong, into a folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        paths::make_open(folder)?;
        fs::write(folder.join("score.txt"), self.text())?;
        fs::write(folder.join("score.json"), self.json())?;
        fs::write(folder.join("score.md"), self.markdown())?;
        let reports: serde_json::Map<String, Value> = self
            .made()
            .filter(|(score, _)| !score.is_right())
            .map(|(score, made)| {
                let report = serde_json::from_str(&made.report).unwrap_or(Value::Null);
                (score.fault.name.clone(), report)
            })
            .collect();
        fs::write(folder.join("reports.json"), Value::Object(reports).to_string())?;
        Ok(())
    }
}

fn row(score: &Score, made: &Made) -> String {
    let others = made.judged.others();
    let also =
        if others.is_empty() { String::new() } else { format!("; also {}", others.join(", ")) };
    let wrong = if score.is_right() {
        String::new()
    } else {
        format!(" **wrong: {}**", [&made.judged.complaints[..], &made.left].concat().join("; "))
    };
    let codes = made.codes.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let mut row = format!(
        "| {} | {} | {codes} | {}{also}{wrong} | {:.1} |",
        score.fault.name,
        score.fault.caps.name(),
        made.judged.verdict(),
        made.time.as_secs_f64(),
    );
    for (word, _) in &made.peers {
        let _ = write!(row, " {} |", word.text());
    }
    row
}

/// The date, as `date` tells it; the lab has no calendar of its own.
fn today() -> String {
    let output = std::process::Command::new("date").arg("+%Y-%m-%d").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_default()
}
