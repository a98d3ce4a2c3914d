//! Accuracy over the corpus, layer by layer, and what was confused with what.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use reason::Diagnosis;
use synth::expectations::{self, Expected};

mod table;

use table::Row;

/// Least share of cases with a cause in which the right one must come first, in percent.
const LEAST_RIGHT_PERCENT: u32 = 95;

/// Prints the table and the confusions as Markdown. What the corpus must hold and does not is an
/// error.
pub(crate) fn run() -> Result<()> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut confusions = Vec::new();
    for folder in expectations::cases() {
        let name = expectations::name(&folder);
        let expected = Expected::of(&folder).map_err(anyhow::Error::msg)?;
        let diagnosis = diagnosis(&folder).with_context(|| format!("in {name}"))?;
        let layer = name.split(['.', '/']).next().unwrap_or_default();
        rows.entry(layer.to_owned()).or_default().count(&expected, &diagnosis);
        confusions.extend(Confusion::of(name, &expected, &diagnosis));
    }
    let all = rows.values().fold(Row::default(), table::Row::plus);
    print(&rows, &all, &confusions)?;
    ensure!(all.first.percent() >= LEAST_RIGHT_PERCENT, "the right cause comes first too seldom");
    ensure!(all.named.found == 0, "causes are named that must not be");
    ensure!(all.alarms.found == 0, "causes are named on inputs without a fault");
    Ok(())
}

fn diagnosis(folder: &Path) -> Result<Diagnosis> {
    let raw = probe::source::collect_case(folder)?;
    Ok(reason::diagnose(&facts::extract(&raw)))
}

/// A case in which another cause than the expected one came first, or another state came out.
struct Confusion {
    case: String,
    expected: String,
    got: String,
}

impl Confusion {
    fn of(case: String, expected: &Expected, diagnosis: &Diagnosis) -> Option<Confusion> {
        let state = diagnosis.state.name();
        let first = diagnosis.causes.first();
        let right_cause = match first {
            None => expected.top.is_empty(),
            Some(_) if expected.top.is_empty() => !table::is_named(expected, diagnosis),
            Some(finding) => expected.top.iter().any(|id| id == finding.cause.id),
        };
        if right_cause && state == expected.state {
            return None;
        }
        let named = first.map_or_else(
            || "no cause".to_owned(),
            |finding| format!("{} ({})", finding.cause.id, finding.verdict.name()),
        );
        let wanted = match expected.top.as_slice() {
            [] => "no cause".to_owned(),
            ids => ids.join(" or "),
        };
        Some(Confusion {
            case,
            expected: format!("{wanted}, {}", expected.state),
            got: format!("{named}, {state}"),
        })
    }
}

fn print(rows: &BTreeMap<String, Row>, all: &Row, confusions: &[Confusion]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    write!(out, "{}", table::HEAD)?;
    for (layer, row) in rows {
        writeln!(out, "{}", row.markdown(layer))?;
    }
    writeln!(out, "{}", all.markdown("**all**"))?;
    if confusions.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| case | expected | got |\n|---|---|---|")?;
    for confusion in confusions {
        writeln!(out, "| {} | {} | {} |", confusion.case, confusion.expected, confusion.got)?;
    }
    Ok(())
}
