//! The probes, one file each. Each runs in a child of its own and tells what it sees as it goes,
//! so that what came before a hang or a crash is known.

mod cuinit;
mod cuinit_kernel;
mod elf_file;
mod frameworks;
mod kernel_log;
mod libraries;
mod library_search;
mod module;
mod module_files;
mod nodes;
mod nvml;
mod passive;
mod pci;
mod proc_driver;
mod process;
mod pythons;
mod reader;
mod sandbox;

use std::path::PathBuf;

use crate::child::report::Report;

/// One probe.
pub(crate) struct Probe {
    /// Its name, as it stands in `probe:NAME#1`.
    pub(crate) name: &'static str,
    /// True when it opens nodes of the driver or loads its libraries, so that it runs under guard.
    pub(crate) touches_driver: bool,
    /// What it does.
    pub(crate) run: fn(&mut Report, &Options),
}

/// All probes.
const PROBES: [Probe; 13] = [
    Probe { name: "passive", touches_driver: false, run: passive::run },
    Probe { name: "proc_driver", touches_driver: false, run: proc_driver::run },
    Probe { name: "pci", touches_driver: false, run: pci::run },
    Probe { name: "kernel_log", touches_driver: false, run: kernel_log::run },
    Probe { name: "libraries", touches_driver: false, run: libraries::run },
    Probe { name: "module_files", touches_driver: false, run: module_files::run },
    Probe { name: "sandbox", touches_driver: false, run: sandbox::run },
    Probe { name: "process", touches_driver: false, run: process::run },
    Probe { name: "frameworks", touches_driver: false, run: frameworks::run },
    Probe { name: "nodes", touches_driver: true, run: nodes::run },
    Probe { name: "module", touches_driver: true, run: module::run },
    Probe { name: "nvml", touches_driver: true, run: nvml::run },
    Probe { name: "cuinit", touches_driver: true, run: cuinit::run },
];

/// The probe of that name.
pub(crate) fn by_name(name: &str) -> Option<&'static Probe> {
    PROBES.iter().find(|probe| probe.name == name)
}

/// Options of a child, from its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// Root of the machine that is looked at.
    pub(crate) root: PathBuf,
    /// Go beyond cuInit: context, memory, kernel.
    pub(crate) context: bool,
}

impl Options {
    /// Reads `--root DIR` and `--context`. `None` for anything else.
    pub(crate) fn parse(words: &[&str]) -> Option<Options> {
        let mut options = Options { root: PathBuf::from("/"), context: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--root" => options.root = PathBuf::from(words.next()?),
                "--context" => options.context = true,
                _ => return None,
            }
        }
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_options_are_read() {
        let mut names: Vec<_> = PROBES.iter().map(|probe| probe.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROBES.len());
        let options = Options::parse(&["--root", "/mnt/x", "--context"]).unwrap();
        assert_eq!((options.root, options.context), (PathBuf::from("/mnt/x"), true));
        assert_eq!(Options::parse(&["--root"]), None);
        assert_eq!(Options::parse(&["--changes"]), None);
    }
}
