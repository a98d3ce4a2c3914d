//! Does CUDA come up? Load, cuInit, versions, count, each device; with a context also memory and
//! a kernel. How far it got is the finding.

use std::fmt::Write as _;
use std::path::Path;

use facts::model::experiment::Change;

use super::reader::Reader;
use super::{Options, cuinit_kernel, nodes};
use crate::child::report::{Failure, Report};
use crate::sys::cuda::{self, Cuda, Device};
use crate::sys::library::Answer;

/// Most devices that are asked; CUDA itself lists at most 64.
const DEVICES_LIMIT: i32 = 64;

/// Longest map of this process's memory that is told; with a driver library it has about 10 KiB.
const MAPS_LIMIT_BYTES: usize = 256 * 1024;

/// Runs the stages until one fails.
pub(super) fn run(report: &mut Report, options: &Options) {
    if let Some(reason) = nodes::would_load_module() {
        report.note("not-tried", reason);
        return;
    }
    let library = match &options.change {
        Change::Library(path) => path.as_str(),
        _ => cuda::LIBRARY,
    };
    let load = || Cuda::load(library).map_err(|text| Failure { code: 1, text: Some(text) });
    let Ok(cuda) = report.call("load", Some(library), load, |_| None) else { return };
    if let Some(path) = cuda.path() {
        report.note("mapped-libcuda", real_path(path));
    }
    // A process can always read its own map: nothing else holds its memory's lock yet. It shows
    // also what was preloaded and may stand between the program and the driver.
    Reader::new(Path::new("/")).file(report, "/proc/self/maps", MAPS_LIMIT_BYTES);
    // The stages follow each other; each failure is recorded by the call itself.
    let _ = stages(report, &cuda, options);
}

/// The file behind the name that the loader used.
pub(super) fn real_path(path: String) -> String {
    match std::fs::canonicalize(&path) {
        Ok(real) => real.to_string_lossy().into_owned(),
        Err(_) => path,
    }
}

fn stages(report: &mut Report, cuda: &Cuda, options: &Options) -> Result<(), i64> {
    ask(report, "cuInit", None, || cuda.init(), |()| String::new())?;
    // Older libraries answer it before cuInit too; its failure does not stop CUDA.
    let _ = ask(report, "cuDriverGetVersion", None, || cuda.driver_version(), i32::to_string);
    let count = ask(report, "cuDeviceGetCount", None, || cuda.device_count(), i32::to_string)?;
    for ordinal in 0..count.min(DEVICES_LIMIT) {
        let on = ordinal.to_string();
        let device = ask(report, "cuDeviceGet", Some(&on), || cuda.device(ordinal), no_text)?;
        describe(report, cuda, device, &on)?;
        if options.context {
            cuinit_kernel::run(report, cuda, device, &on)?;
        }
    }
    Ok(())
}

fn describe(report: &mut Report, cuda: &Cuda, device: Device, on: &str) -> Result<(), i64> {
    let on = Some(on);
    ask(report, "cuDeviceGetName", on, || cuda.device_name(device), String::clone)?;
    let _ = ask(report, "cuDeviceGetUuid", on, || cuda.device_uuid(device), uuid_text);
    ask(report, "cuDeviceGetPCIBusId", on, || cuda.device_pci(device), String::clone)?;
    let show = |(major, minor): &(i32, i32)| format!("{major}.{minor}");
    ask(report, "cuDeviceGetAttribute", on, || cuda.device_capability(device), show)?;
    Ok(())
}

/// One call of the library.
pub(super) fn ask<T>(
    report: &mut Report,
    call: &str,
    on: Option<&str>,
    work: impl FnOnce() -> Answer<T>,
    show: impl FnOnce(&T) -> String,
) -> Result<T, i64> {
    report.driver_call(call, on, cuda::NOT_FOUND, work, show)
}

/// For values that say nothing by themselves, such as handles.
pub(super) fn no_text<T>(_: &T) -> String {
    String::new()
}

/// The form in which the driver's tools print a UUID.
fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::from("GPU-");
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_look_as_the_tools_print_them() {
        let uuid: [u8; 16] = std::array::from_fn(|index| u8::try_from(index * 17).unwrap());
        assert_eq!(uuid_text(&uuid), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }
}
