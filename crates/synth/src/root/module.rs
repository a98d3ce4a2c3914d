//! The traces of a loaded kernel module.

use std::io;

use super::FakeRoot;

impl FakeRoot {
    /// The driver's modules, loaded and alive.
    pub fn driver(&self, version: &str, open: bool, uvm_major: u32) -> io::Result<&Self> {
        let kind = if open { "Open Kernel Module for x86_64" } else { "x86_64 Kernel Module" };
        let taint = if open { "OE" } else { "POE" };
        self.file(
            "/proc/driver/nvidia/version",
            format!(
                "NVRM version: NVIDIA UNIX {kind}  {version}  Release Build  (root@host)\n\
                 GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
            ),
        )?
        .file(
            "/proc/driver/nvidia/params",
            "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n\
             EnableGpuFirmware: 18\nRegistryDwords: \"\"\nExcludedGpus: \"\"\n",
        )?
        .file(
            "/proc/modules",
            format!(
                "nvidia_uvm 4796416 0 - Live 0x0000000000000000 ({taint})\n\
                 nvidia 54493184 1 nvidia_uvm, Live 0x0000000000000000 ({taint})\n"
            ),
        )?
        .file(
            "/proc/devices",
            format!(
                "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n\
                 {uvm_major} nvidia-uvm\n\nBlock devices:\n259 blkext\n"
            ),
        )?;
        for module in ["nvidia", "nvidia_uvm"] {
            self.file(&format!("/sys/module/{module}/version"), format!("{version}\n"))?
                .file(&format!("/sys/module/{module}/initstate"), "live\n")?
                .file(&format!("/sys/module/{module}/taint"), format!("{taint}\n"))?;
        }
        self.module_parameter("nvidia_uvm", "uvm_disable_hmm", "N")
    }

    /// One parameter of a loaded module.
    pub fn module_parameter(&self, module: &str, name: &str, value: &str) -> io::Result<&Self> {
        self.file(&format!("/sys/module/{module}/parameters/{name}"), format!("{value}\n"))
    }

    /// The kernel's configuration, as `/boot` has it. Lines such as `CONFIG_HMM_MIRROR=y`.
    pub fn kernel_config(&self, kernel: &str, lines: &[&str]) -> io::Result<&Self> {
        self.file(&format!("/boot/config-{kernel}"), lines.join("\n") + "\n")
    }
}
