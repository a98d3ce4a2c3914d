//! What is counted over cases.

use reason::{Diagnosis, State, Verdict};
use synth::expectations::Expected;

/// The head of the table.
pub(super) const HEAD: &str = "\
| layer | cases | right cause first | ruled out as expected | alarms without a fault | undetermined as expected | named and must not be |
|---|--:|--:|--:|--:|--:|--:|
";

/// So many of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) found: u32,
    pub(super) of: u32,
}

impl Share {
    fn count(&mut self, found: bool) {
        self.found += u32::from(found);
        self.of += 1;
    }

    fn plus(self, other: Share) -> Share {
        Share { found: self.found + other.found, of: self.of + other.of }
    }

    /// In whole percent, rounded down; of nothing everything was found.
    pub(super) fn percent(self) -> u32 {
        (self.found * 100).checked_div(self.of).unwrap_or(100)
    }

    fn shown(self) -> String {
        if self.of == 0 { "–".to_owned() } else { format!("{}/{}", self.found, self.of) }
    }
}

/// One line of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row {
    cases: u32,
    /// Cases with an expected cause in which it comes first.
    pub(super) first: Share,
    /// Causes that should be shown as ruled out and are.
    ruled_out: Share,
    /// Healthy machines, and machines without a GPU, on which a cause is named.
    pub(super) alarms: Share,
    /// Cases that should be undetermined and are.
    undetermined: Share,
    /// Causes that are named and must not be.
    pub(super) named: Share,
}

impl Row {
    /// Counts a case.
    pub(super) fn count(&mut self, expected: &Expected, diagnosis: &Diagnosis) {
        self.cases += 1;
        let first = diagnosis.causes.first().map(|finding| finding.cause.id);
        if !expected.top.is_empty() {
            self.first.count(expected.top.iter().any(|id| Some(id.as_str()) == first));
        }
        for id in &expected.ruled_out {
            self.ruled_out.count(diagnosis.ruled_out.iter().any(|out| out.cause.id == *id));
        }
        if is_without_fault(expected) {
            self.alarms.count(first.is_some());
        }
        if expected.state == State::Undetermined.name() {
            self.undetermined.count(diagnosis.state == State::Undetermined);
        }
        for id in &expected.must_not_name {
            self.named.count(diagnosis.causes.iter().any(|finding| finding.cause.id == *id));
        }
    }

    /// The sum of two rows.
    pub(super) fn plus(self, other: &Row) -> Row {
        Row {
            cases: self.cases + other.cases,
            first: self.first.plus(other.first),
            ruled_out: self.ruled_out.plus(other.ruled_out),
            alarms: self.alarms.plus(other.alarms),
            undetermined: self.undetermined.plus(other.undetermined),
            named: self.named.plus(other.named),
        }
    }

    /// The row as Markdown.
    pub(super) fn markdown(&self, layer: &str) -> String {
        let shares = [self.first, self.ruled_out, self.alarms, self.undetermined, self.named];
        let cells: Vec<String> = shares.iter().map(|share| share.shown()).collect();
        format!("| {layer} | {} | {} |", self.cases, cells.join(" | "))
    }
}

fn is_without_fault(expected: &Expected) -> bool {
    [State::Healthy.name(), State::NoGpu.name()].contains(&expected.state.as_str())
}

/// True when a cause is named in a case that should name none: a working hypothesis anywhere, and
/// on a healthy machine a mere suspicion too.
pub(super) fn is_named(expected: &Expected, diagnosis: &Diagnosis) -> bool {
    let least = if is_without_fault(expected) { Verdict::Possible } else { Verdict::Likely };
    diagnosis.causes.first().is_some_and(|finding| finding.verdict >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_nothing_of_nothing_is_no_fault() {
        let mut share = Share::default();
        assert_eq!((share.percent(), share.shown()), (100, "–".to_owned()));
        share.count(true);
        share.count(false);
        share.count(true);
        assert_eq!((share.percent(), share.shown()), (66, "2/3".to_owned()));
        let row = Row { cases: 2, first: share, ..Row::default() };
        assert_eq!(row.plus(&row).markdown("all"), "| all | 4 | 4/6 | – | – | – | – |");
    }

    #[test]
    fn a_case_is_counted_where_it_belongs() {
        let expected = |text: &str| toml::from_str::<Expected>(text).unwrap();
        let nothing = reason::diagnose(&facts::Facts::default());
        let mut row = Row::default();
        let fault =
            "title='t'\norigin='o'\nstate='fault'\ntop=['uvm.hmm']\nruled_out=['node.missing']";
        row.count(&expected(fault), &nothing);
        let open = "title='t'\norigin='o'\nstate='undetermined'\nmust_not_name=['uvm.hmm']";
        row.count(&expected(open), &nothing);
        assert_eq!(row.markdown("x"), "| x | 2 | 0/1 | 0/1 | – | 1/1 | 0/1 |");
    }
}
