//! The shared objects and programs of this workspace that tests preload, load or run.
//!
//! A test is built into `TARGET/[TRIPLE/]PROFILE/deps`; what is looked for lies in
//! `TARGET/[TRIPLE/]PROFILE`. Cargo does not build another package's `cdylib` for a test, so it is
//! built here when it is missing or older than its sources.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The stand-in for libcuda and NVML, `libfakedriver.so`.
pub fn fakedriver() -> io::Result<PathBuf> {
    up_to_date("fakedriver", "libfakedriver.so")
}

/// The stand-in for the kernel side, `libfakerm.so`, to be set as `LD_PRELOAD`.
pub fn fakerm() -> io::Result<PathBuf> {
    up_to_date("fakerm", "libfakerm.so")
}

/// The stand-in for a library between a program and the driver, `libinterposer.so`, to be set as
/// `LD_PRELOAD`.
pub fn interposer() -> io::Result<PathBuf> {
    up_to_date("interposer", "libinterposer.so")
}

/// The product itself, for tests of other packages than its own. Cargo decides whether it is up to
/// date, since it is made of many crates.
pub fn gpudx() -> io::Result<PathBuf> {
    build("gpudx")?;
    Ok(profile_folder()?.join("gpudx"))
}

/// The program that does nothing but call `cuInit` once.
pub fn cuinit_bare() -> io::Result<PathBuf> {
    up_to_date("synth", "cuinit-bare")
}

/// The program that does nothing but initialize NVML and name the first device.
pub fn nvml_bare() -> io::Result<PathBuf> {
    up_to_date("synth", "nvml-bare")
}

/// The program that walks libcuda from `cuInit` to a checked kernel.
pub fn cuda_walk() -> io::Result<PathBuf> {
    up_to_date("synth", "cuda-walk")
}

/// The program that makes calls on nodes of the driver in ways that a tracer must stand.
pub fn driver_calls() -> io::Result<PathBuf> {
    up_to_date("synth", "driver-calls")
}

/// Copies the stand-in driver into `folder` under the names of a driver of this version, as an
/// installed one has them: `libcuda.so.VERSION` with the links `libcuda.so.1` and `libcuda.so`, and
/// the same for `libnvidia-ml`. The folder is what `LD_LIBRARY_PATH` has to begin with.
pub fn fake_driver_folder(folder: &Path, version: &str) -> io::Result<()> {
    let library = fakedriver()?;
    std::fs::create_dir_all(folder)?;
    for stem in ["libcuda.so", "libnvidia-ml.so"] {
        let file = format!("{stem}.{version}");
        // A copy each: the loader takes two names of one file for one library.
        std::fs::copy(&library, folder.join(&file))?;
        for link in [format!("{stem}.1"), stem.to_owned()] {
            std::os::unix::fs::symlink(&file, folder.join(link))?;
        }
    }
    Ok(())
}

/// Where this test's profile puts its products, such as `target/debug`.
pub fn profile_folder() -> io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let mut folder = test.parent().unwrap_or(Path::new("/"));
    if folder.ends_with("deps") || folder.ends_with("examples") {
        folder = folder.parent().unwrap_or(folder);
    }
    Ok(folder.to_owned())
}

/// The target folder, which Cargo marks with a `CACHEDIR.TAG`, and the target triple if one was
/// asked for.
pub fn target_folder() -> io::Result<(PathBuf, Option<String>)> {
    let profile = profile_folder()?;
    let parent = profile.parent().unwrap_or(&profile);
    let name = parent.file_name().map(|name| name.to_string_lossy().into_owned());
    match parent.parent() {
        Some(above) if !marked(parent) && marked(above) => Ok((above.to_owned(), name)),
        _ => Ok((parent.to_owned(), None)),
    }
}

fn marked(folder: &Path) -> bool {
    folder.join("CACHEDIR.TAG").exists()
}

fn up_to_date(package: &str, product: &str) -> io::Result<PathBuf> {
    let product = profile_folder()?.join(product);
    let sources = workspace_folder().join("crates").join(package);
    let built = std::fs::metadata(&product).and_then(|metadata| metadata.modified()).ok();
    if built.is_none_or(|built| newest(&sources).is_some_and(|changed| changed > built)) {
        build(package)?;
    }
    if product.exists() {
        Ok(product)
    } else {
        Err(io::Error::other(format!("cargo built no {}", product.display())))
    }
}

/// Runs Cargo for one package with this test's profile and target folder.
fn build(package: &str) -> io::Result<()> {
    let profile = profile_folder()?;
    let profile = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let (target, triple) = target_folder()?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(workspace_folder())
        .args(["build", "--quiet", "--package", package, "--profile", profile])
        .arg("--target-dir")
        .arg(target);
    if let Some(triple) = triple {
        cargo.args(["--target", &triple]);
    }
    let status = cargo.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("cargo build of {package}: {status}")))
    }
}

fn workspace_folder() -> &'static Path {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).unwrap_or(crate_folder)
}

/// When the youngest source file below `folder` was changed. Tests do not count.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries
        .flatten()
        .filter(|entry| entry.file_name() != "tests")
        .filter_map(|entry| {
            if entry.file_type().ok()?.is_dir() {
                newest(&entry.path())
            } else {
                entry.metadata().ok()?.modified().ok()
            }
        })
        .max()
}
