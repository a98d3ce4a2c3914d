//! Configuration of containers: LXC (also as Proxmox VE keeps it) and NVIDIA's container runtime.

use super::{At, Parsed, numbered};

/// A key and its value, with the line they stood on.
pub type Setting = At<(String, String)>;

/// Keys of LXC that bear on devices and policy, by their beginnings.
const LXC_BEGINNINGS: [&str; 9] = [
    "lxc.apparmor.",
    "lxc.cap.",
    "lxc.cgroup.devices.",
    "lxc.cgroup2.devices.",
    "lxc.hook.",
    "lxc.idmap",
    "lxc.include",
    "lxc.mount.",
    "lxc.seccomp.",
];

/// Keys of Proxmox VE's own that bear on devices and policy; `dev0` to `dev255` as well.
const PVE_KEYS: [&str; 3] = ["features", "unprivileged", "ostype"];

/// Reads an LXC configuration: `key = value`, or Proxmox VE's `key: value`. Settings that do not
/// bear on devices or policy are left out. In Proxmox VE's files everything from the first
/// `[snapshot]` heading on describes the past and is left out too.
pub fn lxc(text: &str) -> Parsed<Vec<Setting>> {
    let mut parsed = Parsed::<Vec<Setting>>::default();
    for (line, content) in numbered(text) {
        let content = content.trim();
        if content.starts_with('[') {
            break;
        }
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let Some((key, value)) = content.split_once(['=', ':']) else {
            parsed.complain(line, "not a setting of a container's configuration");
            continue;
        };
        let key = key.trim();
        if lxc_key_matters(key) {
            parsed.value.push(At::new(line, (key.to_owned(), value.trim().to_owned())));
        }
    }
    parsed
}

fn lxc_key_matters(key: &str) -> bool {
    let passed_device = key.strip_prefix("dev").is_some_and(|number| number.parse::<u8>().is_ok());
    passed_device
        || PVE_KEYS.contains(&key)
        || LXC_BEGINNINGS.iter().any(|beginning| key.starts_with(beginning))
}

/// Keys of NVIDIA's container runtime that bear on whether GPUs arrive.
const RUNTIME_KEYS: [&str; 7] = [
    "accept-nvidia-visible-devices-envvar-when-unprivileged",
    "disable-require",
    "ldcache",
    "load-kmods",
    "mode",
    "no-cgroups",
    "root",
];

/// Reads /etc/nvidia-container-runtime/config.toml. Keys keep no table's name, since those that
/// matter are unlike each other; lines that are commented out are defaults and are left out.
pub fn nvidia_runtime(text: &str) -> Parsed<Vec<Setting>> {
    let mut parsed = Parsed::<Vec<Setting>>::default();
    for (line, content) in numbered(text) {
        let content = content.trim();
        let passed = content.is_empty() || content.starts_with(['#', '[', ']', '"']);
        match content.split_once('=') {
            _ if passed => {}
            Some((key, value)) if RUNTIME_KEYS.contains(&key.trim()) => {
                let value = value.split('#').next().unwrap_or(value).trim().trim_matches('"');
                parsed.value.push(At::new(line, (key.trim().to_owned(), value.to_owned())));
            }
            Some(_) => {}
            None => parsed.complain(line, "not a setting of the container runtime"),
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(parsed: &Parsed<Vec<Setting>>) -> Vec<(&str, &str)> {
        parsed.value.iter().map(|at| (at.value.0.as_str(), at.value.1.as_str())).collect()
    }

    #[test]
    fn a_container_of_proxmox() {
        let parsed = lxc(
            "#comment\narch: amd64\ndev0: /dev/nvidia0,gid=44\nfeatures: nesting=1\nhostname: ct\n\
             unprivileged: 1\nlxc.cgroup2.devices.allow: c 195:* rwm\n\
             lxc.mount.entry: /dev/nvidia-uvm dev/nvidia-uvm none bind,optional,create=file\n\
             \n[before-update]\nlxc.cgroup2.devices.allow: c 511:* rwm\n",
        );
        assert_eq!(parsed.complaints, []);
        assert_eq!(
            pairs(&parsed),
            [
                ("dev0", "/dev/nvidia0,gid=44"),
                ("features", "nesting=1"),
                ("unprivileged", "1"),
                ("lxc.cgroup2.devices.allow", "c 195:* rwm"),
                (
                    "lxc.mount.entry",
                    "/dev/nvidia-uvm dev/nvidia-uvm none bind,optional,create=file"
                ),
            ]
        );
        assert_eq!(
            pairs(&lxc("lxc.cgroup2.devices.allow = c 195:* rwm\nlxc.uts.name = t1\n")),
            [("lxc.cgroup2.devices.allow", "c 195:* rwm")]
        );
    }

    #[test]
    fn the_runtimes_switches() {
        let parsed = nvidia_runtime(
            "#accept-nvidia-visible-devices-as-volume-mounts = false\ndisable-require = false\n\n\
             [nvidia-container-cli]\n#debug = \"/var/log/nvidia-container-toolkit.log\"\n\
             no-cgroups = true # rootless\nuser = \"root:video\"\n[nvidia-container-runtime]\n\
             mode = \"auto\"\nruntimes = [\n  \"runc\",\n]\nnonsense\n",
        );
        assert_eq!(
            pairs(&parsed),
            [("disable-require", "false"), ("no-cgroups", "true"), ("mode", "auto")]
        );
        assert_eq!(parsed.complaints.len(), 1);
    }
}
