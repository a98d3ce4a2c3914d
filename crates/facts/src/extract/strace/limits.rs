//! What a trace by strace cannot show: threads that it did not follow, its own beginning, and what a
//! program's exit status means.

use crate::model::{Facts, Note};
use crate::parse::strace::Strace;
use crate::raw::RawItem;

/// Notes what the trace cannot show, each thing once.
pub(super) fn apply(strace: &Strace, item: &RawItem, text: &str, facts: &mut Facts) {
    let mut note = |line: u32, text: String| {
        if !facts.notes.iter().any(|note| note.text == text) {
            facts.notes.push(Note { text, origin: item.origin_of_line(line) });
        }
    };
    if let Some((line, ioctls)) = strace.counted {
        let text = format!(
            "strace -c counts calls and shows none: {ioctls} ioctls, of which it is not told which \
             or whether one is still under way"
        );
        note(line, text);
    }
    if let Some((line, count)) = strace.unassigned {
        let text = format!(
            "{count} ioctls go to descriptors whose opening is not in this trace, so that their \
             nodes are not known; strace -y shows them"
        );
        note(line, text);
    }
    let about_cuda = strace.loads_cuda || !strace.calls.is_empty();
    if let Some(call) = strace.calls.first().filter(|call| call.asked.is_some() && !strace.begins) {
        let text = "the trace does not show how the nodes were opened: it is the end of a longer \
            one, or of a program that ran already, or was made for other calls"
            .to_owned();
        note(call.line, text);
    }
    if let Some(line) = strace.starts_another.filter(|_| about_cuda && !strace.follows) {
        let text = "the program starts a thread or another program that this trace does not \
            follow (strace -f would): what those asked the driver is not shown"
            .to_owned();
        note(line, text);
    }
    let ended = |line: &u32| {
        let line = usize::try_from(line.saturating_sub(1)).ok().and_then(|at| text.lines().nth(at));
        line.is_some_and(|line| line.contains("exited with 0"))
    };
    let end = strace.ends.iter().map(|(line, ..)| *line).rfind(ended);
    if let Some(line) = end.filter(|_| about_cuda) {
        let text = "exit status 0 says that the watched program ended, not what cuInit returned"
            .to_owned();
        note(line, text);
    }
}
