//! `gpudx explain WORD…`

use crate::args::{ColorWhen, ExplainArgs, PageFormat};
use crate::exit::Exit;
use crate::output;

/// Prints what a word means: a cause of that id, else what the driver's tables have under it.
pub(crate) fn run(args: &ExplainArgs, color: ColorWhen) -> Exit {
    let word = args.words.join(" ");
    let options = output::options(color, false);
    if let Some(cause) = reason::causes::by_id(&word) {
        return output::print(Exit::Fine, |out| match args.format {
            PageFormat::Text => render::explain::cause(out, cause, options),
            PageFormat::Md => render::explain::cause_markdown(out, cause),
        });
    }
    if args.format == PageFormat::Md {
        return output::complain("only causes have a page in Markdown", Exit::Usage);
    }
    let entries = nvabi::lookup(&word);
    if entries.is_empty() {
        return output::complain(&unknown(&word), Exit::Undetermined);
    }
    output::print(Exit::Fine, |out| render::explain::entries(out, &entries, options))
}

/// One line, with the causes whose ids are near.
fn unknown(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let near: Vec<&str> = reason::CAUSES
        .iter()
        .map(|cause| cause.id)
        .filter(|id| id.contains(&lower) || id.split('.').any(|part| lower.contains(part)))
        .take(6)
        .collect();
    if near.is_empty() {
        format!("nothing is known under “{word}”: neither a cause nor a code, name or product")
    } else {
        format!("nothing is known under “{word}”; causes near it: {}", near.join(", "))
    }
}
