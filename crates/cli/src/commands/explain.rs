//! `gpudx explain WORD…`

use std::io::Write as _;

use facts::Layer;
use reason::symptom::SymptomId;

use crate::args::{ColorWhen, ExplainArgs, PageFormat};
use crate::exit::Exit;
use crate::output;

/// Prints what a word means: a cause or a symptom of that id, what the driver's tables have under it,
/// the causes of a layer, or what a pasted line says.
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
    if let Some(symptom) = SymptomId::from_name(&word) {
        return output::print(Exit::Fine, |out| render::explain::symptom(out, symptom, options));
    }
    let entries = nvabi::lookup(&word);
    if !entries.is_empty() {
        return output::print(Exit::Fine, |out| render::explain::entries(out, &entries, options));
    }
    if let Some(layer) = Layer::from_name(&word) {
        return output::print(Exit::Fine, |out| render::explain::layer(out, layer, options));
    }
    let mut page = Vec::new();
    match render::explain::line(&mut page, &word, options) {
        Ok(true) => output::print(Exit::Fine, |out| out.write_all(&page)),
        _ => output::complain(&unknown(&word), Exit::Undetermined),
    }
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
