//! The sentences that `nvidia-smi` prints instead of, or above, what it was asked for.

use super::{At, Parsed, numbered};
use crate::model::pci::PciAddress;
use crate::version::DriverVersion;

/// One sentence, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmiMessage {
    /// nvmlInit failed; the code of nvml.h that the words stand for.
    InitFailed(i64),
    /// NVML answers and counts no GPU: `No devices were found`.
    NoDevices,
    /// One GPU does not answer: its address, and the code if the words are known.
    DeviceFailed(Option<PciAddress>, Option<i64>),
    /// `NVML library version: 565.57`, printed below a version mismatch.
    LibraryVersion(DriverVersion),
    /// The loader finds no libnvidia-ml.
    LibraryMissing,
    /// The program itself is not there.
    CommandMissing,
}

/// The texts of nvmlErrorString with their codes (nvml.h).
const ERROR_TEXTS: [(&str, i64); 19] = [
    ("Driver/library version mismatch", 18),
    ("Unknown Error", 999),
    ("Insufficient Permissions", 4),
    ("Driver Not Loaded", 9),
    ("GPU access blocked by the operating system", 17),
    ("GPU is lost", 15),
    ("GPU requires reset", 16),
    ("Not Supported", 3),
    ("Not Found", 6),
    ("Invalid Argument", 2),
    ("Already Initialized", 5),
    ("Uninitialized", 1),
    ("Insufficient External Power", 8),
    ("Timeout", 10),
    ("Interrupt Request Issue", 11),
    ("Shared Library Not Found", 12),
    ("Function Not Found", 13),
    ("In use by another client", 19),
    ("Insufficient Memory", 20),
];

const LINE_LIMIT: usize = 1024;

/// Reads the sentences; all other lines are passed over.
pub fn parse(text: &str) -> Parsed<Vec<At<SmiMessage>>> {
    let found = numbered(text)
        .filter(|(_, line)| line.len() <= LINE_LIMIT)
        .filter_map(|(number, line)| Some(At::new(number, message(line.trim())?)));
    Parsed::clean(found.take(256).collect())
}

fn message(line: &str) -> Option<SmiMessage> {
    if let Some((_, rest)) = line.split_once("Failed to initialize NVML:") {
        return Some(SmiMessage::InitFailed(code_of(rest).unwrap_or(999)));
    }
    if line.contains("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver")
    {
        return Some(SmiMessage::InitFailed(9));
    }
    if line.contains("NVIDIA-SMI couldn't find libnvidia-ml.so") {
        return Some(SmiMessage::LibraryMissing);
    }
    if let Some((_, rest)) = line.split_once("NVML library version:") {
        return DriverVersion::parse(rest).map(SmiMessage::LibraryVersion);
    }
    if let Some((_, rest)) = line.split_once("nable to determine the device handle for ") {
        return Some(device_message(rest));
    }
    if line.contains("nvidia-smi")
        && (line.contains("command not found") || line.contains("nvidia-smi: not found"))
    {
        return Some(SmiMessage::CommandMissing);
    }
    line.starts_with("No devices were found").then_some(SmiMessage::NoDevices)
}

fn code_of(text: &str) -> Option<i64> {
    ERROR_TEXTS.iter().find(|(words, _)| text.contains(words)).map(|(_, code)| *code)
}

/// `GPU 0000:81:00.0: GPU is lost.  Reboot the system to recover this GPU`; from 545 on with the
/// index before the address: `GPU0: 0000:81:00.0: Unknown Error`.
fn device_message(rest: &str) -> SmiMessage {
    let address = rest.split([' ', '\t']).find_map(|word| {
        word.contains(':').then(|| PciAddress::parse(word.trim_end_matches(':')))?
    });
    SmiMessage::DeviceFailed(address, code_of(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Option<SmiMessage> {
        parse(line).value.pop().map(|found| found.value)
    }

    #[test]
    fn sentences_become_codes() {
        assert_eq!(
            one("Failed to initialize NVML: Driver/library version mismatch"),
            Some(SmiMessage::InitFailed(18))
        );
        assert_eq!(
            one("Failed to initialize NVML: Unknown Error"),
            Some(SmiMessage::InitFailed(999))
        );
        assert_eq!(one("No devices were found"), Some(SmiMessage::NoDevices));
        assert_eq!(one("bash: nvidia-smi: command not found"), Some(SmiMessage::CommandMissing));
        assert_eq!(
            one("NVML library version: 565.57"),
            DriverVersion::parse("565.57").map(SmiMessage::LibraryVersion)
        );
        assert_eq!(
            one("Unable to determine the device handle for GPU 0000:81:00.0: GPU is lost.  Reboot"),
            Some(SmiMessage::DeviceFailed(PciAddress::parse("0000:81:00.0"), Some(15)))
        );
        assert_eq!(one("nvidia-smi fine, 0 % utilisation"), None);
    }
}
