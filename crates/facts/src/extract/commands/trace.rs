//! What was run under strace: the trace itself is decoded elsewhere; here stands what such a
//! trace can and cannot show.

use super::Output;
use crate::model::{Facts, Note};
use crate::parse::command_line::Wrapper;

pub(super) fn apply(output: &Output<'_>, facts: &mut Facts) -> bool {
    let options = output.command.wrappers.iter().find_map(|wrapper| match wrapper {
        Wrapper::Strace(words) => Some(words),
        _ => None,
    });
    let Some(options) = options else { return false };
    let follows = options.iter().any(|word| {
        word.starts_with('-') && !word.starts_with("--") && word.contains('f')
            || word == "--follow-forks"
    });
    let wraps = output.command.wrappers.iter().any(|wrapper| {
        matches!(wrapper, Wrapper::Timeout(_) | Wrapper::Container(_) | Wrapper::Root)
    });
    if !follows && wraps {
        facts.notes.push(Note {
            text: "this trace proves nothing: without -f strace watched only the wrapper, so no \
                ioctl of the program could show"
                .to_owned(),
            origin: output.item.origin_at(0, output.line),
        });
    }
    for (number, line) in crate::parse::numbered(output.text) {
        if line.contains("+++ exited with 0 +++") {
            facts.notes.push(Note {
                text: "exit status 0 says that the watched program ended, not what cuInit returned"
                    .to_owned(),
                origin: output.item.origin_at(number, line),
            });
        }
    }
    true
}
