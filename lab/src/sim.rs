//! Without a GPU: the real libraries over a stand-in for the kernel side, with every row of the fault
//! matrices as a fault.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use nvabi::fault_matrix::{self, Answer};
use synth::driver_packages::{Branch, real_driver};

use crate::codes::{Codes, Recorded};
use crate::expectations;
use crate::fault::{Caps, Fault};
use crate::machine::{KernelSide, Machine};

/// This machine with a pretended driver in it.
pub(crate) fn machine(binaries: &Path, branch: &str) -> Result<Machine> {
    let branch = match branch {
        "535" => Branch::B535,
        "550" => Branch::B550,
        "555" => Branch::B555,
        _ => bail!("there are libraries of 535, 550 and 555"),
    };
    let mut machine = Machine::find(binaries, &["libfakerm.so"])?;
    let driver = real_driver(branch).context("no real driver libraries")?;
    machine.gpus = vec!["NVIDIA A100-SXM4-80GB (pretended)".to_owned()];
    machine.driver = Some(format!("{} over a stand-in for the kernel side", driver.version));
    machine.kernel_side = Some(KernelSide {
        library: machine.bin.join("libfakerm.so"),
        folder: driver.folder,
        version: driver.version,
    });
    Ok(machine)
}

/// A row of either matrix: what is injected, and what the libraries of one version answered.
#[derive(Debug, Default)]
struct Row {
    labels: Vec<&'static str>,
    cuda: Option<Answer>,
    nvml: Option<Answer>,
}

/// Every row as a fault, with the codes that libraries of this branch gave. Rows of the two
/// matrices that inject the same are one fault.
pub(crate) fn matrix(branch: &str) -> Result<(Vec<Fault>, Vec<Recorded>)> {
    let of_branch = |answer: &Answer| answer.version.split('.').next() == Some(branch);
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut order = Vec::new();
    let cuda = fault_matrix::cuinit().map(|fault| (fault, true));
    let nvml = fault_matrix::nvmlinit().map(|fault| (fault, false));
    for (fault, is_cuda) in cuda.chain(nvml) {
        let injected = injection(fault.fault)
            .with_context(|| format!("no injection is known for {}", fault.fault))?;
        let answer = fault.answers().find(of_branch);
        if !rows.contains_key(&injected) {
            order.push(injected.clone());
        }
        let row = rows.entry(injected).or_default();
        row.labels.push(fault.fault);
        let of_library = if is_cuda { &mut row.cuda } else { &mut row.nvml };
        *of_library = answer;
    }
    let mut faults = Vec::new();
    let mut recorded = Vec::new();
    for injected in order {
        let row = &rows[&injected];
        let fault = fault(&injected, row)?;
        let reproduced = row.nvml.filter(|_| !row.labels.iter().any(|label| told_otherwise(label)));
        let codes = Codes {
            nvml: reproduced.map_or("-".to_owned(), text),
            nvml_count: "-".to_owned(),
            cuda: row.cuda.map_or("-".to_owned(), text),
            cuda_count: "-".to_owned(),
        };
        recorded.push(Recorded {
            fault: fault.name.clone(),
            driver: branch.to_owned(),
            gpus: 0,
            codes,
        });
        faults.push(fault);
    }
    Ok((faults, recorded))
}

/// Rows whose answers by NVML were recorded over another stand-in and are not had over this one: its
/// first allocation was refused before it had opened all that it opens here.
fn told_otherwise(label: &str) -> bool {
    label.starts_with("RM_ALLOC root status=") || label == "CARD_INFO empty"
}

fn text(answer: Answer) -> String {
    match answer.code {
        Some(code) => code.to_string(),
        None => "hangs".to_owned(),
    }
}

fn fault(injected: &str, row: &Row) -> Result<Fault> {
    let label = row.labels[0];
    let mut fault =
        Fault { name: name(label), what: label.to_owned(), caps: Caps::Root, ..Fault::default() };
    match injected.strip_prefix("env:").and_then(|variable| variable.split_once('=')) {
        Some((name, value)) => {
            fault.env.insert(name.to_owned(), value.to_owned());
        }
        None => fault.fakerm = Some(injected.to_owned()),
    }
    let loops = [row.cuda, row.nvml].into_iter().flatten().any(|answer| answer.loops);
    let loops = loops || label.contains("EINTR");
    let words: &[&str] =
        if loops { &["--trials", "1", "--deadline", "2s"] } else { &["--trials", "1"] };
    fault.check = words.iter().map(|word| (*word).to_owned()).collect();
    fault.loops = loops;
    if label.starts_with("UVM_REGISTER_GPU") {
        "kernel_with_hmm".clone_into(&mut fault.setup);
    }
    fault.expect = expectations::of(label)?;
    Ok(fault)
}

