//! One parser a format. Each takes text or bytes and returns what it understood plus complaints;
//! it never fails, never does input or output, and keeps what it does not know.
//!
//! Line numbers count from 1 within the text that was given; the caller turns them into an
//! [`crate::Origin`] by [`crate::raw::RawItem::origin_at`].

pub mod acs;
pub mod cdi;
pub mod cgroup;
pub mod cmdline;
pub mod collect_env;
pub mod command_line;
pub mod container_conf;
pub mod decode;
pub mod decompress;
pub mod elf;
pub mod elf_gsp;
pub mod elf_library;
pub mod elf_summary;
pub mod environ;
pub(crate) mod expression;
pub mod id_map;
pub mod kernel_config;
pub mod kernel_log;
pub mod ld_cache;
pub mod limits;
pub mod ls_long;
pub mod lspci;
pub mod maps;
pub mod modinfo;
pub mod modprobe_conf;
pub mod mount_line;
pub mod mountinfo;
pub mod os_release;
pub mod pci_sysfs;
pub mod proc_devices;
pub mod proc_modules;
pub mod proc_nvidia;
pub mod proc_status;
pub mod prose_tail;
pub mod ps;
pub mod readelf_sections;
pub mod sieve;
pub mod smi_csv;
pub mod smi_list;
pub mod smi_message;
pub mod smi_query;
pub mod smi_table;
pub mod smi_topo;
pub mod strace;
pub mod strings_gsp;
pub mod task_stat;
pub mod task_syscall;
pub mod transcript;

/// Most complaints that one parse keeps.
pub const COMPLAINTS_LIMIT: usize = 1000;

/// What a parser understood, and what it could not make sense of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed<T> {
    /// What was understood.
    pub value: T,
    /// What was not, by line.
    pub complaints: Vec<LineComplaint>,
}

impl<T> Parsed<T> {
    /// A result without complaints.
    pub fn clean(value: T) -> Parsed<T> {
        Parsed { value, complaints: Vec::new() }
    }

    /// Adds a complaint about a line.
    ///
    /// After [`COMPLAINTS_LIMIT`] they are dropped: a text of which nothing is understood is no
    /// text of this format, and telling so a million times costs memory and tells nothing.
    pub fn complain(&mut self, line: u32, problem: impl Into<String>) {
        if self.complaints.len() >= COMPLAINTS_LIMIT {
            return;
        }
        self.complaints.push(LineComplaint { line, problem: problem.into() });
    }
}

/// A line that a parser kept without understanding it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineComplaint {
    /// The line, from 1; 0 for the whole text.
    pub line: u32,
    /// What is wrong with it, in a few words.
    pub problem: String,
}

/// A value and the line it stood on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct At<T> {
    /// The line, from 1; 0 for the whole text.
    pub line: u32,
    /// The value.
    pub value: T,
}

impl<T> At<T> {
    /// Joins a line and a value.
    pub fn new(line: u32, value: T) -> At<T> {
        At { line, value }
    }
}

/// The lines of a text with their numbers, from 1.
pub fn numbered(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1u32..).zip(text.lines())
}
