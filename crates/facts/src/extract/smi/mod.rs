//! What `nvidia-smi` printed, in any of its forms, becomes NVML's answers.
//!
//! The form is told by the output and not by the command line, so that a part of an output, a
//! pasted one and one of a wrapper all go the same way. An output that shows GPUs or versions at
//! all shows that nvmlInit succeeded.

mod forms;
mod gpus;
mod sharing;

use super::places::Places;
use crate::model::Facts;
use crate::model::nvml::{NvmlGpu, NvmlQuery, NvmlResult};
use crate::observed::{Errno, Observed, Origin, Why};
use crate::parse::smi_message::SmiMessage;
use crate::parse::{At, smi_list, smi_message, smi_table};
use crate::raw::{ItemName, RawItem, RawState};
use crate::version::{CudaVersion, DriverVersion};

pub use gpus::enter_gpu;

/// Enters one output of `nvidia-smi`.
pub fn apply(item: &RawItem, facts: &mut Facts) {
    let text = item.text().unwrap_or_default();
    let places = Places::new(item, &text);
    let mut output = Output { item, places, facts, answered: None };
    match &item.state {
        RawState::Bytes(_) => {}
        RawState::TimedOut => return output.query(NvmlResult::Hung, item.origin()),
        RawState::Absent => {
            output.facts.library.smi.or_better(Observed::Absent(item.origin()));
            return;
        }
        RawState::Denied(errno) => return output.denied(*errno),
    }
    sharing::apply(item, &text, output.facts);
    output.messages(&text);
    output.table(&text);
    output.list(&text);
    output.report(&text);
    output.csv(&text);
    output.matrices(&text);
    output.conclude();
}

struct Output<'a> {
    item: &'a RawItem,
    places: Places<'a>,
    facts: &'a mut Facts,
    /// Where the output shows that NVML answered.
    answered: Option<Origin>,
}

impl Output<'_> {
    fn origin(&self, line: u32) -> Origin {
        self.places.at(line)
    }

    fn answered(&mut self, line: u32) {
        if self.answered.is_none() {
            self.answered = Some(self.origin(line));
        }
    }

    /// The command line, or the name of another kind of item.
    fn name(&self) -> String {
        match &self.item.name {
            ItemName::Command(line) => line.clone(),
            other => other.to_string(),
        }
    }

    fn query(&mut self, result: NvmlResult, origin: Origin) {
        let query = NvmlQuery { query: self.name(), device: None, result, ms: None, origin };
        self.facts.mentions_gpu = true;
        self.facts.nvml.queries.push(query);
    }

    fn denied(&mut self, errno: Errno) {
        self.facts.library.smi.or_better(Observed::Denied(errno, self.item.origin()));
    }

    /// An answer counts as nvmlInit's success unless the same output says that it failed.
    fn conclude(&mut self) {
        let Some(origin) = self.answered.take() else {
            return;
        };
        self.facts.nvml.init.or_later(Observed::seen(NvmlResult::Code(0), origin.clone()));
        self.query(NvmlResult::Code(0), origin);
    }

    fn messages(&mut self, text: &str) {
        for At { line, value } in smi_message::parse(text).value {
            let origin = self.origin(line);
            match value {
                SmiMessage::InitFailed(code) => self.failed(code, origin),
                SmiMessage::LibraryMissing => {
                    self.facts.library.nvml.or_better(Observed::Absent(origin.clone()));
                    self.failed(12, origin);
                }
                SmiMessage::NoDevices => {
                    self.facts.nvml.count.or_later(Observed::seen(0, origin));
                    self.answered(line);
                }
                SmiMessage::DeviceFailed(address, code) => {
                    self.device_failed(address, code, origin);
                }
                SmiMessage::LibraryVersion(version) => {
                    self.facts.library.reported.or_later(Observed::seen(version, origin));
                }
                SmiMessage::CommandMissing => {
                    self.facts.mentions_gpu = true;
                    self.facts.library.smi.or_later(Observed::Absent(origin));
                }
            }
        }
    }

    fn failed(&mut self, code: i64, origin: Origin) {
        self.facts.nvml.init.or_later(Observed::seen(NvmlResult::Code(code), origin.clone()));
        self.query(NvmlResult::Code(code), origin);
    }

    /// NVML answers, and one GPU does not.
    fn device_failed(
        &mut self,
        address: Option<crate::model::pci::PciAddress>,
        code: Option<i64>,
        origin: Origin,
    ) {
        let known = self.facts.nvml.gpus.iter().find(|gpu| gpu.value.address == address);
        let device = known.filter(|_| address.is_some()).and_then(|gpu| gpu.value.index);
        self.facts.mentions_gpu = true;
        self.facts.nvml.queries.push(NvmlQuery {
            query: "nvmlDeviceGetHandleByIndex".to_owned(),
            device,
            result: NvmlResult::Code(code.unwrap_or(999)),
            ms: None,
            origin,
        });
    }

    fn table(&mut self, text: &str) {
        let parsed = smi_table::parse(text);
        if parsed.value.is_empty() {
            return;
        }
        super::complaints::note(self.item, &parsed.complaints, self.facts);
        let table = parsed.value;
        if let Some(At { line, value }) = &table.header {
            self.answered(*line);
            self.header(*line, value);
        }
        for error in &table.errors {
            self.facts.nvml.queries.push(NvmlQuery {
                query: self.name(),
                device: Some(error.value),
                result: NvmlResult::Code(999),
                ms: None,
                origin: self.origin(error.line),
            });
        }
        self.gpus(table.gpus, table.header.is_some());
    }

    fn header(&mut self, line: u32, header: &smi_table::Header) {
        let origin = self.origin(line);
        if let Some(version) = header.smi.as_deref().and_then(DriverVersion::parse) {
            self.facts.library.reported.or_later(Observed::seen(version, origin));
        }
        self.driver_version(line, header.driver.as_deref());
        self.cuda_version(line, header.cuda.as_deref());
    }

    fn driver_version(&mut self, line: u32, text: Option<&str>) {
        if let Some(version) = text.and_then(DriverVersion::parse) {
            let origin = self.origin(line);
            self.facts.nvml.driver_version.or_later(Observed::seen(version, origin));
        }
    }

    /// `N/A` and `Not Found` mean that nvidia-smi looked for libcuda and found none.
    fn cuda_version(&mut self, line: u32, text: Option<&str>) {
        let Some(text) = text else { return };
        let origin = self.origin(line);
        let version = match (CudaVersion::parse(text), text) {
            (Some(version), _) => Observed::seen(version, origin),
            (None, "N/A" | "Not Found" | "Not") => Observed::Absent(origin),
            (None, _) => Observed::Unknown(Why::Unparsed(origin)),
        };
        self.facts.nvml.cuda_version.or_later(version);
    }

    fn list(&mut self, text: &str) {
        let gpus = smi_list::parse(text).value.gpus;
        if let Some(first) = gpus.first() {
            self.answered(first.line);
        }
        self.gpus(gpus, true);
    }

    /// Enters GPUs. A listing of all of them also tells how many there are.
    fn gpus(&mut self, gpus: Vec<At<NvmlGpu>>, all: bool) {
        let Some(first) = gpus.first() else { return };
        let origin = self.origin(first.line);
        let whole = all && !self.item.partial;
        if let (true, Ok(count)) = (whole, u32::try_from(gpus.len())) {
            self.facts.nvml.count.or_later(Observed::seen(count, origin));
        }
        for At { line, value } in gpus {
            let origin = self.origin(line);
            enter_gpu(value, origin, self.facts);
        }
    }
}
