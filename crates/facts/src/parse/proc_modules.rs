//! Loaded modules: /proc/modules, `lsmod`, and the single-value files of /sys/module.

use super::{At, Parsed, numbered};
use crate::model::module::LoadedModule;

/// Reads /proc/modules: `name size users dependents state address (taint)`.
pub fn proc_modules(text: &str) -> Parsed<Vec<At<LoadedModule>>> {
    let mut parsed = Parsed::<Vec<At<LoadedModule>>>::default();
    for (line, content) in numbered(text) {
        match proc_line(content) {
            Some(module) => parsed.value.push(At::new(line, module)),
            None if content.trim().is_empty() => {}
            None => parsed.complain(line, "not a line of /proc/modules"),
        }
    }
    parsed
}

fn proc_line(content: &str) -> Option<LoadedModule> {
    let mut words = content.split_whitespace();
    let name = module_name(words.next()?)?;
    words.next()?.parse::<u64>().ok()?;
    // A kernel that cannot unload modules writes `-` for the number of users.
    let users = words.next()?;
    let _dependents = words.next()?;
    let state = words.next().filter(|state| ["Live", "Loading", "Unloading"].contains(state))?;
    Some(LoadedModule { name, use_count: users.parse().ok(), state: Some(state.to_owned()) })
}

/// Reads the output of `lsmod`: a heading, then `name size users dependents`. Lines of
/// /proc/modules are understood as well, since people paste either under the same name.
pub fn lsmod(text: &str) -> Parsed<Vec<At<LoadedModule>>> {
    let mut parsed = Parsed::<Vec<At<LoadedModule>>>::default();
    for (line, content) in numbered(text) {
        if content.trim().is_empty() || content.starts_with("Module ") {
            continue;
        }
        match proc_line(content).or_else(|| lsmod_line(content)) {
            Some(module) => parsed.value.push(At::new(line, module)),
            None => parsed.complain(line, "not a line of lsmod"),
        }
    }
    parsed
}

fn lsmod_line(content: &str) -> Option<LoadedModule> {
    let mut words = content.split_whitespace();
    let name = module_name(words.next()?)?;
    words.next()?.parse::<u64>().ok()?;
    // lsmod writes -2 for a module that cannot be unloaded.
    let users: i64 = words.next()?.parse().ok()?;
    // The dependents are one comma-separated word, which older versions follow with a space.
    let plain = words.all(|word| word.split(',').all(|name| module_name(name).is_some()));
    let use_count = u32::try_from(users).ok();
    plain.then_some(LoadedModule { name, use_count, state: None })
}

/// A module's name with underscores, as the kernel has it; `None` when it is no name. The empty
/// word after a trailing comma of lsmod's list counts as one.
fn module_name(word: &str) -> Option<String> {
    let plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    (plain && word.len() <= MODULE_NAME_LIMIT).then(|| canonical(word))
}

/// The longest name that the kernel takes (`MODULE_NAME_LEN` is 64 less a pointer's size; this is
/// generous).
const MODULE_NAME_LIMIT: usize = 64;

/// The kernel's spelling of a module's name: underscores, also where files and options use dashes.
pub fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// Reads a parameter of kind bool: `Y`, `N`, and the `1` and `0` that options lines use.
pub fn parameter_bool(text: &str) -> Option<bool> {
    match text.trim() {
        "Y" | "y" | "1" => Some(true),
        "N" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// Reads /sys/module/NAME/initstate as the word that /proc/modules uses for it. A module that is
/// `coming` for long is stuck in its own start.
pub fn initstate(text: &str) -> Option<&'static str> {
    match text.trim() {
        "live" => Some("Live"),
        "coming" => Some("Loading"),
        "going" => Some("Unloading"),
        _ => None,
    }
}

/// Reads one path of the left side of modules.dep into the module's name:
/// `updates/dkms/nvidia-uvm.ko.zst` is `nvidia_uvm`.
pub fn name_of_file(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    let (stem, rest) = file.split_once(".ko")?;
    let known = ["", ".xz", ".zst", ".gz"].contains(&rest);
    (known && !stem.is_empty()).then(|| canonical(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_modules() {
        let parsed = proc_modules(
            "nvidia_uvm 2093056 4 - Live 0xffffffffc2a00000 (OE)\n\
             nvidia 14381056 155 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)\n\
             vfio_pci 16384 0 - Loading 0x0000000000000000\n\
             builtin 16384 - - Live 0x0000000000000000\n",
        );
        assert_eq!(parsed.complaints, []);
        let nvidia = &parsed.value[1];
        assert_eq!((nvidia.line, nvidia.value.name.as_str()), (2, "nvidia"));
        assert_eq!(nvidia.value.use_count, Some(155));
        assert_eq!(parsed.value[2].value.state.as_deref(), Some("Loading"));
        assert_eq!(parsed.value[3].value.use_count, None);
        assert_eq!(proc_modules("cat: /proc/modules: Permission denied\n").complaints.len(), 1);
    }

    #[test]
    fn lines_of_lsmod_in_old_and_new_forms() {
        let parsed = lsmod(
            "Module                  Size  Used by\nnvidia_uvm           2093056  4\n\
             nvidia              14381056  155 nvidia_uvm,nvidia_modeset\n\
             drm                   741376  9 drm_kms_helper, nvidia_drm,\ncryptd 28672 -2\n",
        );
        assert_eq!(parsed.complaints, []);
        let names: Vec<_> = parsed.value.iter().map(|at| at.value.name.as_str()).collect();
        assert_eq!(names, ["nvidia_uvm", "nvidia", "drm", "cryptd"]);
        assert_eq!(parsed.value[3].value.use_count, None);
        assert_eq!(lsmod("bash: lsmod: command not found\n").complaints.len(), 1);
    }

    #[test]
    fn single_values() {
        assert_eq!(parameter_bool("Y\n"), Some(true));
        assert_eq!(parameter_bool("0"), Some(false));
        assert_eq!(parameter_bool("-1"), None);
        assert_eq!(initstate("coming\n"), Some("Loading"));
        assert_eq!(name_of_file("updates/dkms/nvidia-uvm.ko.zst").as_deref(), Some("nvidia_uvm"));
        assert_eq!(name_of_file("kernel/fs/ext4.ko").as_deref(), Some("ext4"));
        assert_eq!(name_of_file("kernel/fs/readme.kotlin"), None);
    }
}
