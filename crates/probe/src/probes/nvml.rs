//! What the management library answers, each call timed by itself: some answer while others hang.

use std::ffi::CStr;

use super::cuinit::real_path;
use super::{Options, nodes, nvml_health as health};
use crate::child::report::{Failure, Report};
use crate::sys::library::Answer;
use crate::sys::nvml::{self, Device, FabricInfo, Nvml, PciInfo};

/// Most devices that are asked.
const DEVICES_LIMIT: u32 = 64;

/// Runs all calls. A call that fails does not stop the others; one that hangs does.
pub(super) fn run(report: &mut Report, _: &Options) {
    if let Some(reason) = nodes::would_load_module() {
        report.note("not-tried", reason);
        return;
    }
    let load = || Nvml::load().map_err(|text| Failure { code: 1, text: Some(text) });
    let Ok(nvml) = report.call("load", Some(nvml::LIBRARY), load, |_| None) else { return };
    if let Some(path) = nvml.path() {
        report.note("mapped-libnvidia-ml", real_path(path));
    }
    if ask(report, "nvmlInit_v2", None, || nvml.init(), |()| String::new()).is_err() {
        return;
    }
    let text = |report: &mut Report, call: &str, function: &CStr| {
        let _ = ask(report, call, None, || nvml.system_text(function), String::clone);
    };
    text(report, "nvmlSystemGetDriverVersion", c"nvmlSystemGetDriverVersion");
    text(report, "nvmlSystemGetNVMLVersion", c"nvmlSystemGetNVMLVersion");
    let number = |report: &mut Report, call: &str, function: &CStr| {
        ask(report, call, None, || nvml.system_number(function), i32::to_string)
    };
    let _ =
        number(report, "nvmlSystemGetCudaDriverVersion_v2", c"nvmlSystemGetCudaDriverVersion_v2");
    let count = number(report, "nvmlDeviceGetCount_v2", c"nvmlDeviceGetCount_v2");
    let count = u32::try_from(count.unwrap_or(0)).unwrap_or(0).min(DEVICES_LIMIT);
    let mut devices = Vec::new();
    for index in 0..count {
        let on = index.to_string();
        let call = "nvmlDeviceGetHandleByIndex_v2";
        let found = ask(report, call, Some(&on), || nvml.device(index), |_| String::new());
        devices.extend(found.map(|device| (on, device)));
    }
    // The quick calls of all devices come first, so that a slow or hanging one at the end, which
    // on some drivers goes through nvidia-uvm, costs no knowledge of the other devices.
    for (on, device) in &devices {
        identity(report, &nvml, *device, on);
    }
    for (on, device) in &devices {
        state(report, &nvml, *device, on);
    }
    health::system(report, &nvml);
    for (on, device) in &devices {
        health::device(report, &nvml, *device, on);
    }
    for (on, device) in &devices {
        let call = "nvmlDeviceGetAddressingMode";
        let work = || nvml.device_addressing(*device);
        let _ = ask(report, call, Some(on), work, |mode| word(ADDRESSING_MODES, *mode));
    }
}

pub(super) fn ask<T>(
    report: &mut Report,
    call: &str,
    on: Option<&str>,
    work: impl FnOnce() -> Answer<T>,
    show: impl FnOnce(&T) -> String,
) -> Result<T, i64> {
    report.driver_call(call, on, nvml::FUNCTION_NOT_FOUND, work, show)
}

fn identity(report: &mut Report, nvml: &Nvml, device: Device, on: &str) {
    let text = |report: &mut Report, call: &str, function: &CStr| {
        let _ = ask(report, call, Some(on), || nvml.device_text(function, device), String::clone);
    };
    text(report, "nvmlDeviceGetName", c"nvmlDeviceGetName");
    text(report, "nvmlDeviceGetUUID", c"nvmlDeviceGetUUID");
    let pci = "nvmlDeviceGetPciInfo_v3";
    let _ = ask(report, pci, Some(on), || nvml.device_pci(device), pci_text);
    number(report, nvml, device, on, MINOR);
    number(report, nvml, device, on, ARCHITECTURE);
    text(report, "nvmlDeviceGetGspFirmwareVersion", c"nvmlDeviceGetGspFirmwareVersion");
}

fn state(report: &mut Report, nvml: &Nvml, device: Device, on: &str) {
    let on_device = Some(on);
    number(report, nvml, device, on, COMPUTE_MODE);
    let mig = "nvmlDeviceGetMigMode";
    let _ = ask(report, mig, on_device, || nvml.device_mig(device), u32::to_string);
    number(report, nvml, device, on, PERSISTENCE);
    let memory = "nvmlDeviceGetMemoryInfo";
    let _ = ask(report, memory, on_device, || nvml.device_memory(device), memory_text);
    number(report, nvml, device, on, VIRTUALIZATION);
    let fabric = "nvmlDeviceGetGpuFabricInfoV";
    let _ = ask(report, fabric, on_device, || nvml.device_fabric(device), fabric_text);
    let recovery = "nvmlDeviceGetRecoveryAction";
    let work = || nvml.device_recovery(device);
    let _ = ask(report, recovery, on_device, work, |action| recovery_text(*action));
}

