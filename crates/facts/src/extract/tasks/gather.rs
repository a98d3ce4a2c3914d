//! The pieces that tell of single tasks, as they come.

use std::collections::BTreeMap;

use crate::model::ProbeRun;
use crate::observed::Origin;
use crate::parse::ps::Row;
use crate::parse::task_stat::{self, TaskStat};
use crate::parse::task_syscall::{self, InCall};
use crate::raw::{RawItem, RawState};

/// Most tasks, and most descriptors of one, that are kept.
const LIMIT: usize = 1024;

/// What is known of single tasks so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    /// The tasks, in the order in which they came.
    pub(super) tasks: Vec<Part>,
    /// What descriptors lead to, by process.
    pub(super) links: BTreeMap<String, BTreeMap<u64, String>>,
    /// Bytes of a process, by the task for whose call they were read and their address.
    memory: BTreeMap<(String, u64), Vec<u8>>,
    /// Seconds between the two looks at tasks.
    pub(super) interval_s: BTreeMap<String, f64>,
    /// Seconds since tasks last ran.
    pub(super) asleep_s: BTreeMap<String, f64>,
}

/// What is known of one task.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    /// The process as its path or row names it: a number, or a placeholder such as `$PID`.
    pub(super) process: String,
    /// The same of the thread.
    pub(super) task: String,
    pub(super) name: Option<String>,
    pub(super) looks: Vec<TaskStat>,
    pub(super) state: Option<char>,
    pub(super) switches: Vec<u64>,
    pub(super) kill_pending: bool,
    pub(super) wchan: Option<String>,
    pub(super) stack: Vec<String>,
    pub(super) syscall: Option<InCall>,
    pub(super) refused: Vec<String>,
    pub(super) origin: Option<Origin>,
}

/// What stands for the file's name where a path leads to a descriptor's link.
const LINK: &str = "fd/";

/// What a path below /proc names.
struct Place<'a> {
    process: &'a str,
    task: &'a str,
    file: &'a str,
}

/// Takes `/proc/PID/FILE`, `/proc/PID/task/TID/FILE` and `/proc/PID/fd/N` apart. The words of a
/// script that stand for a number are taken for one.
fn place(path: &str) -> Option<Place<'_>> {
    let words: Vec<&str> = path.strip_prefix("/proc/")?.split('/').collect();
    let stands_for_a_number = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_digit())
            || word.contains('$')
            || word.trim_matches(['<', '>', '[', ']', '{', '}']).eq_ignore_ascii_case("pid")
    };
    let process = words.first().copied().filter(|word| stands_for_a_number(word))?;
    match words.as_slice() {
        [_, file] => Some(Place { process, task: process, file }),
        [_, "task", task, file] => Some(Place { process, task, file }),
        [_, "fd", descriptor] => Some(Place { process, task: descriptor, file: LINK }),
        _ => None,
    }
}

impl Parts {
    /// Takes a file or a link below /proc/PID.
    pub(crate) fn file(&mut self, path: &str, item: &RawItem) {
        let Some(place) = place(path) else { return };
        if place.file == LINK {
            let target = item.text().map(|text| text.trim().to_owned());
            if let (Some(target), Ok(descriptor)) = (target, place.task.parse()) {
                self.link(place.process, descriptor, target);
            }
            return;
        }
        let Some(part) = self.part(place.process, place.task, &item.origin()) else { return };
        match &item.state {
            RawState::Bytes(bytes) => part.take(place.file, &String::from_utf8_lossy(bytes)),
            RawState::Denied(errno) if place.file == "mem" => {
                part.refuse(format!(
                    "parameters of its call ({errno}): its memory does not answer"
                ));
            }
            RawState::Denied(errno) => {
                let privilege = privilege(place.file);
                let refused = format!("{} ({errno}): {privilege}", place.file);
                part.refuse(refused);
            }
            RawState::TimedOut => part.refuse(format!("{}: the look did not end", place.file)),
            RawState::Absent => {}
        }
    }

    /// What a descriptor of a process leads to.
    pub(crate) fn link(&mut self, process: &str, descriptor: u64, target: String) {
        if self.links.len() >= LIMIT && !self.links.contains_key(process) {
            return;
        }
        let links = self.links.entry(process.to_owned()).or_default();
        if links.len() < LIMIT {
            links.insert(descriptor, target);
        }
    }

    /// Frames that `cat /proc/PID/stack` printed, of a task that the text does not name.
    pub(crate) fn stack_of_nobody(&mut self, text: &str, origin: &Origin) {
        let name = format!("a task at line {}", origin.line);
        if let Some(part) = self.part("", &name, origin) {
            part.stack = task_stat::stack(text);
        }
    }

