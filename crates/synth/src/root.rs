//! Fake system roots: the files of any machine, in a folder, for `gpudx --root`.

mod module;
mod pci;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use pci::PciGpu;

/// A root that is being filled. Every method creates the folders that it needs.
#[derive(Debug, Clone)]
pub struct FakeRoot {
    path: PathBuf,
}

impl FakeRoot {
    /// Begins with an existing, usually empty, folder.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a path of the machine lies.
    pub fn at(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// Writes a file.
    pub fn file(&self, path: &str, contents: impl AsRef<[u8]>) -> io::Result<&Self> {
        let path = self.at(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, contents)?;
        Ok(self)
    }

    /// Makes a folder.
    pub fn folder(&self, path: &str) -> io::Result<&Self> {
        fs::create_dir_all(self.at(path))?;
        Ok(self)
    }

    /// Makes a symbolic link.
    pub fn link(&self, path: &str, target: &str) -> io::Result<&Self> {
        let path = self.at(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        std::os::unix::fs::symlink(target, path)?;
        Ok(self)
    }

    /// A Debian 12 machine with this kernel and nothing of NVIDIA's.
    pub fn machine(&self, kernel: &str) -> io::Result<&Self> {
        self.file("/proc/sys/kernel/osrelease", format!("{kernel}\n"))?
            .file("/proc/version", format!("Linux version {kernel} (build@host) #1 SMP\n"))?
            .file(
                "/proc/cmdline",
                format!("BOOT_IMAGE=/boot/vmlinuz-{kernel} root=/dev/sda1 quiet\n"),
            )?
            .file("/proc/devices", "Character devices:\n  1 mem\n\nBlock devices:\n259 blkext\n")?
            .file("/proc/modules", "")?
            .file(
                "/etc/os-release",
                "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\n",
            )?
            .folder("/sys/bus/pci/devices")?
            .folder("/dev")
    }
}

/// A device node as `ls -l` shows it.
#[derive(Debug, Clone)]
pub struct ListedNode {
    /// Path.
    pub path: String,
    /// Major and minor number.
    pub numbers: (u32, u32),
    /// Permission bits.
    pub mode: u32,
}

impl ListedNode {
    /// A node that everyone may read and write.
    pub fn new(path: &str, major: u32, minor: u32) -> Self {
        Self { path: path.to_owned(), numbers: (major, minor), mode: 0o666 }
    }

    /// The nodes that a driver with this many GPUs has.
    pub fn driver(gpus: u32, uvm_major: u32) -> Vec<Self> {
        let mut nodes: Vec<Self> =
            (0..gpus).map(|minor| Self::new(&format!("/dev/nvidia{minor}"), 195, minor)).collect();
        nodes.push(Self::new("/dev/nvidiactl", 195, 255));
        nodes.push(Self::new("/dev/nvidia-uvm", uvm_major, 0));
        nodes.push(Self::new("/dev/nvidia-uvm-tools", uvm_major, 1));
        nodes
    }
}

/// What `ls -l /dev/nvidia*` prints of these nodes.
pub fn listing(nodes: &[ListedNode]) -> String {
    let bits = |mode: u32, shift: u32| {
        let bit = |mask: u32, letter| {
            if (mode >> shift) & mask != 0 { letter } else { '-' }
        };
        String::from_iter([bit(4, 'r'), bit(2, 'w'), bit(1, 'x')])
    };
    let line = |node: &ListedNode| {
        let mode = [6, 3, 0].map(|shift| bits(node.mode, shift)).concat();
        let (major, minor) = node.numbers;
        format!("c{mode} 1 root root {major:3}, {minor:3} Jun  1 12:00 {}\n", node.path)
    };
    nodes.iter().map(line).collect()
}
