//! From a product name, as nvidia-smi or a person writes it, to the chip.

use std::sync::LazyLock;

use super::PciId;
use crate::tables::{GPU_PCI_IDS, OPEN_MODULES_SUPPORTED_GPUS};

/// A name longer than this is not one.
const LONGEST_NAME: usize = 120;

/// Words that only say who made it or which software line it is of.
const DROPPED: [&str; 9] =
    ["nvidia", "geforce", "tesla", "grid", "corporation", "hbm2", "hbm2e", "hbm3", "hbm3e"];

/// Words for the form of a board. They do not choose the chip when all else is equal.
const FORMS: [&str; 22] = [
    "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "nvl", "fhhl", "dgxs", "hgx", "dgx",
    "active", "lc", "ac", "oem", "graphics", "card", "founders", "edition", "ls", "gpu",
];

/// What a product name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// The chip; `None` when boards of this name carry different ones.
    pub chip: Option<&'static str>,
    /// The architecture.
    pub architecture: &'static str,
    /// The compute capability, as of CUDA 13.
    pub capability: (u32, u32),
}

/// A known name, as words.
struct Known {
    words: Vec<String>,
    /// The words without those of [`FORMS`].
    bare: Vec<String>,
    product: Product,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(known_names);

/// The chip, architecture and capability of a product, by its name as nvidia-smi prints it or as
/// people shorten it: `NVIDIA H100 80GB HBM3`, `RTX 5090`, `A100-SXM4-40GB`. `None` when the name
/// is not known, or fits products of different architectures (`RTX 6000`).
pub fn by_product_name(name: &str) -> Option<Product> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let words = words(name);
    let bare = without_forms(&words);
    let names_a_model = words.iter().any(|word| is_model(word));
    let exact = |known: &Known| known.words == words;
    let same_model = |known: &Known| !bare.is_empty() && known.bare == bare;
    // A shortened name must fit inside every name that it could be short for, and those must be
    // of one architecture.
    let shortened = |known: &Known| names_a_model && is_subsequence(&bare, &known.bare);
    let steps: [&dyn Fn(&Known) -> bool; 3] = [&exact, &same_model, &shortened];
    for fits in steps {
        match agreed(fits) {
            Agreement::NoneFits => {}
            Agreement::Apart => return None,
            Agreement::On(product) => return Some(product),
        }
    }
    None
}

/// What the known names that fit say together.
enum Agreement {
    NoneFits,
    /// They are of different architectures.
    Apart,
    On(Product),
}

/// Whether a word can name a model by itself: `5090`, `a6000`, not `8` or `ti`.
fn is_model(word: &str) -> bool {
    word.len() >= 3 && word.bytes().any(|byte| byte.is_ascii_digit())
}

fn agreed(fits: &dyn Fn(&Known) -> bool) -> Agreement {
    let mut fitting = KNOWN.iter().filter(|known| fits(known)).map(|known| known.product);
    let Some(mut product) = fitting.next() else {
        return Agreement::NoneFits;
    };
    for other in fitting {
        if (other.architecture, other.capability) != (product.architecture, product.capability) {
            return Agreement::Apart;
        }
        if other.chip != product.chip {
            product.chip = None;
        }
    }
    Agreement::On(product)
}

fn is_subsequence(short: &[String], long: &[String]) -> bool {
    let mut rest = long.iter();
    short.iter().all(|word| rest.any(|candidate| candidate == word))
}

/// Cuts a name into comparable words.
fn words(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    let lower = lower.split(" mig ").next().unwrap_or("").replace("with max-q design", "");
    let mut words: Vec<String> = lower
        .split(|ch: char| !ch.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .flat_map(split_series)
        .collect();
    drop_count(&mut words);
    words.retain(|word| !DROPPED.contains(&word.as_str()) && !is_size_or_profile(word));
    words
}

/// `8 × RTX …` and `2x RTX …` begin with a count of boards.
fn drop_count(words: &mut Vec<String>) {
    let digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let Some(first) = words.first() else { return };
    let count = first.strip_suffix('x').unwrap_or(first);
    if words.len() > 1 && count.len() <= 2 && digits(count) {
        words.remove(0);
        if words.first().is_some_and(|word| word == "x") {
            words.remove(0);
        }
    }
}

/// `rtx5090` is `rtx 5090`, `3080ti` is `3080 ti`.
fn split_series(word: &str) -> Vec<String> {
    let digit = |text: &str| text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let (prefix, rest) = ["rtx", "gtx", "gt"]
        .into_iter()
        .find_map(|series| Some((Some(series), word.strip_prefix(series).filter(|r| digit(r))?)))
        .unwrap_or((None, word));
    let (model, suffix) = ["ti", "super"]
        .into_iter()
        .find_map(|suffix| Some((rest.strip_suffix(suffix).filter(|r| digit(r))?, Some(suffix))))
        .unwrap_or((rest, None));
    prefix.into_iter().chain([model]).chain(suffix).map(str::to_owned).collect()
}

/// A memory size (`80gb`, `144g`) or a vGPU profile (`48q`).
fn is_size_or_profile(word: &str) -> bool {
    ["gib", "gb", "g", "q", "c"].into_iter().any(|unit| {
        word.strip_suffix(unit).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
}

fn without_forms(words: &[String]) -> Vec<String> {
    words.iter().filter(|word| !FORMS.contains(&word.as_str())).cloned().collect()
}

/// All names of both tables.
fn known_names() -> Vec<Known> {
    let devices: Vec<PciId> = GPU_PCI_IDS.rows().map(PciId::of).collect();
    let mut known = Vec::new();
    for device in &devices {
        known.extend(device.product_name.and_then(|name| named(name, device)));
        known.extend(pci_ids_names(device).filter_map(|name| named(name, device)));
    }
    for row in OPEN_MODULES_SUPPORTED_GPUS.rows() {
        let device = row.number("pci_device_id").and_then(|id| u16::try_from(id).ok());
        let Some(id) = device else { continue };
        if let Ok(index) = devices.binary_search_by_key(&id, |device| device.device) {
            let device = devices.get(index);
            known.extend(device.and_then(|device| named(row.text("product_name"), device)));
        }
    }
    known
}

/// The names in the brackets of a pci.ids entry. Of several alternatives the first is a whole
/// name; a later one is so when it begins a word with a letter and has a number in it. Where the
/// README has a name, an entry with alternatives adds nothing but doubt.
fn pci_ids_names(device: &PciId) -> impl Iterator<Item = &'static str> {
    let inner = device.name.split_once('[').map_or("", |(_, rest)| rest.trim_end_matches(']'));
    let skip = device.product_name.is_some() && inner.contains('/');
    let whole = |part: &str| {
        part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
    };
    let parts = inner.split(" / ").enumerate();
    let parts = parts.filter(move |(index, part)| *index == 0 || whole(part));
    parts.map(|(_, part)| part).filter(move |_| !skip)
}

fn named(name: &'static str, device: &PciId) -> Option<Known> {
    let words = words(name);
    let bare = without_forms(&words);
    let product = Product {
        chip: Some(device.chip),
        architecture: device.architecture,
        capability: device.capability,
    };
    (!bare.is_empty()).then_some(Known { words, bare, product })
}
