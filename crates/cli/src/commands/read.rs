//! `gpudx read FILE…`

use std::path::{Path, PathBuf};

use crate::args::{ColorWhen, ReadArgs};
use crate::exit::Exit;
use crate::{output, source};

use super::report;

/// Reads the inputs as one and prints the report.
pub(crate) fn run(args: &ReadArgs, color: ColorWhen) -> Exit {
    let raw = match source::inputs(&args.inputs) {
        Ok(raw) => raw,
        Err(message) => return output::complain(&message, Exit::Undetermined),
    };
    let judged = match report::judged(&raw) {
        Ok(judged) => judged,
        Err(exit) => return exit,
    };
    let name = name_of(&args.inputs);
    if !judged.facts.mentions_gpu {
        let message = format!("nothing about a GPU in this input ({name})");
        return output::complain(&message, Exit::Undetermined);
    }
    report::print(judged, &name, &args.report, color)
}

/// The inputs as the head line names them.
fn name_of(inputs: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        if path == Path::new("-") {
            return "standard input".to_owned();
        }
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    };
    match inputs {
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
        [] => "no input".to_owned(),
    }
}
