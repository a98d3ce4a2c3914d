//! The files below /proc/driver/nvidia, in the layouts of branches 390 to 610.

use super::{At, Parsed, numbered};
use crate::model::module::{Flavour, GpuInformation, NvrmVersion};
use crate::model::pci::PciAddress;
use crate::version::DriverVersion;

/// What /proc/driver/nvidia/version says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionFile {
    /// Version and flavour of the loaded module, from the `NVRM version:` line.
    pub nvrm: Option<At<NvrmVersion>>,
    /// The architecture that the module was built for, such as `x86_64`.
    pub arch: Option<At<String>>,
    /// The compiler of the module's build, from the `GCC version:` line (clang is named there too).
    pub compiler: Option<At<String>>,
}

/// A name and its value, with the line they stood on.
pub type Setting = At<(String, String)>;

/// Architectures as the `NVRM version:` line writes them.
const ARCHITECTURES: [&str; 5] = ["x86_64", "aarch64", "ppc64le", "i386", "armv7l"];

/// Reads /proc/driver/nvidia/version.
///
/// The proprietary module says `NVIDIA UNIX x86_64 Kernel Module  535.183.01  <date>`, the open one
/// `NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build  (user@host)  <date>`.
pub fn version(text: &str) -> Parsed<VersionFile> {
    let mut parsed = Parsed::<VersionFile>::default();
    for (line, content) in numbered(text) {
        if content.trim().is_empty() {
            continue;
        }
        match content.split_once(':').map(|(key, rest)| (key.trim(), rest.trim())) {
            Some(("NVRM version", rest)) => match nvrm_version(rest) {
                Some(nvrm) => {
                    parsed.value.nvrm = Some(At::new(line, nvrm));
                    parsed.value.arch = architecture(rest).map(|arch| At::new(line, arch));
                }
                None => parsed.complain(line, "an NVRM version line without a version"),
            },
            Some(("GCC version", rest)) => {
                parsed.value.compiler = Some(At::new(line, rest.to_owned()));
            }
            _ => parsed.complain(line, "not a line of /proc/driver/nvidia/version"),
        }
    }
    parsed
}

/// Reads what follows `NVRM version:`. `None` when there is no version in it.
fn nvrm_version(rest: &str) -> Option<NvrmVersion> {
    let version = rest.split_whitespace().find_map(DriverVersion::parse)?;
    let flavour = if rest.contains("Open Kernel Module") {
        Some(Flavour::Open)
    } else if rest.contains("Kernel Module") {
        Some(Flavour::Proprietary)
    } else {
        None
    };
    Some(NvrmVersion { version, flavour })
}

fn architecture(rest: &str) -> Option<String> {
    rest.split_whitespace().find(|word| ARCHITECTURES.contains(word)).map(str::to_owned)
}

/// Reads /proc/driver/nvidia/params: one `Name: value` a line, strings in quotes.
///
/// Numbers are decimal there, also the ones that are written in hexadecimal or octal elsewhere:
/// `DeviceFileMode: 438` is 0666.
pub fn params(text: &str) -> Parsed<Vec<Setting>> {
    settings(text, "not a `Name: value` line of the parameters")
}

/// Reads /proc/driver/nvidia/registry or a GPU's own: `Binary: "…"`, in older branches further
/// lines of the same form.
pub fn registry(text: &str) -> Parsed<Vec<Setting>> {
    settings(text, "not a `Name: value` line of the registry")
}

