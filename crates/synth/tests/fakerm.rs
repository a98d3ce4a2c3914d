//! The pretended nodes and files, as ordinary programs see them.
#![expect(clippy::unwrap_used, reason = "functions of tests fail as tests do, by panicking")]

use std::process::{Command, Output, Stdio};

use synth::artifacts;

fn run(settings: &str, program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", artifacts::fakerm().unwrap())
        .env("GPUDX_FAKERM", settings)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(settings: &str, program: &str, arguments: &[&str]) -> String {
    let output = run(settings, program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn nodes_show_in_stat() {
    let numbers = |settings, path| text(settings, "stat", &["-c", "%F %Hr:%Lr %a", path]);
    assert_eq!(numbers("", "/dev/nvidiactl"), "character special file 195:255 666\n");
    assert_eq!(numbers("gpus=2", "/dev/nvidia1"), "character special file 195:1 666\n");
    let wrong = "node:/dev/nvidia-uvm=234:0";
    assert_eq!(numbers(wrong, "/dev/nvidia-uvm"), "character special file 234:0 666\n");
    for (settings, path) in
        [("node:/dev/nvidia-uvm=absent", "/dev/nvidia-uvm"), ("gpus=1", "/dev/nvidia1")]
    {
        assert!(!run(settings, "stat", &[path]).status.success(), "{path}");
    }
}

#[test]
fn nodes_show_in_listings() {
    let names = text("gpus=2,node:/dev/nvidia-uvm-tools=absent", "ls", &["/dev"]);
    let ours: Vec<_> = names.lines().filter(|name| name.starts_with("nvidia")).collect();
    assert_eq!(ours, ["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"]);
    assert!(names.lines().any(|name| name == "null"), "the real nodes stay");
}

#[test]
fn files_can_be_read() {
    let version = text("version=550.54.14", "cat", &["/proc/driver/nvidia/version"]);
    assert!(version.contains("Open Kernel Module for x86_64  550.54.14"), "{version}");
    let devices = text("", "cat", &["/proc/devices"]);
    let lines: Vec<_> = devices.lines().collect();
    assert_eq!(lines.first(), Some(&"Character devices:"));
    assert_eq!(lines.get(4), Some(&"511 nvidia-uvm"));
    assert!(lines.contains(&"Block devices:"), "the real ones stay");
    assert_eq!(text("", "cat", &["/sys/module/nvidia/initstate"]), "live\n");
}

#[test]
fn gpus_show_on_the_bus() {
    let devices = text("gpus=2", "ls", &["/sys/bus/pci/devices"]);
    assert!(devices.contains("0000:41:00.0\n0000:51:00.0"), "{devices}");
    let vendor = text("", "cat", &["/sys/bus/pci/devices/0000:41:00.0/vendor"]);
    assert_eq!(vendor, "0x10de\n");
    let path = text("", "realpath", &["/sys/bus/pci/devices/0000:41:00.0"]);
    assert_eq!(path, "/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0\n");
    let driver = text("", "readlink", &["/sys/bus/pci/devices/0000:41:00.0/driver"]);
    assert!(driver.ends_with("/bus/pci/drivers/nvidia\n"), "{driver}");
}

#[test]
fn changes_to_nodes_do_nothing() {
    let made = run("", "mknod", &["/dev/nvidia-fakerm-test", "c", "195", "99"]);
    assert!(made.status.success(), "{made:?}");
    assert!(!std::path::Path::new("/dev/nvidia-fakerm-test").exists());
}

#[test]
fn faults_strike_on_open() {
    for (settings, complaint) in [
        ("open:/dev/nvidia0=EPERM", "Operation not permitted"),
        ("open:/dev/nvidia0=EIO", "Input/output error"),
        ("node:/dev/nvidia0=195:9", "No such device or address"),
        ("node:/dev/nvidia0=absent", "No such file or directory"),
    ] {
        let output = run(settings, "head", &["-c1", "/dev/nvidia0"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(complaint), "{settings}: {said}");
    }
    assert!(run("", "head", &["-c1", "/dev/nvidia0"]).status.success());
}

#[test]
fn a_misspelled_setting_ends_the_process() {
    let output = run("open:/dev/nvidia0=EPREM", "cat", &["/dev/nvidia0"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("EPREM"));
}
