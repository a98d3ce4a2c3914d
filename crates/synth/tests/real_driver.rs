//! The real libcuda and NVML over the stand-in for the kernel side.
//!
//! Where Debian's packages cannot be had, each test says so and passes.
#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]
#![expect(clippy::unwrap_used, reason = "functions of tests fail as tests do, by panicking")]

use std::path::Path;
use std::process::{Command, Stdio};

use synth::artifacts;
use synth::driver_packages::{Branch, RealDriver, real_driver};
use tempfile::TempDir;

/// The branches whose packages can be had here.
fn drivers() -> Vec<RealDriver> {
    let mut drivers = Vec::new();
    for branch in Branch::ALL {
        match real_driver(branch) {
            Ok(driver) => drivers.push(driver),
            Err(skipped) => println!("{branch:?} {skipped}"),
        }
    }
    drivers
}

fn command(driver: &RealDriver, program: &Path, settings: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_LIBRARY_PATH", &driver.folder)
        .env("LD_PRELOAD", artifacts::fakerm().unwrap())
        // Settings given later win, so a test can tell another version.
        .env("GPUDX_FAKERM", format!("version={},{settings}", driver.version))
        .env_remove("CUDA_VISIBLE_DEVICES")
        .stdin(Stdio::null());
    command
}

fn cuinit(driver: &RealDriver, settings: &str) -> String {
    output(command(driver, &artifacts::cuinit_bare().unwrap(), settings))
}

fn nvml(driver: &RealDriver, settings: &str) -> String {
    output(command(driver, &artifacts::nvml_bare().unwrap(), settings))
}

fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

const NVML_HEALTHY: &str = "init 0\ncount 0 1\nhandle 0\nname 0 NVIDIA A100-SXM4-80GB";

#[test]
fn a_healthy_machine_comes_up() {
    for driver in drivers() {
        assert_eq!(cuinit(&driver, ""), "0", "{}", driver.version);
        assert_eq!(nvml(&driver, ""), NVML_HEALTHY, "{}", driver.version);
        assert_eq!(cuinit(&driver, "chip=gh100,gpus=8"), "0", "{}", driver.version);
        let eight = nvml(&driver, "chip=gh100,gpus=8");
        assert!(eight.contains("count 0 8\n") && eight.ends_with("H100 80GB HBM3"), "{eight}");
    }
}

#[test]
fn a_refused_uvm_registration_is_code_3() {
    for driver in drivers() {
        for status in ["0x51", "0x3", "0x1a"] {
            let settings = format!("uvm:UVM_REGISTER_GPU={status}");
            assert_eq!(cuinit(&driver, &settings), "3", "{}", driver.version);
            assert_eq!(nvml(&driver, &settings), NVML_HEALTHY);
        }
    }
}

#[test]
fn a_newer_module_is_a_mismatch() {
    for driver in drivers() {
        assert_eq!(cuinit(&driver, "version=580.95.05"), "803", "{}", driver.version);
        assert_eq!(nvml(&driver, "version=580.95.05"), "init 18");
    }
}

/// Measured with these libraries: a module of an older branch that forward compatibility supports
/// makes libcuda take itself for a compatibility library, and refuse the GPU as such. Other older
/// branches are a plain mismatch.
#[test]
fn an_older_module_is_refused_as_forward_compatibility() {
    for driver in drivers() {
        let supported = if driver.version.starts_with("535") { "525.60.13" } else { "535.1.2" };
        let settings = format!("version={supported}");
        assert_eq!(cuinit(&driver, &settings), "804", "{}", driver.version);
        assert_eq!(nvml(&driver, &settings), "init 18");
        assert_eq!(cuinit(&driver, "version=530.30.02"), "803", "{}", driver.version);
    }
}

/// Measured: libcuda compares two of the three numbers, NVML the whole text.
#[test]
fn only_nvml_minds_the_third_number() {
    for driver in drivers() {
        let (two, _) = driver.version.rsplit_once('.').unwrap();
        let settings = format!("version={two}.77");
        assert_eq!(cuinit(&driver, &settings), "0", "{}", driver.version);
        assert_eq!(nvml(&driver, &settings), "init 18");
    }
}

