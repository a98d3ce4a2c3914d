//! Without a GPU: the real libraries over a stand-in for the kernel side.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use synth::driver_packages::{Branch, real_driver};

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
    machine.kernel_side = Some(KernelSide {
        library: machine.bin.join("libfakerm.so"),
        folder: driver.folder,
        version: driver.version,
    });
    Ok(machine)
}
