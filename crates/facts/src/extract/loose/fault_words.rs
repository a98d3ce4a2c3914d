//! The words in which engines, hooks and orchestrators report faults.

use super::pattern::{Lazy, captures, pattern};
use crate::model::engine::{EngineFault, ProgramStep};
use crate::observed::{Errno, clean_excerpt};
use crate::version::DriverVersion;

pattern! {
    PROGRAM = r"(?i)(?:bpf_prog_query\(BPF_CGROUP_DEVICE\) failed|(?P<load>load program|bpf_prog_load)|(?P<attach>(?:BPF_PROG_ATTACH|can'?t attach program)[^:]{0,60}(?:: can'?t attach program)?)): (?P<why>operation not permitted|permission denied|invalid argument|function not implemented)"
}
pattern! { DEVICE = r"(?i)device error: (?:unknown device(?: id)?: (?P<after>[\w\-/:.]+)|(?P<before>[\w\-/:.]+): unknown device)" }
pattern! { CONTROLLER = r"(?i)cgroup subsystem devices not found" }
pattern! { LIST = r"(?i)devices\.allow: (?P<why>operation not permitted|permission denied)" }
pattern! { UNRESOLVABLE = r#"(?i)unresolvable CDI devices?:? \[?"?(?P<device>[^\s:,"\]]+)"# }
pattern! {
    UNKNOWN = r#"(?i)(?:could not select device driver "?(?P<cdi>cdi)\b|stat (?P<a>[\w.\-]+/[\w.\-]+=[\w\-]+): no such file|custom device "?(?P<b>[\w.\-]+/[\w.\-]+=[\w\-]+)"?: no such file|(?P<c>[\w.\-]+/[\w.\-]+=[\w\-]+)"? (?:is not an absolute path|is not a device))"#
}
pattern! {
    PATH = r#"(?i)(?:fulfil mount request: (?:open|stat)|error stat'ing file|error mounting|failed to stat CDI host device|error gathering device information while adding custom device|(?:crun|runc|OCI runtime)[^\n]{0,120}?: (?:cannot |error )?(?:stat|open|access)) [`'"]?(?P<path>/[^\s`'":]+)[`'"]?[^\n]{0,400}?no such file or directory"#
}
pattern! {
    /// libnvidia-container looks for the nodes of the driver on the host, whatever a spec says.
    NODE = r"(?i)mount error: stat failed: (?P<path>/dev/nvidia[\w\-/]*): no such file or directory"
}
pattern! {
    IN_IMAGE = r"(?i)mount error: file creation failed: \S*/(?P<library>lib(?:nvidia|cuda)[\w\-.]*\.so[.\d]*): file exists"
}
pattern! { ROOT = r"(?i)\bfailed to change root directory: No such file or directory" }
pattern! { LIBRARY = r"(?i)load library failed: (?P<library>lib[\w\-]+\.so[.\d]*)" }
pattern! {
    RUNTIME = r#"(?i)(?P<said>could not select device driver "(?:nvidia)?"|(?:unknown or invalid runtime name|unknown runtime specified):? "?nvidia|unknown runtime "?nvidia|no runtime for "?nvidia"? is configured|nvidia-container-(?:runtime(?:-hook)?|cli)"?: (?:executable file not found|no such file)|exec: "nvidia-container-runtime(?:-hook)?": [^\n]{0,40}not found)"#
}
pattern! {
    PLUGIN = r"(?i)If this is a GPU node, did you (?:set the docker default runtime|configure the NVIDIA Container Toolkit)|could not load NVML library"
}
pattern! { TIMED_OUT = r"(?i)driver (?:rpc )?error: timed out|nvidia-container-cli: [^\n]{0,60}timed out" }
pattern! { GVISOR = r"(?i)unsupported Nvidia driver version:? v?(?P<version>\d{3}\.[\d.]*\d)" }
pattern! { GVISOR_END = r"(?i)cannot read client sync file: waiting for sandbox to start: EOF" }
pattern! {
    GVISOR_CALL = r"(?i)nvproxy: (?P<said>(?:unknown|unsupported|unimplemented|invalid) (?:\w+ )?(?:ioctl|control command|allocation class|class|uvm ioctl|escape)[^\n]{0,60})"
}
pattern! {
    IN_USE = r"(?i)(?P<said>could not unload NVIDIA driver kernel modules, driver is in use|nvidia driver module is already loaded with refcount \d+|failed to uninstall nvidia driver components)"
}
pattern! {
    MKNOD = r"(?i)mknod:? [`'‘(]?(?P<path>/\S*?nvidia[\w\-/]*)[^\n]{0,60}?(?:operation not permitted|permission denied)"
}

/// The faults whose message begins in the first line of the window.
pub(super) fn faults(window: &str, first_line: usize) -> Vec<EngineFault> {
    let mut found = Vec::new();
    let here = |pattern: &Lazy| {
        let matched = captures(pattern, window)?;
        matched.get(0).filter(|whole| whole.start() < first_line)?;
        Some(matched)
    };
    let group = |pattern: &Lazy, name: &str| Some(here(pattern)?.name(name)?.as_str().to_owned());
    if let Some(matched) = here(&PROGRAM) {
        let step = match (matched.name("load"), matched.name("attach")) {
            (Some(_), _) => ProgramStep::Load,
            (None, Some(_)) => ProgramStep::Attach,
            (None, None) => ProgramStep::Query,
        };
        let why = matched.name("why").map_or("", |why| why.as_str());
        found.push(EngineFault::DeviceProgram(step, errno_of(why)));
    }
    if let Some(matched) = here(&DEVICE)
        && let Some(device) = matched.name("after").or(matched.name("before"))
    {
        found.push(EngineFault::UnknownDevice(device.as_str().to_owned()));
    }
    if here(&CONTROLLER).is_some() {
        found.push(EngineFault::NoDeviceController);
    }
    if let Some(why) = group(&LIST, "why") {
        found.push(EngineFault::DeviceList(errno_of(&why)));
    }
    if let Some(device) = group(&UNRESOLVABLE, "device") {
        found.push(EngineFault::CdiUnresolvable(device));
    }
    if let Some(matched) = here(&UNKNOWN) {
        let device = ["a", "b", "c", "cdi"].iter().find_map(|name| matched.name(name));
        found.extend(device.map(|device| EngineFault::CdiUnknown(device.as_str().to_owned())));
    }
    if let Some(library) = group(&IN_IMAGE, "library") {
        found.push(EngineFault::LibraryInImage(library));
    }
    if let Some(path) = group(&NODE, "path") {
        found.push(EngineFault::NodeMissing(path));
    }
    if let Some(path) = group(&PATH, "path") {
        found.push(EngineFault::PathMissing(path));
    }
    if let Some(library) = group(&LIBRARY, "library") {
        found.push(EngineFault::HookLacksLibrary(library));
    }
    if here(&ROOT).is_some() {
        found.push(EngineFault::DriverRootMissing);
    }
    if let Some(said) = group(&RUNTIME, "said") {
        found.push(EngineFault::NoGpuRuntime(said));
    }
    if here(&PLUGIN).is_some() {
        found.push(EngineFault::PluginLacksDriver);
    }
    if here(&TIMED_OUT).is_some() {
        found.push(EngineFault::HookTimedOut);
    }
    if let Some(version) = group(&GVISOR, "version") {
        found.push(EngineFault::GvisorVersion(DriverVersion::parse(&version)));
    }
    if here(&GVISOR_END).is_some() {
        found.push(EngineFault::GvisorVersion(None));
    }
    if let Some(said) = here(&GVISOR_CALL).and_then(|matched| matched.name("said")) {
        let own = window.get(said.start()..said.end().min(first_line)).unwrap_or("");
        found.push(EngineFault::GvisorCall(clean_excerpt(own)));
    }
    if let Some(said) = group(&IN_USE, "said") {
        found.push(EngineFault::DriverInUse(said));
    }
    if let Some(path) = group(&MKNOD, "path") {
        found.push(EngineFault::MknodRefused(path));
    }
    found
}

fn errno_of(words: &str) -> Errno {
    match words.to_ascii_lowercase().as_str() {
        "operation not permitted" => Errno::EPERM,
        "permission denied" => Errno::EACCES,
        "function not implemented" => Errno::ENOSYS,
        _ => Errno::EINVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> EngineFault {
        let found = faults(text, text.len());
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn every_expression_compiles() {
        let all = [
            &PROGRAM,
            &DEVICE,
            &CONTROLLER,
            &LIST,
            &UNRESOLVABLE,
            &UNKNOWN,
            &PATH,
            &LIBRARY,
            &RUNTIME,
            &PLUGIN,
            &TIMED_OUT,
            &GVISOR,
            &GVISOR_END,
            &GVISOR_CALL,
            &IN_USE,
            &MKNOD,
        ];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn device_programs_and_lists() {
        let query = "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted: unknown.";
        assert_eq!(one(query), EngineFault::DeviceProgram(ProgramStep::Query, Errno::EPERM));
        let attach = "unable to replace original device filters program with new one: failed to call BPF_PROG_ATTACH (BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI): can't attach program: invalid argument: unknown";
        assert_eq!(one(attach), EngineFault::DeviceProgram(ProgramStep::Attach, Errno::EINVAL));
        let load =
            "failed to create new device filters program: load program: operation not permitted";
        assert_eq!(one(load), EngineFault::DeviceProgram(ProgramStep::Load, Errno::EPERM));
        let list = "failed to add device rules: write /sys/fs/cgroup/devices/docker/ab/devices.allow: operation not permitted: unknown.";
        assert_eq!(one(list), EngineFault::DeviceList(Errno::EPERM));
    }

    #[test]
    fn names_and_paths_of_cdi() {
        assert_eq!(
            one("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all"),
            EngineFault::CdiUnresolvable("nvidia.com/gpu=all".into())
        );
        assert_eq!(
            one("Error: stat nvidia.com/gpu=0: no such file or directory"),
            EngineFault::CdiUnknown("nvidia.com/gpu=0".into())
        );
        assert_eq!(
            one(
                "crun: error stat'ing file `/usr/lib64/libEGL_nvidia.so.550.54.14`: No such file or directory: OCI runtime attempted to invoke a command that was not found"
            ),
            EngineFault::PathMissing("/usr/lib64/libEGL_nvidia.so.550.54.14".into())
        );
        assert_eq!(
            one(
                "Error: crun: cannot stat `/usr/lib64/libnvidia-opencl.so.560.35.03`: No such file or directory: OCI runtime attempted to invoke a command that was not found"
            ),
            EngineFault::PathMissing("/usr/lib64/libnvidia-opencl.so.560.35.03".into())
        );
        assert_eq!(
            one(
                "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/1f/merged/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1: file exists: unknown."
            ),
            EngineFault::LibraryInImage("libnvidia-ml.so.1".into())
        );
        assert_eq!(
            one(
                "nvidia-container-cli: mount error: stat failed: /dev/nvidia-modeset: no such file or directory"
            ),
            EngineFault::NodeMissing("/dev/nvidia-modeset".into())
        );
        assert_eq!(
            one(
                "error mounting \"/usr/lib/libcuda.so.535.104.05\" to rootfs at \"/usr/lib/libcuda.so.535.104.05\": stat /usr/lib/libcuda.so.535.104.05: no such file or directory"
            ),
            EngineFault::PathMissing("/usr/lib/libcuda.so.535.104.05".into())
        );
    }
}
