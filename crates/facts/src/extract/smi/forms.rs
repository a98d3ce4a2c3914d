//! The forms beside table and list: the report of `-q`, chosen columns, matrices of links.

use super::{Output, enter_gpu};
use crate::observed::{Observed, Seen};
use crate::parse::smi_topo::MatrixKind;
use crate::parse::{At, smi_csv, smi_query, smi_topo};
use crate::raw::ItemName;
use crate::version::DriverVersion;

impl Output<'_> {
    pub(super) fn report(&mut self, text: &str) {
        let report = smi_query::parse(text).value;
        if report.is_empty() {
            return;
        }
        for At { line, value } in [&report.driver, &report.cuda].into_iter().flatten() {
            self.answered(*line);
            if Some(line) == report.driver.as_ref().map(|at| &at.line) {
                self.driver_version(*line, Some(value));
            } else {
                self.cuda_version(*line, Some(value));
            }
        }
        if let Some(At { line, value }) = report.attached {
            self.answered(line);
            let origin = self.origin(line);
            self.facts.nvml.count.or_later(Observed::seen(value, origin));
        }
        if let Some(first) = report.gpus.first() {
            self.answered(first.line);
        }
        for At { line, value: gpu } in report.gpus {
            self.gsp(&gpu);
            let origin = self.origin(line);
            enter_gpu(gpu.gpu, origin, self.facts);
        }
    }

    /// Whether the GSP runs, and which firmware.
    fn gsp(&mut self, gpu: &smi_query::QueriedGpu) {
        let (Some(line), Some(text)) = (gpu.gsp_line, gpu.gpu.gsp_version.as_deref()) else {
            return;
        };
        let origin = self.origin(line);
        if let Some(version) = DriverVersion::parse(text) {
            self.facts.firmware.running.push(Seen::new(version, origin));
        } else if text == "N/A" {
            self.facts.firmware.not_running.push(origin);
        }
    }

    pub(super) fn csv(&mut self, text: &str) {
        let command = match &self.item.name {
            ItemName::Command(line)
                if line.contains("--query-gpu") || line.contains("--query-remapped-rows") =>
            {
                Some(line.as_str())
            }
            ItemName::Command(_)
            | ItemName::File(_)
            | ItemName::Probe { .. }
            | ItemName::Text(_) => {
                return;
            }
        };
        let csv = smi_csv::parse(text, command).value;
        if let Some(At { line, value }) = &csv.driver {
            self.answered(*line);
            self.driver_version(*line, Some(value));
        }
        if let Some(first) = csv.gpus.first() {
            self.answered(first.line);
        }
        self.gpus(csv.gpus, false);
    }

    pub(super) fn matrices(&mut self, text: &str) {
        let parsed = smi_topo::parse(text);
        for matrix in parsed.value {
            if let Some(first) = matrix.cells.first() {
                self.answered(first.line);
            }
            for At { line, value: cell } in matrix.cells {
                let seen = Seen::new((cell.row, cell.column, cell.word), self.origin(line));
                match matrix.kind {
                    MatrixKind::Links => self.facts.nvml.topology.push(seen),
                    MatrixKind::PeerStatus => self.facts.nvml.peer_status.push(seen),
                }
            }
        }
    }
}