/// A row's label as a name: `open-nvidia-uvm-EPERM`.
fn name(label: &str) -> String {
    let short = label.replace("/dev/", "").replace("rmStatus", "").replace("status", "");
    let mut name = String::new();
    for ch in short.chars() {
        let plain = ch.is_ascii_alphanumeric() || ch == '_';
        if plain {
            name.push(ch);
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
    }
    name.trim_end_matches('-').to_owned()
}

/// Sites of the matrices by the words with which their rows begin.
const SITES: [(&str, &str); 16] = [
    ("UVM_INITIALIZE", "uvm:UVM_INITIALIZE"),
    ("UVM_REGISTER_GPU", "uvm:UVM_REGISTER_GPU"),
    ("UVM_MM_INITIALIZE", "uvm:UVM_MM_INITIALIZE"),
    ("RM_ALLOC root (class 0)", "alloc:0x0"),
    ("RM_ALLOC root", "alloc:0x0"),
    ("RM_ALLOC NV01_DEVICE_0", "alloc:0x80"),
    ("RM_ALLOC NV20_SUBDEVICE_0", "alloc:0x2080"),
    ("RM_ALLOC FERMI_VASPACE_A", "alloc:0x90f1"),
    ("RM_CONTROL GPU_GET_PROBED_IDS", "control:0x214"),
    ("RM_CONTROL GPU_ATTACH_IDS", "control:0x215"),
    ("RM_CONTROL GET_GID_INFO", "control:0x2080014a"),
    ("GET_FABRIC_STATUS", "control:0x136"),
    ("COMPUTE_MODE_RULES", "control:0x20800131"),
    ("open /dev/nvidiactl", "open:/dev/nvidiactl"),
    ("open /dev/nvidia-uvm", "open:/dev/nvidia-uvm"),
    ("open /dev/nvidia0", "open:/dev/nvidia0"),
];

/// What a row injects: settings of the stand-in, or `env:NAME=VALUE`.
fn injection(label: &str) -> Option<String> {
    if label.starts_with("baseline") {
        return Some(String::new());
    }
    if label.starts_with("module version") || label.starts_with("CHECK_VERSION_STR") {
        return Some("version=580.95.05".to_owned());
    }
    if label == "CARD_INFO empty" {
        return Some("gpus=0".to_owned());
    }
    if let Some(rest) = label.strip_prefix("CUDA_") {
        let value = rest.replace("'' (empty)", "");
        return Some(format!("env:CUDA_{value}"));
    }
    let (site, rest) = SITES.iter().find_map(|(words, site)| {
        let rest = label.strip_prefix(words)?;
        rest.starts_with(' ').then_some((site, rest.trim()))
    })?;
    let (kind, value) = rest.split_once('=').or_else(|| rest.split_once("-> "))?;
    let action = match kind {
        "value" => format!("value:{value}"),
        "status" | "rmStatus" => format!("0x{:x}", status(value)?),
        _ => value.split(' ').next()?.to_owned(),
    };
    Some(format!("{site}={action}"))
}

/// The number of an NV_STATUS, by its name without `NV_ERR_`.
fn status(name: &str) -> Option<u32> {
    let named = ["NV_ERR_", "NV_"]
        .iter()
        .find_map(|prefix| nvabi::nv_status::by_name(&format!("{prefix}{name}")));
    named.map(|status| status.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_an_injection_and_an_expectation() {
        let all = fault_matrix::cuinit().chain(fault_matrix::nvmlinit());
        for fault in all {
            assert!(injection(fault.fault).is_some(), "{}", fault.fault);
            assert!(expectations::of(fault.fault).is_ok(), "{}", fault.fault);
        }
    }

    #[test]
    fn rows_become_settings_and_names() {
        let row = "UVM_REGISTER_GPU rmStatus=INVALID_STATE";
        assert_eq!(injection(row).as_deref(), Some("uvm:UVM_REGISTER_GPU=0x40"));
        assert_eq!(name(row), "UVM_REGISTER_GPU-INVALID_STATE");
        let row = "open /dev/nvidiactl -> EPERM (strace injection)";
        assert_eq!(injection(row).as_deref(), Some("open:/dev/nvidiactl=EPERM"));
        assert_eq!(
            injection("CUDA_VISIBLE_DEVICES=7").as_deref(),
            Some("env:CUDA_VISIBLE_DEVICES=7")
        );
    }
}
