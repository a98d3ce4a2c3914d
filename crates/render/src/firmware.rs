//! What a GSP firmware file tells of itself: version, chips, faults.

use std::io::{self, Write};

use facts::parse::elf_gsp::GspSummary;
use serde::Serialize;

use crate::screen::{Options, Role, Screen, Span};

/// Writes the summary of one file for a person.
pub fn write(
    out: &mut impl Write,
    path: &str,
    summary: &GspSummary,
    options: Options,
) -> io::Result<()> {
    let mut screen = Screen::new(out, options);
    let version = summary.version.as_ref().map_or("unknown".to_owned(), ToString::to_string);
    screen.paragraph(0, &Span::new(format!("{path}: GSP firmware {version}"), Role::Strong))?;
    let mut rows: Vec<Vec<Span>> = summary
        .families
        .iter()
        .map(|family| vec![Span::plain(family), Span::plain(family_text(family))])
        .collect();
    if !summary.confidential.is_empty() {
        let families = summary.confidential.join(", ");
        let text = format!("also signed for confidential computing: {families}");
        rows.push(vec![Span::plain(""), Span::plain(text)]);
    }
    for fault in &summary.faults {
        rows.push(vec![Span::new("FAULT", Role::Bad), Span::plain(fault)]);
    }
    screen.grid(2, &rows)
}

/// Architecture and chips of a family: `Blackwell: GB202, GB203, …`.
fn family_text(family: &str) -> String {
    let mut architectures: Vec<&str> = Vec::new();
    for chip in chips(family) {
        if !architectures.contains(&chip.architecture) {
            architectures.push(chip.architecture);
        }
    }
    if architectures.is_empty() {
        return "a family that this version of gpudx does not know".to_owned();
    }
    let names: Vec<&str> = chips(family).map(|chip| chip.chip).collect();
    format!("{}: {}", architectures.join(" and "), names.join(", "))
}

fn chips(family: &str) -> impl Iterator<Item = nvabi::chip::Chip> {
    nvabi::chip::all().filter(move |chip| chip.gsp_family == Some(family))
}

/// The JSON form, schema `gpudx/firmware/1`.
#[derive(Debug, Serialize)]
struct FirmwareV1<'a> {
    schema: &'static str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    families: Vec<FamilyV1<'a>>,
    confidential: &'a [String],
    complete: bool,
    faults: &'a [String],
}

/// A family and its chips.
#[derive(Debug, Serialize)]
struct FamilyV1<'a> {
    family: &'a str,
    chips: Vec<&'static str>,
}

/// Writes the summary of one file as one JSON object.
pub fn write_json(out: &mut impl Write, path: &str, summary: &GspSummary) -> io::Result<()> {
    let family =
        |family: &'_ String| -> Vec<&'static str> { chips(family).map(|chip| chip.chip).collect() };
    let form = FirmwareV1 {
        schema: "gpudx/firmware/1",
        path,
        version: summary.version.as_ref().map(ToString::to_string),
        families: summary
            .families
            .iter()
            .map(|name| FamilyV1 { family: name, chips: family(name) })
            .collect(),
        confidential: &summary.confidential,
        complete: summary.complete,
        faults: &summary.faults,
    };
    serde_json::to_writer_pretty(&mut *out, &form).map_err(io::Error::from)?;
    writeln!(out)
}
