//! A frozen file system: a task that writes to it cannot be killed. Needs root and loop devices.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Thawed and unmounted when dropped, also when a test panics.
pub(crate) struct FileSystem {
    folder: tempfile::TempDir,
}

impl FileSystem {
    /// Makes and freezes one, or says which step did not work.
    pub(crate) fn make() -> Result<FileSystem, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        // From here on the value cleans up after itself.
        let frozen = FileSystem { folder };
        let image = frozen.folder.path().join("image");
        let mount = frozen.path();
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(16 << 20).map_err(|error| error.to_string())?;
        std::fs::create_dir(&mount).map_err(|error| error.to_string())?;
        let text = |path: &Path| path.display().to_string();
        run("mkfs.ext4", &["-q", &text(&image)])?;
        run("mount", &["-o", "loop", &text(&image), &text(&mount)])?;
        run("fsfreeze", &["-f", &text(&mount)])?;
        Ok(frozen)
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("mount")
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        let mount = self.path().display().to_string();
        // Either may fail when making it did not get that far.
        let _ = run("fsfreeze", &["-u", &mount]);
        for _ in 0..50 {
            let gone =
                run("umount", &[&mount]).is_ok() || run("mountpoint", &["-q", &mount]).is_err();
            if gone {
                break;
            }
            // A task that was stuck in it is still on its way out.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}
