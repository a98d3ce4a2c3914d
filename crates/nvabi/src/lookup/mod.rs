//! Every table by one word: what `explain` prints.

mod families;
mod special;

use crate::number;
use families::{FAMILIES, Family};

/// A word longer than this is not one.
const LONGEST_WORD: usize = 200;

/// One thing that a word stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The table it is from.
    pub table: &'static str,
    /// The key within the table, as the table writes it.
    pub key: String,
    /// One line: the name, and in parentheses what it is.
    pub title: String,
    /// What is known of it, as label and text.
    pub lines: Vec<(&'static str, String)>,
    /// Where the knowledge comes from.
    pub source: &'static str,
}

/// Everything that a word stands for, in any of the tables. A number, decimal or hexadecimal,
/// gives every table that has it, unless a word before or after it says which: `803`, `xid 119`,
/// `0x25 uvm`. A name is found with or without its prefix, case aside: `NV_ERR_GPU_IS_LOST`,
/// `gpu_is_lost`. Also read are a failed RmInitAdapter's triple (`0x62:0x65:1784`), a PCI device
/// (`10de:2bb5`), a whole ioctl request (`0xc020462a`), a product's name and a tool's message.
pub fn lookup(word: &str) -> Vec<Entry> {
    let word = word.trim();
    if word.is_empty() || word.len() > LONGEST_WORD {
        return Vec::new();
    }
    let found = special::patterns(word);
    if !found.is_empty() {
        return found;
    }
    let (families, term) = qualified(word);
    let mut found = in_families(&families, &term);
    found.extend(special::structure(&term));
    if !found.is_empty() {
        return found;
    }
    let all: Vec<&Family> = FAMILIES.iter().collect();
    let found = in_families(&all, word);
    if found.is_empty() { special::phrases(word) } else { found }
}

fn in_families(families: &[&'static Family], term: &str) -> Vec<Entry> {
    let plain = number::parse(term);
    let by_number = families.iter().flat_map(|family| {
        let bare_hex = if family.bare_hex { bare_hexadecimal(term) } else { None };
        plain.or(bare_hex).map(|number| family.numbered(number)).unwrap_or_default()
    });
    let by_name = families.iter().flat_map(|family| family.named(term));
    let mut entries: Vec<Entry> = by_number.collect();
    for entry in by_name {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

/// `2bb5` or `2080012c`: hexadecimal as lspci and headers write it, told from a word by its
/// length and from a decimal number by a letter.
fn bare_hexadecimal(term: &str) -> Option<u64> {
    let right_length = matches!(term.len(), 4 | 8);
    let has_digit = term.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = term.bytes().any(|byte| byte.is_ascii_alphabetic());
    let hexadecimal = term.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_one = right_length && has_digit && has_letter && hexadecimal;
    if is_one { u64::from_str_radix(term, 16).ok() } else { None }
}

/// Takes a qualifier off the front or the back of a word: the families it names, and the rest.
fn qualified(word: &str) -> (Vec<&'static Family>, String) {
    let spaced = glued(word).unwrap_or_else(|| word.to_owned());
    let words: Vec<&str> = spaced
        .split(|ch: char| ch.is_whitespace() || matches!(ch, ':' | '=' | ',' | '(' | ')' | '#'))
        .filter(|word| !word.is_empty())
        .collect();
    let split = [
        words.split_first().map(|(first, rest)| (*first, rest)),
        words.split_last().map(|(last, rest)| (*last, rest)),
    ];
    for (qualifier, rest) in split.into_iter().flatten().filter(|(_, rest)| !rest.is_empty()) {
        let families: Vec<&Family> =
            FAMILIES.iter().filter(|family| family.answers_to(qualifier)).collect();
        if !families.is_empty() {
            return (families, rest.join(" "));
        }
    }
    (FAMILIES.iter().collect(), word.to_owned())
}

/// `xid119` is `xid 119`.
fn glued(word: &str) -> Option<String> {
    let digits = word.find(|ch: char| ch.is_ascii_digit())?;
    let (qualifier, number) = word.split_at_checked(digits)?;
    let known = FAMILIES.iter().any(|family| family.answers_to(qualifier));
    (known && number::parse(number).is_some()).then(|| format!("{qualifier} {number}"))
}
