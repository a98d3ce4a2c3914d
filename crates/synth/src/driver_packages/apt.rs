//! Fetching and unpacking packages with apt and dpkg, in folders of our own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Branch, mirror};

/// Fetches packages into `work` and unpacks them. Gives the folder that is the packages' root.
pub(super) fn fetch(work: &Path, branch: Branch, packages: &[&str]) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| format!("{}: {error}", work.display());
    if work.exists() {
        fs::remove_dir_all(work).map_err(text)?;
    }
    for folder in ["lists/partial", "cache/archives/partial", "parts", "debs", "root"] {
        fs::create_dir_all(work.join(folder)).map_err(text)?;
    }
    fs::write(work.join("status"), "").map_err(text)?;
    fs::write(work.join("sources.list"), sources(branch)).map_err(text)?;
    fs::write(work.join("apt.conf"), configuration(work)).map_err(text)?;
    // A release without a security suite makes the update fail in part; the download tells.
    let update = run(work, "apt-get", &["update"]);
    let download = [&["download"], packages].concat();
    run(work, "apt-get", &download).map_err(|error| match &update {
        Err(update) => format!("{error} (after {update})"),
        Ok(()) => error,
    })?;
    let root = work.join("root");
    for deb in fs::read_dir(work.join("debs")).map_err(text)?.flatten() {
        let (deb, root) = (deb.path(), root.clone());
        run(work, "dpkg", &["-x", &deb.to_string_lossy(), &root.to_string_lossy()])?;
    }
    Ok(root)
}

/// One-line sources: the release itself and its security suite where it has one.
fn sources(branch: Branch) -> String {
    const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
    const COMPONENTS: &str = "contrib non-free non-free-firmware";
    let signed =
        if Path::new(KEYRING).exists() { format!("[signed-by={KEYRING}] ") } else { String::new() };
    let mirror = mirror::address();
    let release = branch.release();
    let mut sources = format!("deb {signed}{mirror} {release} {COMPONENTS}\n");
    if branch != Branch::B555 {
        let security = format!("{mirror}-security {release}-security");
        // Writing to a String cannot fail.
        let _ = writeln!(sources, "deb {signed}{security} {COMPONENTS}");
    }
    sources
}

/// Settings that keep apt out of the system's own folders and out of its hooks.
fn configuration(work: &Path) -> String {
    let work = work.display();
    format!(
        "Dir::Etc::sourcelist \"{work}/sources.list\";\n\
         Dir::Etc::sourceparts \"{work}/parts\";\n\
         Dir::State::lists \"{work}/lists\";\n\
         Dir::State::status \"{work}/status\";\n\
         Dir::Cache \"{work}/cache\";\n\
         APT::Update::Error-Mode \"any\";\n\
         Debug::NoLocking \"true\";\n\
         APT::Sandbox::User \"root\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"1\";\n\
         Acquire::http::Timeout \"10\";\n\
         Acquire::https::Timeout \"10\";\n\
         #clear APT::Update::Post-Invoke;\n\
         #clear APT::Update::Post-Invoke-Success;\n\
         #clear DPkg::Post-Invoke;\n"
    )
}

/// Runs a program in the folder for downloads; an error is one line with its last words.
fn run(work: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    if program == "apt-get" {
        command.arg("-qq").arg("-c").arg(work.join("apt.conf"));
    }
    let output = command
        .args(arguments)
        .current_dir(work.join("debs"))
        .env("LC_ALL", "C")
        .env_remove("LD_PRELOAD")
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rfind(|line| line.starts_with("E:")).unwrap_or("no reason given");
    Err(format!("{program} {}: {last}", arguments.join(" ")))
}
