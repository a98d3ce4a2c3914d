//! Which driver library a program is linked to, as `ldd` and the loader's debugging print it; and
//! that the program runs in a container of a kind that is not told.

use super::super::Line;
use super::super::pattern::{captures, matches, pattern};
use crate::model::Facts;
use crate::observed::Observed;
use crate::version::DriverVersion;

pattern! {
    /// `libcuda.so.1 => /lib/x86_64-linux-gnu/libcuda.so.1 (0x00007f…)`; ldconfig's rows have the
    /// kind of library before the arrow.
    LDD = r"\b(?P<name>libcuda\.so\.1|libnvidia-ml\.so\.1) => (?P<path>/[\w./+\-]+)"
}
pattern! {
    /// `/opt/cuda/lib64/stubs/libcuda.so: undefined symbol: cuFoo`: the library that was loaded.
    LOADED = r"(?P<path>/[\w./+\-]*/libcuda\.so(?:\.[\d.]+)?): undefined symbol"
}
pattern! {
    /// `/usr/local/cuda/compat/libcuda.so.1 -> libcuda.so.450.142.00`, as `ls -l` and people show it.
    LINK = r"(?P<path>/[\w./+\-]*/libcuda\.so(?:\.1)?) (?:->|→) (?P<target>[\w./+\-]*libcuda\.so\.\d{3}\.[\d.]*\d)"
}
pattern! { CONTAINED = r"(?i)\b(?:in|inside|within) (?:an?|the|my|this|our|one|that) (?:[\w.\-]+ ){0,3}container\b" }

/// Enters what the line tells.
pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    if let Some(found) = captures(&LDD, line.text) {
        let (name, path) = (&found["name"], &found["path"]);
        let file = crate::extract::libraries::by_path(path, name, &line.origin(), facts);
        let slot = if name.starts_with("libcuda") {
            &mut facts.library.cuda
        } else {
            &mut facts.library.nvml
        };
        facts.mentions_gpu = true;
        slot.or_better(Observed::seen(file, line.origin()));
    }
    if let Some(found) = captures(&LOADED, line.text) {
        let path = &found["path"];
        let file = crate::extract::libraries::by_path(path, "libcuda.so.1", &line.origin(), facts);
        facts.mentions_gpu = true;
        facts.library.cuda.or_better(Observed::seen(file, line.origin()));
    }
    if let Some(found) = captures(&LINK, line.text) {
        let (path, target) = (&found["path"], &found["target"]);
        let mut file =
            crate::extract::libraries::by_path(path, "libcuda.so.1", &line.origin(), facts);
        let version = target.rsplit("libcuda.so.").next().and_then(DriverVersion::parse);
        file.version = file.version.or(version);
        let others = &mut facts.library.others;
        // The path alone may have been entered from the same line.
        if let Some(known) = others.iter_mut().find(|known| known.path == file.path) {
            known.version = known.version.take().or(file.version);
        } else if others.len() < super::LIMIT {
            others.push(file);
        }
    }
    if prose && matches(&CONTAINED, line.text) {
        facts.host.container_told.or_better(Observed::seen(true, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn what_ldd_prints() {
        assert!([&LDD, &LOADED, &LINK, &CONTAINED].iter().all(|pattern| pattern.is_some()));
        let facts =
            lines_of("\tlibcuda.so.1 => /lib/x86_64-linux-gnu/libcuda.so.1 (0x00007f1c2a000000)");
        assert_eq!(facts.library.cuda.value().unwrap().path, "/lib/x86_64-linux-gnu/libcuda.so.1");
        let facts = lines_of("In it /usr/local/cuda/compat/libcuda.so.1 -> libcuda.so.450.142.00");
        let file = facts.library.others.first().unwrap();
        assert_eq!(file.version.as_ref().unwrap().to_string(), "450.142.00");
        assert!(
            lines_of("It fails only in the Isaac Sim container.").host.container_told.is_seen()
        );
    }
}
