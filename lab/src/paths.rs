//! Folders that an ordinary user may enter.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Makes a folder that everybody may read.
pub(crate) fn make_open(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    open(folder)
}

/// Lets everybody read and execute.
pub(crate) fn open(path: &Path) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o755))
        .with_context(|| path.display().to_string())
}