    /// A row of `ps` with a task in state D.
    pub(crate) fn row(&mut self, row: &Row, origin: &Origin) {
        let process = row.pid.to_string();
        let task = row.tid.map_or_else(|| process.clone(), |tid| tid.to_string());
        let Some(part) = self.part(&process, &task, origin) else { return };
        part.state = part.state.or(Some(row.state));
        part.wchan = part.wchan.take().or_else(|| row.wchan.clone());
        let program = row.command.as_deref().and_then(|command| command.split(' ').next());
        let program = program.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
        part.name = part.name.take().or(program);
    }

    /// What the probe tells beside files: the time between looks, since when a task sleeps, and
    /// bytes of processes.
    pub(crate) fn probe(&mut self, run: &ProbeRun) {
        for (key, value) in &run.notes {
            match key.as_str() {
                "looks-apart-s" => enter_seconds(&mut self.interval_s, value),
                "asleep-s" => enter_seconds(&mut self.asleep_s, value),
                "memory" => {
                    let mut words = value.split(' ');
                    let (Some(task), Some(address), Some(hex)) =
                        (words.next(), words.next().and_then(nvabi::number::parse), words.next())
                    else {
                        continue;
                    };
                    if self.memory.len() < LIMIT {
                        self.memory.insert((task.to_owned(), address), from_hexadecimal(hex));
                    }
                }
                _ => {}
            }
        }
    }

    /// So many bytes at an address, as far as they were read for that task.
    pub(super) fn memory_at(&self, task: &str, address: u64, length: usize) -> Option<Vec<u8>> {
        let bytes = self.memory.get(&(task.to_owned(), address))?;
        Some(bytes.get(..length.min(bytes.len()))?.to_vec())
    }

    fn part(&mut self, process: &str, task: &str, origin: &Origin) -> Option<&mut Part> {
        let same = |part: &Part| part.process == process && part.task == task;
        let index = match self.tasks.iter().position(same) {
            Some(index) => index,
            None if self.tasks.len() >= LIMIT => return None,
            None => {
                self.tasks.push(Part {
                    process: process.to_owned(),
                    task: task.to_owned(),
                    origin: Some(origin.clone()),
                    ..Part::default()
                });
                self.tasks.len() - 1
            }
        };
        self.tasks.get_mut(index)
    }
}

impl Part {
    fn take(&mut self, file: &str, text: &str) {
        match file {
            "stat" => self.looks.extend(text.lines().filter_map(task_stat::stat)),
            "status" => {
                let status = task_stat::status(text);
                self.state = status.state.or(self.state);
                self.name = status.name.or(self.name.take());
                self.switches.extend(status.switches);
                self.kill_pending |= status.kill_pending;
            }
            "comm" => self.name = Some(text.trim().to_owned()).filter(|name| !name.is_empty()),
            // "0" means that it does not wait, or that the reader may not know.
            "wchan" => {
                let name = text.trim();
                self.wchan =
                    Some(name.to_owned()).filter(|name| !matches!(name.as_str(), "" | "0"));
            }
            "stack" => self.stack = task_stat::stack(text),
            "syscall" => {
                self.syscall = text.lines().find_map(task_syscall::parse).or(self.syscall.take());
            }
            _ => {}
        }
    }

    fn refuse(&mut self, refused: String) {
        if self.refused.len() < 8 && !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
    }
}

/// Enters `TID SECONDS`.
fn enter_seconds(known: &mut BTreeMap<String, f64>, value: &str) {
    if let Some((task, seconds)) = value.split_once(' ')
        && let Ok(seconds) = seconds.parse()
        && known.len() < LIMIT
    {
        known.insert(task.to_owned(), seconds);
    }
}

/// Who may read a file of a task, for one who may not.
fn privilege(file: &str) -> &'static str {
    match file {
        "stack" => "needs CAP_SYS_ADMIN in the initial user namespace, that is root on the host",
        "syscall" | "mem" => "needs the right to trace the task: its user's or CAP_SYS_PTRACE",
        "fd" => "needs the task's user or CAP_SYS_PTRACE; root sees which nodes it holds",
        _ => "needs the task's user or root",
    }
}

/// Reads two digits a byte, up to the first pair that is none.
fn from_hexadecimal(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map_while(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .take(crate::parse::strace::driver_call::LONGEST_PARAMETERS)
        .collect()
}
