//! What the management library tells of each GPU's condition: memory, performance, link, licence,
//! MIG devices; and of confidential computing.

use super::nvml::{NumberCall, ask, number};
use crate::child::report::Report;
use crate::sys::library::Answer;
use crate::sys::nvml::{Device, Nvml};
use crate::sys::nvml_health::RemappedRows;

/// `NVML_FI_DEV_RETIRED_DBE`, `_RETIRED_PENDING` (before Ampere, pages instead of rows) and
/// `_PCIE_REPLAY_COUNTER`.
const FIELDS: [(u32, &str); 3] = [(30, "retired"), (31, "retired-pending"), (94, "pcie-replays")];

/// Confidential computing. Whether the GPUs are ready means something only where it is on.
pub(super) fn system(report: &mut Report, nvml: &Nvml) {
    let on = |state: &[u32; 3]| if state[1] == 1 { "on" } else { "off" }.to_owned();
    let call = "nvmlSystemGetConfComputeState";
    let state = ask(report, call, None, || nvml.confidential_state(), on);
    if state.is_ok_and(|state| state[1] == 1) {
        let ready = |ready: &u32| if *ready == 1 { "ready" } else { "not ready" }.to_owned();
        let call = "nvmlSystemGetConfComputeGpusReadyState";
        let _ = ask(report, call, None, || nvml.confidential_ready(), ready);
    }
}

/// One GPU.
pub(super) fn device(report: &mut Report, nvml: &Nvml, device: Device, on: &str) {
    let at = Some(on);
    for call in NUMBERS {
        number(report, nvml, device, on, call);
    }
    let rows = "nvmlDeviceGetRemappedRows";
    let _ = ask(report, rows, at, || nvml.remapped_rows(device), rows_text);
    let errors = "nvmlDeviceGetTotalEccErrors";
    let work = || Ok([nvml.uncorrected_errors(device, 0)?, nvml.uncorrected_errors(device, 1)?]);
    let show = |[volatile, aggregate]: &[u64; 2]| format!("{volatile} / {aggregate}");
    let _ = ask(report, errors, at, work, show);
    let rates = "nvmlDeviceGetUtilizationRates";
    let _ = ask(report, rates, at, || nvml.utilization(device), |rates| rates[0].to_string());
    let fields = "nvmlDeviceGetFieldValues";
    let work = || nvml.device_fields(device, FIELDS.map(|(id, _)| id));
    let _ = ask(report, fields, at, work, fields_text);
    let license = "nvmlDeviceGetGridLicensableFeatures_v4";
    let _ =
        ask(report, license, at, || nvml.is_licensed(device), |licensed| license_text(*licensed));
    let mig = || nvml.device_mig(device);
    if mig() == Ok(1) {
        let devices = "nvmlDeviceGetMigDeviceHandleByIndex";
        let show = |uuids: &Vec<String>| uuids.join(" ");
        let _ = ask(report, devices, at, || nvml.mig_devices(device), show);
    }
}

const NUMBERS: [NumberCall; 5] = [
    NumberCall {
        call: "nvmlDeviceGetPerformanceState",
        function: c"nvmlDeviceGetPerformanceState",
        words: &[],
    },
    NumberCall {
        call: "nvmlDeviceGetCurrPcieLinkGeneration",
        function: c"nvmlDeviceGetCurrPcieLinkGeneration",
        words: &[],
    },
    NumberCall {
        call: "nvmlDeviceGetMaxPcieLinkGeneration",
        function: c"nvmlDeviceGetMaxPcieLinkGeneration",
        words: &[],
    },
    NumberCall {
        call: "nvmlDeviceGetCurrPcieLinkWidth",
        function: c"nvmlDeviceGetCurrPcieLinkWidth",
        words: &[],
    },
    NumberCall {
        call: "nvmlDeviceGetMaxPcieLinkWidth",
        function: c"nvmlDeviceGetMaxPcieLinkWidth",
        words: &[],
    },
];

/// `2 uncorrectable, 0 correctable, pending Yes, failed No`.
fn rows_text(rows: &RemappedRows) -> String {
    let yes = |yes: bool| if yes { "Yes" } else { "No" };
    format!(
        "{} uncorrectable, {} correctable, pending {}, failed {}",
        rows.uncorrectable,
        rows.correctable,
        yes(rows.pending),
        yes(rows.failed)
    )
}

/// `retired 0, pcie-replays 3`: the fields that this GPU has.
fn fields_text(values: &[Answer<u64>; FIELDS.len()]) -> String {
    let known = FIELDS.iter().zip(values).filter_map(|((_, name), value)| {
        value.as_ref().ok().map(|value| format!("{name} {value}"))
    });
    known.collect::<Vec<_>>().join(", ")
}

fn license_text(licensed: Option<bool>) -> String {
    match licensed {
        Some(true) => "Licensed",
        Some(false) => "Unlicensed",
        None => "N/A",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::library::Refusal;

    #[test]
    fn answers_are_told_in_words() {
        let rows = RemappedRows { correctable: 1, uncorrectable: 2, pending: true, failed: false };
        assert_eq!(rows_text(&rows), "2 uncorrectable, 1 correctable, pending Yes, failed No");
        let values = [Ok(0), Err(Refusal::Code(3)), Ok(7)];
        assert_eq!(fields_text(&values), "retired 0, pcie-replays 7");
    }
}