/// A call that answers one number, and the words for its values.
#[derive(Clone, Copy)]
pub(super) struct NumberCall {
    pub(super) call: &'static str,
    pub(super) function: &'static CStr,
    pub(super) words: &'static [(u32, &'static str)],
}

const MINOR: NumberCall = NumberCall {
    call: "nvmlDeviceGetMinorNumber",
    function: c"nvmlDeviceGetMinorNumber",
    words: &[],
};
const ARCHITECTURE: NumberCall = NumberCall {
    call: "nvmlDeviceGetArchitecture",
    function: c"nvmlDeviceGetArchitecture",
    words: &[
        (2, "Kepler"),
        (3, "Maxwell"),
        (4, "Pascal"),
        (5, "Volta"),
        (6, "Turing"),
        (7, "Ampere"),
        (8, "Ada Lovelace"),
        (9, "Hopper"),
        (10, "Blackwell"),
        (13, "Rubin"),
    ],
};
const COMPUTE_MODE: NumberCall = NumberCall {
    call: "nvmlDeviceGetComputeMode",
    function: c"nvmlDeviceGetComputeMode",
    words: &[(0, "Default"), (1, "Exclusive_Thread"), (2, "Prohibited"), (3, "Exclusive_Process")],
};
const PERSISTENCE: NumberCall = NumberCall {
    call: "nvmlDeviceGetPersistenceMode",
    function: c"nvmlDeviceGetPersistenceMode",
    words: &[],
};
const VIRTUALIZATION: NumberCall = NumberCall {
    call: "nvmlDeviceGetVirtualizationMode",
    function: c"nvmlDeviceGetVirtualizationMode",
    words: &[(0, "None"), (1, "Pass-Through"), (2, "VGPU"), (3, "Host VGPU"), (4, "Host VSGA")],
};

const ADDRESSING_MODES: &[(u32, &str)] = &[(0, "None"), (1, "HMM"), (2, "ATS")];

pub(super) fn number(
    report: &mut Report,
    nvml: &Nvml,
    device: Device,
    on: &str,
    which: NumberCall,
) {
    let work = || nvml.device_number(which.function, device);
    let _ = ask(report, which.call, Some(on), work, |value| word(which.words, *value));
}

/// The word for a value; the number where there is none.
fn word(words: &[(u32, &str)], value: u32) -> String {
    let known = words.iter().find(|(number, _)| *number == value);
    known.map_or_else(|| value.to_string(), |(_, word)| (*word).to_owned())
}

fn pci_text(info: &PciInfo) -> String {
    // nvml.h has the device in the upper half and the vendor in the lower.
    let (device, vendor) = (info.device_id >> 16, info.device_id & u32::from(u16::MAX));
    format!("{} {vendor:04x}:{device:04x}", info.bus_id)
}

/// Used and total memory in MiB. The second of the three numbers is what is free.
fn memory_text([total, _, used]: &[u64; 3]) -> String {
    format!("{} / {}", used >> 20, total >> 20)
}

fn fabric_text(info: &FabricInfo) -> String {
    const STATES: &[(u32, &str)] =
        &[(0, "Not Supported"), (1, "Not Started"), (2, "In Progress"), (3, "Completed")];
    let state = word(STATES, u32::from(info.state));
    let status = word(&[(0, "Success")], info.status);
    format!("{state}; {status}; health {:#x}", info.health)
}

fn recovery_text(action: u64) -> String {
    const ACTIONS: &[(u32, &str)] = &[
        (0, "None"),
        (1, "Reset"),
        (2, "Reboot"),
        (3, "Drain P2P"),
        (4, "Drain and Reset"),
        (5, "Recover IMEX Domain"),
        (6, "Bus Reset"),
        (7, "System Reboot"),
    ];
    word(ACTIONS, u32::try_from(action).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_written_as_nvidia_smi_writes_them() {
        let info = PciInfo { bus_id: "00000000:06:00.0".into(), device_id: 0x2335_10de };
        assert_eq!(pci_text(&info), "00000000:06:00.0 10de:2335");
        assert_eq!(memory_text(&[143_771 << 20, 1, 4 << 20]), "4 / 143771");
        let fabric = FabricInfo { state: 3, status: 0, health: 0x155 };
        assert_eq!(fabric_text(&fabric), "Completed; Success; health 0x155");
        assert_eq!(recovery_text(2), "Reboot");
        assert_eq!(word(ARCHITECTURE.words, 99), "99");
    }
}
