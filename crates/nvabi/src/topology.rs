//! The words of `nvidia-smi topo`, and what stands in the way of peer-to-peer copies.
//!
//! Table `topology_p2p`: NVIDIA/open-gpu-kernel-modules, `nvml.h`, PCI Express.

use crate::table::Row;
use crate::tables::TOPOLOGY_P2P;

/// One word, code, blocker or switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopologyWord {
    /// `rule`, `p2p_code`, `blocker`, `regkey` or `modparam`.
    pub kind: &'static str,
    /// The word, such as `PHB` or `CNS`.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// NVML's number for it, or where it is set. May be empty.
    pub nvml_or_place: &'static str,
    /// How to find it out without NVML. May be empty.
    pub how_to_derive: &'static str,
    /// Remarks and how sure they are. May be empty.
    pub notes: &'static str,
}

impl TopologyWord {
    fn of(row: Row) -> TopologyWord {
        TopologyWord {
            kind: row.text("kind"),
            name: row.text("name"),
            meaning: row.text("meaning"),
            nvml_or_place: row.text("nvml_or_place"),
            how_to_derive: row.text("how_to_derive"),
            notes: row.text("notes_or_confidence"),
        }
    }
}

/// The entry for a word, case aside; `NV4` is `NV<n>`.
pub fn by_word(word: &str) -> Option<TopologyWord> {
    TOPOLOGY_P2P.find("name", canonical(word)).map(TopologyWord::of)
}

/// The word as the table has it.
pub(crate) fn canonical(word: &str) -> &str {
    let prefixed = word.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("NV"));
    let count = word.get(2..).unwrap_or("");
    let bonded = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    if prefixed && bonded { "NV<n>" } else { word }
}

/// All entries, by kind.
pub fn all() -> impl Iterator<Item = TopologyWord> {
    TOPOLOGY_P2P.rows().map(TopologyWord::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_matrix() {
        assert_eq!(by_word("phb").map(|word| word.kind), Some("rule"));
        assert_eq!(by_word("NV18").map(|word| word.name), Some("NV<n>"));
        assert_eq!(by_word("CNS").map(|word| word.kind), Some("p2p_code"));
        for word in ["", "NV", "NVX", "növ", "ABC"] {
            assert_eq!(by_word(word), None, "{word}");
        }
    }
}
