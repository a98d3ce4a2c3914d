//! Which causes print a line of the kernel log or a word of a topology: learnt from the corpus, from
//! the evidence of each case for the cause that it is a case of.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use reason::{Evidence, Strength};
use synth::expectations::{self, Expected};

/// Where the table is.
pub(super) const PATH: &str = "crates/render/src/explain/printed_by.tsv";

const HEADER: &str = "# From the evidence of the cases, by `cargo xtask gen`.\nword\tcause\n";

/// The table as text.
pub(super) fn table() -> Result<String> {
    let mut pairs: BTreeSet<(String, &'static str)> = BTreeSet::new();
    for folder in expectations::cases() {
        let name = expectations::name(&folder);
        let expected = Expected::of(&folder).map_err(anyhow::Error::msg)?;
        let raw = probe::source::collect_case(&folder).with_context(|| format!("in {name}"))?;
        let diagnosis = reason::diagnose(&facts::extract(&raw));
        for finding in &diagnosis.causes {
            let is_own = name.split('/').next() == Some(finding.cause.id);
            if !is_own || !expected.top.iter().any(|id| id == finding.cause.id) {
                continue;
            }
            let words = finding.weighing.support.iter().flat_map(words_of);
            pairs.extend(words.map(|word| (word, finding.cause.id)));
        }
    }
    let rows = pairs.iter().map(|(word, cause)| format!("{word}\t{cause}\n"));
    Ok(HEADER.to_owned() + &rows.collect::<String>())
}

/// The signatures and the topology words in the line that a piece of evidence is from.
fn words_of(evidence: &Evidence) -> Vec<String> {
    if evidence.strength < Strength::Moderate {
        return Vec::new();
    }
    let excerpt = &*evidence.origin.excerpt;
    let log = facts::parse::kernel_log::parse(excerpt.as_bytes()).value;
    let matches = log.lines.iter().flat_map(|line| &line.matches);
    let mut words: Vec<String> = matches.map(|found| found.signature.id.to_owned()).collect();
    // A row of a matrix begins with the GPU.
    let cells =
        excerpt.trim_start().strip_prefix("GPU").into_iter().flat_map(str::split_whitespace);
    let known = nvabi::topology::all().filter(|word| matches!(word.kind, "rule" | "p2p_code"));
    let named =
        known.filter(|word| word.name != "X" && cells.clone().any(|cell| cell == word.name));
    words.extend(named.map(|word| word.name.to_owned()));
    words
}
