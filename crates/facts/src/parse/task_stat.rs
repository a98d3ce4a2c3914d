//! What single tasks tell of themselves: /proc/PID/stat, status, stack.

/// Most frames of a kernel stack that are kept.
const FRAMES_LIMIT: usize = 32;
/// SIGKILL's bit in the masks of pending signals.
const KILL_BIT: u64 = 1 << 8;

/// The fields of a task's `stat` that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStat {
    /// Process or thread id.
    pub id: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// State letter.
    pub state: char,
    /// The parent's process id.
    pub parent: u32,
    /// User time in clock ticks.
    pub user_ticks: u64,
    /// System time in clock ticks.
    pub system_ticks: u64,
    /// When it was started, in clock ticks since boot.
    pub started_ticks: u64,
}

/// Reads the line of `stat`. The name in parentheses may itself hold parentheses and spaces, so
/// the fields count from the last closing one: state is the third field of the line, the parent
/// the fourth, the times are the 14th and 15th, the start the 22nd (proc_pid_stat(5)).
pub fn stat(line: &str) -> Option<TaskStat> {
    let (head, fields) = line.trim().rsplit_once(')')?;
    let (id, name) = head.split_once('(')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let mut rest = fields.skip(9).map(str::parse::<u64>);
    let (user_ticks, system_ticks) = (rest.next()?.ok()?, rest.next()?.ok()?);
    let started_ticks = rest.nth(6).and_then(Result::ok).unwrap_or(0);
    let (id, name) = (id.trim().parse().ok()?, name.to_owned());
    Some(TaskStat { id, name, state, parent, user_ticks, system_ticks, started_ticks })
}

/// The fields of a task's `status` that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskStatus {
    /// Its name.
    pub name: Option<String>,
    /// State letter.
    pub state: Option<char>,
    /// How often it went off a processor, by itself or not.
    pub switches: Option<u64>,
    /// Whether SIGKILL is pending for the thread or the process.
    pub kill_pending: bool,
}

/// Reads `status`, or part of it.
pub fn status(text: &str) -> TaskStatus {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let count = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
    let pending = |name: &str| {
        let mask = field(name).and_then(|value| u64::from_str_radix(value, 16).ok());
        mask.is_some_and(|mask| mask & KILL_BIT != 0)
    };
    let [own, forced] = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"].map(count);
    TaskStatus {
        name: field("Name").map(str::to_owned),
        state: field("State").and_then(|state| state.chars().next()),
        switches: own.zip(forced).map(|(own, forced)| own.saturating_add(forced)),
        kill_pending: pending("SigPnd") || pending("ShdPnd"),
    }
}

/// The functions of a kernel stack, innermost first: `down_write`, `uvm_ioctl [nvidia_uvm]`.
pub fn stack(text: &str) -> Vec<String> {
    let frames = text.lines().flat_map(super::kernel_log::frames_of_line);
    frames.take(FRAMES_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) S b) R 1 7 7 0 -1 4194304 12 0 0 0 31 17 0 0 20 0 1 0 99 0";
        let expected = TaskStat {
            id: 7,
            name: "a) S b".to_owned(),
            state: 'R',
            parent: 1,
            user_ticks: 31,
            system_ticks: 17,
            started_ticks: 99,
        };
        assert_eq!(stat(line), Some(expected));
        for other in ["7 (a", "", "(a) R", "7 (a) R x"] {
            assert_eq!(stat(other), None, "{other}");
        }
    }

    #[test]
    fn a_pending_kill_and_the_switches() {
        let text = "Name:\tpython3\nState:\tD (disk sleep)\nSigPnd:\t0000000000000000\n\
            ShdPnd:\t0000000000000100\nvoluntary_ctxt_switches:\t12\n\
            nonvoluntary_ctxt_switches:\t3\n";
        let expected = TaskStatus {
            name: Some("python3".to_owned()),
            state: Some('D'),
            switches: Some(15),
            kill_pending: true,
        };
        assert_eq!(status(text), expected);
        assert_eq!(status("ShdPnd:\t0000000000004000\n"), TaskStatus::default());
    }

    #[test]
    fn frames_keep_their_module() {
        let text = "[<0>] percpu_rwsem_wait+0x10f/0x140\n[<0>] uvm_ioctl+0x1/0x2 [nvidia_uvm]\n";
        assert_eq!(stack(text), ["percpu_rwsem_wait", "uvm_ioctl [nvidia_uvm]"]);
    }
}