fn settings(text: &str, problem: &str) -> Parsed<Vec<Setting>> {
    let mut parsed = Parsed::<Vec<Setting>>::default();
    for (line, content) in numbered(text) {
        match content.split_once(':') {
            Some((name, value)) if is_name(name.trim()) => {
                let value = value.trim().trim_matches('"');
                parsed.value.push(At::new(line, (name.trim().to_owned(), value.to_owned())));
            }
            _ if content.trim().is_empty() => {}
            _ => parsed.complain(line, problem),
        }
    }
    parsed
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Reads /proc/driver/nvidia/gpus/BDF/information.
///
/// Up to 450 the last line is `Blacklisted:`, from 455 on `GPU Excluded:`; `GPU Firmware:` came
/// with 470.
pub fn information(text: &str) -> Parsed<GpuInformation> {
    let mut parsed = Parsed::<GpuInformation>::default();
    for (line, content) in numbered(text) {
        if content.trim().is_empty() {
            continue;
        }
        let understood = content
            .split_once(':')
            .is_some_and(|(key, value)| enter(&mut parsed.value, key.trim(), value.trim()));
        if !understood {
            parsed.complain(line, "not a line of a GPU's information that is known");
        }
    }
    parsed
}

/// Enters one line; false when the key or the form of its value is not known.
fn enter(gpu: &mut GpuInformation, key: &str, value: &str) -> bool {
    match key {
        "Model" => gpu.model = Some(value.to_owned()),
        "GPU UUID" => gpu.uuid = Some(value.to_owned()),
        "Video BIOS" => gpu.video_bios = Some(value.to_owned()),
        "GPU Firmware" => gpu.gpu_firmware = Some(value.to_owned()),
        "IRQ" => gpu.irq = value.parse().ok(),
        "Device Minor" => gpu.minor = value.parse().ok(),
        "Bus Location" => gpu.address = PciAddress::parse(value),
        "GPU Excluded" | "Blacklisted" | "GPU Blacklisted" => gpu.excluded = yes_or_no(value),
        "Bus Type" | "DMA Size" | "DMA Mask" => {}
        _ => return false,
    }
    match key {
        "IRQ" => gpu.irq.is_some(),
        "Device Minor" => gpu.minor.is_some(),
        "Bus Location" => gpu.address.is_some(),
        "GPU Excluded" | "Blacklisted" | "GPU Blacklisted" => gpu.excluded.is_some(),
        _ => true,
    }
}

fn yes_or_no(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

/// Reads /proc/driver/nvidia/gpus/BDF/power. A line that is indented belongs to the heading above
/// it; its name becomes `Heading: Name`, such as `S0ix Power Management: Status`.
pub fn power(text: &str) -> Parsed<Vec<Setting>> {
    let mut parsed = Parsed::<Vec<Setting>>::default();
    let mut heading = String::new();
    for (line, content) in numbered(text) {
        let Some((name, value)) = content.trim().split_once(':') else {
            if !content.trim().is_empty() {
                parsed.complain(line, "not a `Name: value` line of a GPU's power state");
            }
            continue;
        };
        let indented = content.starts_with([' ', '\t']);
        if value.trim().is_empty() {
            name.clone_into(&mut heading);
        } else if indented && !heading.is_empty() {
            let name = format!("{heading}: {name}");
            parsed.value.push(At::new(line, (name, value.trim().to_owned())));
        } else {
            parsed.value.push(At::new(line, (name.to_owned(), value.trim().to_owned())));
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_lines_of_all_branches() {
        let samples = [
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022\n\
                 GCC version:  gcc version 12.2.0 (Debian 12.2.0-14) \n",
                "390.157",
                Some(Flavour::Proprietary),
                "x86_64",
            ),
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n\
                 GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04) \n",
                "535.183.01",
                Some(Flavour::Proprietary),
                "x86_64",
            ),
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build  \
                 (dvs-builder@U22-I3-AM17-11-4)  Mon Dec  8 13:05:00 UTC 2025\n\
                 GCC version:  Ubuntu clang version 18.1.3 (1ubuntu1)\n",
                "590.48.01",
                Some(Flavour::Open),
                "x86_64",
            ),
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  610.43.03  Release Build\n",
                "610.43.03",
                Some(Flavour::Open),
                "aarch64",
            ),
        ];
        for (text, version_text, flavour, arch) in samples {
            let parsed = version(text);
            assert_eq!(parsed.complaints, [], "{text}");
            let nvrm = parsed.value.nvrm.unwrap();
            assert_eq!((nvrm.line, nvrm.value.version.to_string()), (1, version_text.to_owned()));
            assert_eq!(nvrm.value.flavour, flavour);
            assert_eq!(parsed.value.arch.unwrap().value, arch);
        }
        let odd = version("NVRM version: none\nhello\n");
        assert_eq!(odd.value, VersionFile::default());
        assert_eq!(odd.complaints.len(), 2);
    }

    #[test]
    fn parameters_keep_their_decimal_numbers_and_lose_their_quotes() {
        let parsed = params(
            "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileMode: 438\n\
             RegistryDwords: \"RMForceP2PType=1;ForceP2P=0x11\"\nExcludedGpus: \"\"\n",
        );
        assert_eq!(parsed.complaints, []);
        let values: Vec<_> = parsed.value.iter().map(|at| at.value.1.as_str()).collect();
        assert_eq!(values, ["4294967295", "1", "438", "RMForceP2PType=1;ForceP2P=0x11", ""]);
        assert_eq!(
            registry("Binary: \"\"\n").value,
            [At::new(1, ("Binary".into(), String::new()))]
        );
    }

    #[test]
    fn information_of_a_running_gpu_and_of_one_that_was_never_initialised() {
        let running = information(
            "Model: \t\t NVIDIA H200\nIRQ:   \t\t 143\nGPU UUID: \t GPU-00000000-0000-0000-0000-000000000001\n\
             Video BIOS: \t 96.00.bc.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n\
             DMA Mask: \t 0xfffffffffffff\nBus Location: \t 0000:00:06.0\nDevice Minor: \t 0\n\
             GPU Firmware: \t 580.159.04\nGPU Excluded:\t No\n",
        );
        assert_eq!(running.complaints, []);
        assert_eq!(running.value.model.as_deref(), Some("NVIDIA H200"));
        assert_eq!(running.value.address, PciAddress::parse("0000:00:06.0"));
        assert_eq!((running.value.irq, running.value.minor), (Some(143), Some(0)));
        assert_eq!(running.value.gpu_firmware.as_deref(), Some("580.159.04"));
        assert_eq!(running.value.excluded, Some(false));

        let old = information(
            "Model: \t\t Unknown\nIRQ:   \t\t 0\nGPU UUID: \t GPU-????????-????-????-????-????????????\n\
             Video BIOS: \t ??.??.??.??.??\nBus Type: \t PCIe\nDMA Size: \t 36 bits\n\
             DMA Mask: \t 0xfffffffff\nBus Location: \t 0000:81:00.0\nDevice Minor: \t 1\n\
             Blacklisted:\t Yes\n",
        );
        assert_eq!(old.complaints, []);
        assert_eq!(old.value.gpu_firmware, None);
        assert_eq!((old.value.irq, old.value.excluded), (Some(0), Some(true)));

        assert_eq!(information("IRQ: many\nColour: green\n").complaints.len(), 2);
    }

    #[test]
    fn power_lines_carry_their_heading() {
        let parsed = power(
            "Runtime D3 status:          Disabled by default\nVideo Memory:               Active\n\n\
             GPU Hardware Support:\n Video Memory Self Refresh: Not Supported\n \
             Video Memory Off:          Supported\n\nS0ix Power Management:\n \
             Platform Support:          Not Supported\n Status:                    Disabled\n\n\
             Notebook Dynamic Boost:     Not Supported\n",
        );
        assert_eq!(parsed.complaints, []);
        let find = |name: &str| {
            parsed.value.iter().find(|at| at.value.0 == name).map(|at| at.value.1.as_str())
        };
        assert_eq!(find("Runtime D3 status"), Some("Disabled by default"));
        assert_eq!(find("GPU Hardware Support: Video Memory Off"), Some("Supported"));
        assert_eq!(find("S0ix Power Management: Status"), Some("Disabled"));
        assert_eq!(find("Notebook Dynamic Boost"), Some("Not Supported"));
    }
}
