//! Collects observations.

use std::collections::BTreeMap;
use std::fmt::Display;

use facts::{Layer, Observed, Origin, Seen, Why};

use super::Observation;

/// The observations found so far.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) observations: Vec<Observation>,
}

impl Listing {
    /// Enters a four-valued reading; `show` words the value.
    pub(super) fn observed<T>(
        &mut self,
        layer: Layer,
        name: impl Into<String>,
        reading: &Observed<T>,
        show: impl FnOnce(&T) -> String,
    ) {
        let value = match reading {
            Observed::Seen(seen) => show(&seen.value),
            Observed::Absent(_) => "absent".to_owned(),
            Observed::Denied(errno, _) => format!("refused ({errno})"),
            Observed::Unknown(Why::NotTried) => "not tried".to_owned(),
            Observed::Unknown(Why::TimedOut(_)) => "the look did not end in time".to_owned(),
            Observed::Unknown(Why::Unparsed(_)) => "not understood".to_owned(),
            Observed::Unknown(Why::NotInInput) => "not in this input".to_owned(),
        };
        self.observations.push(Observation {
            layer,
            name: name.into(),
            value,
            origin: reading.origin().cloned(),
            seen: reading.is_seen(),
        });
    }

    /// Enters a list by what came of the look for it, where that was not entries: those are
    /// entered one by one.
    pub(super) fn whole_list<T>(&mut self, layer: Layer, name: &str, reading: &Observed<Vec<T>>) {
        if reading.value().is_none_or(Vec::is_empty) {
            self.observed(layer, name, reading, |_| "none".to_owned());
        }
    }

    /// Enters a reading whose value prints itself.
    pub(super) fn shown<T: Display>(&mut self, layer: Layer, name: &str, reading: &Observed<T>) {
        self.observed(layer, name, reading, ToString::to_string);
    }

    /// Enters a yes or no.
    pub(super) fn yes_no(&mut self, layer: Layer, name: &str, reading: &Observed<bool>) {
        self.observed(layer, name, reading, |yes| if *yes { "yes" } else { "no" }.to_owned());
    }

    /// Enters readings by name.
    pub(super) fn map<T>(
        &mut self,
        layer: Layer,
        prefix: &str,
        readings: &BTreeMap<String, Observed<T>>,
        show: impl Fn(&T) -> String,
    ) {
        for (name, reading) in readings {
            self.observed(layer, format!("{prefix}{name}"), reading, &show);
        }
    }

    /// Enters a value that was seen.
    pub(super) fn value(
        &mut self,
        layer: Layer,
        name: impl Into<String>,
        value: impl Into<String>,
        origin: &Origin,
    ) {
        self.observations.push(Observation {
            layer,
            name: name.into(),
            value: value.into(),
            origin: Some(origin.clone()),
            seen: true,
        });
    }

    /// Enters values that were seen, numbered by their place.
    pub(super) fn list<T>(
        &mut self,
        layer: Layer,
        name: &str,
        values: &[Seen<T>],
        show: impl Fn(&T) -> String,
    ) {
        for (number, seen) in values.iter().enumerate() {
            self.value(layer, format!("{name}[{number}]"), show(&seen.value), &seen.origin);
        }
    }
}

/// Joins the parts that are known: `("name", Some("x"))` becomes `name x`.
pub(super) fn known_parts(parts: &[(&str, Option<String>)]) -> String {
    let known = parts.iter().filter_map(|(label, value)| {
        let value = value.as_ref()?;
        Some(if label.is_empty() { value.clone() } else { format!("{label} {value}") })
    });
    known.collect::<Vec<_>>().join(", ")
}
