//! `docs/causes`: a page for each cause, and an index by layer.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use facts::Layer;
use reason::CAUSES;

/// Where the pages lie, below the root.
pub(super) const FOLDER: &str = "docs/causes";

const INDEX_HEAD: &str = "\
# Causes

What gpudx can tell apart, by the layer of the stack in which each fault lies, bottom to top.
`gpudx explain ID` prints the same. These pages are written by `cargo xtask gen` from the
definitions in `crates/reason/src/causes`.
";

/// All pages by their paths.
pub(super) fn pages() -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    let mut lines: BTreeMap<Layer, String> = BTreeMap::new();
    for cause in CAUSES {
        let mut page = Vec::new();
        render::explain::cause_markdown(&mut page, cause)?;
        let page = String::from_utf8(page)?;
        // The claim as it stands below the heading, escaped for Markdown.
        let claim = page.lines().nth(2).unwrap_or_default().trim_end_matches('.');
        let line = format!("| [`{id}`]({id}.md) | {claim} |\n", id = cause.id);
        lines.entry(cause.layer).or_default().push_str(&line);
        pages.insert(format!("{FOLDER}/{}.md", cause.id), with_links(&page, cause.id));
    }
    pages.insert(format!("{FOLDER}/README.md"), index(&lines)?);
    Ok(pages)
}

fn index(lines: &BTreeMap<Layer, String>) -> Result<String> {
    let mut out = INDEX_HEAD.to_owned();
    for (layer, lines) in lines {
        write!(out, "\n## {layer}\n\n| cause | what is wrong |\n|---|---|\n{lines}")?;
    }
    Ok(out)
}

/// Makes the ids of other causes links to their pages, but for those in commands.
fn with_links(page: &str, own: &str) -> String {
    let mut fenced = false;
    let mut out = String::with_capacity(page.len());
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        fenced ^= is_fence;
        out.push_str(&if fenced || is_fence { line.to_owned() } else { linked(line, own) });
        out.push('\n');
    }
    out
}

fn linked(line: &str, own: &str) -> String {
    let mut pieces: Vec<String> = line.split('`').map(str::to_owned).collect();
    if pieces.len().is_multiple_of(2) {
        return line.to_owned();
    }
    // Every second piece stands between back-ticks.
    for piece in pieces.iter_mut().skip(1).step_by(2) {
        let links = piece != own && CAUSES.iter().any(|cause| cause.id == piece);
        *piece = if links { format!("[`{piece}`]({piece}.md)") } else { format!("`{piece}`") };
    }
    pieces.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_causes_are_links() {
        let page = "# `uvm.hmm`\n\n`node.missing`, `x.y`\n```\n`node.missing`\n```\n";
        let expected =
            "# `uvm.hmm`\n\n[`node.missing`](node.missing.md), `x.y`\n```\n`node.missing`\n```\n";
        assert_eq!(with_links(page, "uvm.hmm"), expected);
    }

    #[test]
    fn every_cause_has_a_page_and_a_line_in_the_index() {
        let pages = pages().unwrap();
        assert_eq!(pages.len(), CAUSES.len() + 1);
        let index = &pages["docs/causes/README.md"];
        for cause in CAUSES {
            assert!(pages[&format!("docs/causes/{}.md", cause.id)].contains(cause.id));
            assert!(index.contains(&format!("| [`{0}`]({0}.md) | ", cause.id)));
        }
    }
}
