//! Every observation of the facts as a line of text with its origin, layer by layer.

mod answers;
mod listing;
mod machine;
mod software;

use facts::{Facts, Layer, Origin};

use listing::Listing;

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Its layer.
    pub layer: Layer,
    /// Its name within the layer: `uvm_disable_hmm`.
    pub name: String,
    /// What was seen: a value, `absent`, `refused (EACCES)`, `did not end in time`.
    pub value: String,
    /// Where; `None` when nobody looked.
    pub origin: Option<Origin>,
    /// True when a value was seen.
    pub seen: bool,
}

impl Observation {
    /// True when somebody looked, whatever came of it.
    pub fn was_looked_for(&self) -> bool {
        self.origin.is_some()
    }

    /// Layer and name: `uvm.uvm_disable_hmm`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.layer.name(), self.name)
    }
}

/// All observations, bottom to top.
pub fn list(facts: &Facts) -> Vec<Observation> {
    let mut listing = Listing::default();
    machine::pci(&facts.pci, &mut listing);
    machine::host(&facts.host, &mut listing);
    machine::module(&facts.module, &mut listing);
    machine::firmware(&facts.firmware, &mut listing);
    machine::log(&facts.log, &mut listing);
    software::node(&facts.node, &mut listing);
    software::sandbox(&facts.sandbox, &mut listing);
    software::library(&facts.library, &mut listing);
    software::process(&facts.process, &mut listing);
    answers::nvml(&facts.nvml, &mut listing);
    answers::fabric(&facts.fabric, &mut listing);
    answers::cuda(&facts.cuda, &mut listing);
    answers::framework(&facts.framework, &mut listing);
    listing.observations
}
