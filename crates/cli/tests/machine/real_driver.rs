//! The real libcuda and NVML of Debian's packages over a stand-in for the kernel side.

use libtest_mimic::Trial;
use synth::driver_packages::{Branch, real_driver};

use crate::common::{Outcome, Report, gpudx, is_root, skipped, test};
use crate::experiments::experiments;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("real_libraries_healthy", healthy),
        test("real_libraries_refused_registration_is_hmm", refused_registration),
        test("real_libraries_of_another_version", other_version),
        test("real_libraries_closed_uvm_node", closed_uvm_node),
        test("real_libraries_fabric_not_initialized", fabric),
        test("real_libraries_under_experiments", under_experiments),
    ]
}

const BRANCHES: [Branch; 3] = [Branch::B535, Branch::B550, Branch::B555];

/// Runs a check for each branch whose packages can be had.
fn each_branch(settings: &str, judge: fn(&Report) -> Outcome) -> Outcome {
    let kernel_side = synth::artifacts::fakerm()?;
    for branch in BRANCHES {
        let driver = match real_driver(branch) {
            Ok(driver) => driver,
            Err(why) => {
                skipped(why)?;
                continue;
            }
        };
        let settings = match settings {
            "" => format!("version={}", driver.version),
            faults if faults.contains("version=") => faults.to_owned(),
            faults => format!("version={},{faults}", driver.version),
        };
        let report = Report::of(
            gpudx(&["check", "--format", "json", "--trials", "1"])
                .env("LD_LIBRARY_PATH", &driver.folder)
                .env("LD_PRELOAD", &kernel_side)
                .env("GPUDX_FAKERM", settings),
        )?;
        judge(&report)?;
    }
    Ok(())
}

fn symptom_has(report: &Report, words: &str) -> bool {
    let symptoms = report.json["symptoms"].as_array().map(Vec::as_slice).unwrap_or_default();
    symptoms
        .iter()
        .any(|symptom| symptom["summary"].as_str().is_some_and(|text| text.contains(words)))
}

fn healthy() -> Outcome {
    each_branch("", |report| {
        report.must(report.ids("symptoms").is_empty(), "no symptom")?;
        report.must(report.state() == "healthy", "healthy")
    })
}

/// On a kernel that has HMM. The configuration of the one below may lack it, which rules HMM out,
/// rightly; so it is covered by one that has it.
fn refused_registration() -> Outcome {
    if !is_root() {
        return skipped("not root");
    }
    let folder = tempfile::tempdir()?;
    let script = "printf 'CONFIG_HMM_MIRROR=y\\nCONFIG_DEVICE_PRIVATE=y\\n' | gzip > \"$FOLDER/config\" && \
         if [ -e /proc/config.gz ]; then mount --bind \"$FOLDER/config\" /proc/config.gz; fi && \
         exec \"$GPUDX\" check --format json --trials 1";
    let kernel_side = synth::artifacts::fakerm()?;
    for branch in BRANCHES {
        let driver = match real_driver(branch) {
            Ok(driver) => driver,
            Err(why) => {
                skipped(why)?;
                continue;
            }
        };
        let faults = format!("version={},uvm:UVM_REGISTER_GPU=0x51", driver.version);
        let inner = format!(
            "export LD_LIBRARY_PATH={} LD_PRELOAD={} GPUDX_FAKERM={faults}; {script}",
            driver.folder.display(),
            kernel_side.display(),
        );
        let report = Report::of(
            std::process::Command::new("unshare")
                .args(["-m", "sh", "-c", &inner])
                .env("FOLDER", folder.path())
                .env("GPUDX", env!("CARGO_BIN_EXE_gpudx")),
        )?;
        report.must(symptom_has(&report, "answers 3 "), "cuInit answers 3")?;
        report.must(report.ids("causes").first() == Some(&"uvm.hmm"), "HMM comes first")?;
    }
    Ok(())
}

fn other_version() -> Outcome {
    each_branch("version=570.86.16", |report| {
        report.must(
            report.ids("causes").first() == Some(&"module.version-skew"),
            "the skew comes first",
        )
    })
}

fn closed_uvm_node() -> Outcome {
    each_branch("open:/dev/nvidia-uvm=EPERM", |report| {
        report.must(symptom_has(report, "answers 999 "), "cuInit answers 999")?;
        let first = report.ids("causes").first().copied().unwrap_or("");
        report.must(first == "sandbox.cgroup-denies", "a policy denies the node")
    })
}

fn fabric() -> Outcome {
    each_branch("control:0x136=value:2", |report| {
        report.must(symptom_has(report, "answers 802 "), "cuInit answers 802")
    })
}

/// The real library with one thing changed at a time: an index that no GPU has, and too few open
/// files. What is preloaded here is the kernel side itself, without which it fails in another way.
fn under_experiments() -> Outcome {
    let kernel_side = synth::artifacts::fakerm()?;
    for branch in BRANCHES {
        let driver = match real_driver(branch) {
            Ok(driver) => driver,
            Err(why) => {
                skipped(why)?;
                continue;
            }
        };
        let check = |script: &str| {
            let all = format!("{script} exec \"$GPUDX\" check --format json --experiment");
            Report::of(
                std::process::Command::new("sh")
                    .args(["-c", &all])
                    .env("GPUDX", env!("CARGO_BIN_EXE_gpudx"))
                    .env("LD_LIBRARY_PATH", &driver.folder)
                    .env("LD_PRELOAD", &kernel_side)
                    .env("GPUDX_FAKERM", format!("version={}", driver.version)),
            )
        };
        let report = check("export CUDA_VISIBLE_DEVICES=7;")?;
        made(&report, "without-hooks", &["same", "differs"])?;
        made(&report, "all-gpus", &["works"])?;
        made(&report, "nothing", &["same"])?;
        let first = report.ids("causes").first().copied().unwrap_or("");
        report.must(first == "process.visible-devices", "the variable is the cause")?;
        let report = check("ulimit -S -n 10;")?;
        made(&report, "limit", &["works"])?;
        let first = report.ids("causes").first().copied().unwrap_or("");
        report.must(first == "process.open-files-low", "the limit is the cause")?;
    }
    Ok(())
}

fn made(report: &Report, change: &str, effects: &[&str]) -> Outcome {
    let all = experiments(report);
    let found = all.iter().find(|made| made["change"] == change);
    let effect = found.and_then(|made| made["effect"].as_str()).unwrap_or("");
    report.must(effects.contains(&effect), &format!("{change} is {effect:?}: {all:?}"))
}
