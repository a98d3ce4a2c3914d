//! What `ps` prints, by the names of its columns: `ps aux`, `ps -eo pid,stat,wchan:32,comm`,
//! `ps -eLo …`.

use super::numbered;

/// Most rows that are kept.
const ROWS_LIMIT: usize = 4096;

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The line it stands on.
    pub line: u32,
    /// Process id.
    pub pid: u32,
    /// Thread id, where threads are listed.
    pub tid: Option<u32>,
    /// State letter.
    pub state: char,
    /// Kernel function that it waits in; `None` for `-`, `0` and where the column is not there.
    pub wchan: Option<String>,
    /// The command, with its arguments where those are shown.
    pub command: Option<String>,
}

/// Where the columns stand.
#[derive(Debug, Clone, Copy)]
struct Columns {
    pid: usize,
    tid: Option<usize>,
    state: usize,
    wchan: Option<usize>,
    command: Option<usize>,
    count: usize,
}

/// The columns of `ps aux`, whose heading `grep` takes away.
const AUX: Columns =
    Columns { pid: 1, tid: None, state: 7, wchan: None, command: Some(10), count: 11 };

/// Reads the rows that show a state. `aux` tells that rows without a heading are those of `ps aux`.
pub fn rows(text: &str, aux: bool) -> Vec<Row> {
    let mut columns = aux.then_some(AUX);
    let mut rows = Vec::new();
    for (number, line) in numbered(text) {
        if let Some(found) = heading(line) {
            columns = Some(found);
        } else if let Some(columns) = &columns
            && let Some(row) = row(number, line, columns)
        {
            rows.push(row);
        }
        if rows.len() >= ROWS_LIMIT {
            break;
        }
    }
    rows
}

fn heading(line: &str) -> Option<Columns> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let find = |names: &[&str]| words.iter().position(|word| names.contains(word));
    Some(Columns {
        pid: find(&["PID", "TGID"])?,
        tid: find(&["TID", "LWP", "SPID"]),
        state: find(&["STAT", "S", "STATE"])?,
        wchan: find(&["WCHAN"]),
        command: find(&["COMMAND", "CMD", "COMM"]),
        count: words.len(),
    })
}

fn row(number: u32, line: &str, columns: &Columns) -> Option<Row> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let at = |place: usize| words.get(place).copied();
    let state = at(columns.state)?;
    let letters = |rest: &str| rest.bytes().all(|byte| b"<NLsl+".contains(&byte));
    let first = state.chars().next().filter(|first| "RSDTtZXIP".contains(*first))?;
    if !letters(state.get(1..)?) {
        return None;
    }
    let command = columns.command.and_then(|place| {
        // The last column holds blanks.
        let is_last = place + 1 == columns.count;
        if is_last { Some(words.get(place..)?.join(" ")) } else { at(place).map(str::to_owned) }
    });
    Some(Row {
        line: number,
        pid: at(columns.pid)?.parse().ok()?,
        tid: columns.tid.and_then(|place| at(place)?.parse().ok()),
        state: first,
        wchan: columns
            .wchan
            .and_then(at)
            .filter(|name| !matches!(*name, "-" | "0" | "*"))
            .map(str::to_owned),
        command: command.filter(|command| !command.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_by_their_names() {
        let text = "    PID STAT WCHAN                            COMMAND\n\
            \x20  8123 Dl   rwsem_down_write_slowpath        python3 -c import torch\n\
            \x20  8200 S+   -                                bash\n";
        let rows = rows(text, false);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].pid, rows[0].state, rows[0].line), (8123, 'D', 2));
        assert_eq!(rows[0].wchan.as_deref(), Some("rwsem_down_write_slowpath"));
        assert_eq!(rows[0].command.as_deref(), Some("python3 -c import torch"));
        assert_eq!(rows[1].wchan, None);
    }

    #[test]
    fn without_a_heading_only_what_is_known_to_be_aux() {
        let line = "root  8123 0.0 0.1 9000 800 pts/0 D+ 10:01 0:00 nvidia-smi -q\n";
        assert_eq!(rows(line, true)[0].command.as_deref(), Some("nvidia-smi -q"));
        assert_eq!(rows(line, true)[0].state, 'D');
        assert!(rows(line, false).is_empty());
        assert!(rows("PID STAT\nx D\n7 Dubious\n", true).is_empty());
    }

    #[test]
    fn threads_have_a_column() {
        let rows = rows("PID LWP S WCHAN COMM\n7 9 D uvm_ioctl python3\n", false);
        assert_eq!((rows[0].pid, rows[0].tid), (7, Some(9)));
    }
}