#[test]
fn a_uvm_node_that_does_not_open_is_code_999() {
    for driver in drivers() {
        for settings in [
            "open:/dev/nvidia-uvm=EPERM",
            "node:/dev/nvidia-uvm=absent",
            "node:/dev/nvidia-uvm=510:0",
        ] {
            assert_eq!(cuinit(&driver, settings), "999", "{settings} {}", driver.version);
            assert_eq!(nvml(&driver, settings), NVML_HEALTHY, "{settings}");
        }
    }
}

#[test]
fn a_fabric_that_is_not_initialized_is_code_802() {
    for driver in drivers() {
        assert_eq!(cuinit(&driver, "control:0x136=value:2"), "802", "{}", driver.version);
    }
}

#[test]
fn a_control_node_that_does_not_open_fails_both() {
    for driver in drivers() {
        let settings = "open:/dev/nvidiactl=EACCES";
        assert_eq!(cuinit(&driver, settings), "100", "{}", driver.version);
        assert_eq!(nvml(&driver, settings), "init 4");
    }
}

#[test]
fn a_held_call_is_the_last_one_traced() {
    for driver in drivers() {
        let folder = TempDir::new().unwrap();
        let trace = folder.path().join("trace");
        let settings = format!("uvm:UVM_REGISTER_GPU=hang,trace={}", trace.display());
        let mut child = command(&driver, &artifacts::cuinit_bare().unwrap(), &settings)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let read = || std::fs::read_to_string(&trace).unwrap_or_default();
        while !read().contains("UVM_REGISTER_GPU") && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        assert!(child.try_wait().unwrap().is_none(), "{} came back", driver.version);
        assert!(read().ends_with("ioctl /dev/nvidia-uvm UVM_REGISTER_GPU\n"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn busy_retry_is_asked_again_and_again() {
    for driver in drivers() {
        let folder = TempDir::new().unwrap();
        let trace = folder.path().join("trace");
        let settings = format!("uvm:UVM_INITIALIZE=0x3,trace={}", trace.display());
        let mut child = command(&driver, &artifacts::cuinit_bare().unwrap(), &settings)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let calls = || {
            let text = std::fs::read_to_string(&trace).unwrap_or_default();
            text.matches("UVM_INITIALIZE").count()
        };
        while calls() < 100 && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        assert!(child.try_wait().unwrap().is_none(), "{} gave up", driver.version);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// The landmarks of the sequence recorded from these libraries, in order.
#[test]
fn the_calls_come_in_the_known_order() {
    const LANDMARKS: [&str; 14] = [
        "open /dev/nvidiactl",
        "NV_ESC_SYS_PARAMS",
        "NV_ESC_CARD_INFO",
        "RM_ALLOC class 0x0000",
        "RM_CONTROL 0x00000101",
        "open /dev/nvidia-uvm",
        "UVM_INITIALIZE",
        "UVM_MM_INITIALIZE",
        "RM_CONTROL 0x00000215",
        "open /dev/nvidia0",
        "RM_ALLOC class 0x0080",
        "RM_CONTROL 0x00000136",
        "UVM_REGISTER_GPU",
        "UVM_CREATE_RANGE_GROUP",
    ];
    for driver in drivers() {
        let folder = TempDir::new().unwrap();
        let trace = folder.path().join("trace");
        cuinit(&driver, &format!("trace={}", trace.display()));
        let trace = std::fs::read_to_string(trace).unwrap();
        let mut lines = trace.lines();
        for landmark in LANDMARKS {
            assert!(
                lines.any(|line| line.ends_with(landmark)),
                "{}: no {landmark} in its place:\n{trace}",
                driver.version
            );
        }
    }
}

/// As root the libraries make nodes; over the stand-in none reaches the real /dev.
#[test]
fn the_real_dev_is_left_alone() {
    let listing = || {
        let mut names: Vec<_> = std::fs::read_dir("/dev")
            .unwrap()
            .chain(std::fs::read_dir("/dev/char").into_iter().flatten())
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| {
                let name = name.to_string_lossy();
                name.starts_with("nvidia") || name.starts_with("195:")
            })
            .collect();
        names.sort();
        names
    };
    let before = listing();
    for driver in drivers() {
        cuinit(&driver, "");
        nvml(&driver, "");
        assert_eq!(listing(), before, "{}", driver.version);
    }
}
