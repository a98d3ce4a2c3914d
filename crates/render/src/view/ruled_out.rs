//! Causes that were ruled out, those with an observation in common on one line.

use reason::Diagnosis;
use reason::diagnose::RuledOut;

/// Causes that the same observation rules out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuledOutRow {
    /// Their ids.
    pub ids: Vec<&'static str>,
    /// The observations, without repetition.
    pub statements: Vec<String>,
}

impl RuledOutRow {
    /// The ids in short: `firmware.gsp-missing, .gsp-lacks-chip`.
    pub fn label(&self) -> String {
        let mut label = String::new();
        let mut layer = "";
        for id in &self.ids {
            let (own, fault) = id.split_once('.').unwrap_or(("", id));
            if !label.is_empty() {
                label.push_str(", ");
            }
            if own != layer {
                label.push_str(own);
            }
            label.push('.');
            label.push_str(fault);
            layer = own;
        }
        label
    }
}

/// The rows, in the order of the diagnosis.
pub fn ruled_out(diagnosis: &Diagnosis) -> Vec<RuledOutRow> {
    let mut rows: Vec<RuledOutRow> = Vec::new();
    for cause in &diagnosis.ruled_out {
        if let Some(row) = rows.iter_mut().find(|row| shares_evidence(row, cause)) {
            join(row, cause);
        } else {
            let mut row = RuledOutRow { ids: Vec::new(), statements: Vec::new() };
            join(&mut row, cause);
            rows.push(row);
        }
    }
    rows
}

fn shares_evidence(row: &RuledOutRow, cause: &RuledOut) -> bool {
    cause.evidence.iter().any(|piece| row.statements.contains(&piece.statement))
}

fn join(row: &mut RuledOutRow, cause: &RuledOut) {
    row.ids.push(cause.cause.id);
    for piece in &cause.evidence {
        if !row.statements.contains(&piece.statement) {
            row.statements.push(piece.statement.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_a_layer_once() {
        let row = |ids: &[&'static str]| RuledOutRow { ids: ids.to_vec(), statements: vec![] };
        assert_eq!(row(&["node.missing"]).label(), "node.missing");
        let mixed = row(&["node.missing", "node.permission", "uvm.hmm", "node.wrong-number"]);
        assert_eq!(mixed.label(), "node.missing, .permission, uvm.hmm, node.wrong-number");
    }
}
