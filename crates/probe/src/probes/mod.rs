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
mod nvml_health;
mod process;
mod pythons;
mod reader;
mod sandbox;
mod stuck;
mod wanted;

use std::path::PathBuf;

use facts::model::experiment::Change;
use facts::wanted::Group;

use self::reader::Reader;
use crate::child::report::Report;

/// One probe.
pub(crate) struct Probe {
    /// Its name, as it stands in `probe:NAME#1`.
    pub(crate) name: &'static str,
    /// True when it opens nodes of the driver or loads its libraries, so that it runs under guard.
    pub(crate) touches_driver: bool,
    /// The rows of the table of what is collected that it reads, before anything else.
    rows: Option<Group>,
    /// What else it does.
    rest: Option<fn(&mut Report, &Options)>,
}

impl Probe {
    /// A probe that reads the rows of a group and may do more.
    const fn of_rows(
        name: &'static str,
        group: Group,
        rest: Option<fn(&mut Report, &Options)>,
    ) -> Probe {
        Probe { name, touches_driver: false, rows: Some(group), rest }
    }

    /// A probe that asks the driver.
    const fn of_driver(name: &'static str, ask: fn(&mut Report, &Options)) -> Probe {
        Probe { name, touches_driver: true, rows: None, rest: Some(ask) }
    }

    /// Runs it.
    pub(crate) fn run(&self, report: &mut Report, options: &Options) {
        if let Some(group) = self.rows {
            wanted::read(report, &Reader::new(&options.root), group);
        }
        if let Some(rest) = self.rest {
            rest(report, options);
        }
    }
}

/// All probes.
const PROBES: [Probe; 14] = [
    Probe::of_rows("passive", Group::Passive, None),
    Probe::of_rows("proc-driver", Group::ProcDriver, None),
    Probe::of_rows("pci", Group::Pci, None),
    Probe::of_rows("kernel-log", Group::KernelLog, None),
    Probe::of_rows("libraries", Group::Libraries, Some(libraries::run)),
    Probe::of_rows("sandbox", Group::Sandbox, Some(sandbox::run)),
    Probe::of_rows("process", Group::Process, Some(process::run)),
    Probe::of_rows("frameworks", Group::Frameworks, Some(frameworks::run)),
    Probe {
        name: "module-files",
        touches_driver: false,
        rows: None,
        rest: Some(module_files::run),
    },
    Probe { name: "stuck", touches_driver: false, rows: None, rest: Some(stuck::run) },
    Probe::of_driver("nodes", nodes::run),
    Probe::of_driver("module", module::run),
    Probe::of_driver("nvml", nvml::run),
    Probe::of_driver("cuinit", cuinit::run),
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
    /// What an experiment changes.
    pub(crate) change: Change,
}

impl Options {
    /// Reads `--root DIR`, `--context` and `--change CHANGE`. `None` for anything else.
    pub(crate) fn parse(words: &[&str]) -> Option<Options> {
        let mut options =
            Options { root: PathBuf::from("/"), context: false, change: Change::Nothing };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--root" => options.root = PathBuf::from(words.next()?),
                "--context" => options.context = true,
                "--change" => options.change = Change::parse(words.next()?)?,
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
        assert!(Group::ALL.iter().all(|group| by_name(group.name()).is_some()));
        let words = ["--root", "/mnt/x", "--context", "--change", "user 7"];
        let options = Options::parse(&words).unwrap();
        assert_eq!(options.change, Change::User(7));
        assert_eq!((options.root, options.context), (PathBuf::from("/mnt/x"), true));
        assert_eq!(Options::parse(&["--change", "everything"]), None);
        assert_eq!(Options::parse(&["--root"]), None);
        assert_eq!(Options::parse(&["--changes"]), None);
    }
}
