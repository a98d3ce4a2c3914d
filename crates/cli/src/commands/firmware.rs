//! `gpudx firmware FILE`

use crate::args::{ColorWhen, DataFormat, FirmwareArgs};
use crate::exit::Exit;
use crate::{judge, output, source};

/// Prints what a GSP firmware file tells of itself. A file with faults is a fault found.
pub(crate) fn run(args: &FirmwareArgs, color: ColorWhen) -> Exit {
    let path = args.file.display().to_string();
    let read = judge::guarded("reading the firmware file", || source::firmware(&args.file));
    let summary = match read.and_then(|summary| summary) {
        Ok(summary) => summary,
        Err(message) => return output::complain(&message, Exit::Undetermined),
    };
    if summary.families.is_empty() && summary.version.is_none() {
        let what = summary.faults.join("; ");
        return output::complain(&format!("{path}: no GSP firmware ({what})"), Exit::Fault);
    }
    let exit = if summary.faults.is_empty() { Exit::Fine } else { Exit::Fault };
    let options = output::options(color, false);
    output::print(exit, |out| match args.format {
        DataFormat::Text => render::firmware::write(out, &path, &summary, options),
        DataFormat::Json => render::firmware::write_json(out, &path, &summary),
    })
}
