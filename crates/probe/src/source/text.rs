//! Text that a user hands over: files, archives, standard input. Each becomes one item; what is in
//! it, and where it came from, is worked out from the text alone.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use facts::parse::decompress::{Compression, detect};
use facts::raw::{ItemName, RawItem, RawSet};

use super::sift::{Kept, Part, TextLimits, sift};
use super::{SourceError, bundle, tar};

/// Most bytes that are kept of all texts; reading them as text may take as much again.
const TOTAL_LIMIT_BYTES: usize = 64 << 20;
/// How often archives and compressed files may be inside one another.
const DEPTH_LIMIT: u32 = 3;
/// Most members of one archive.
const MEMBERS_LIMIT: u32 = 4096;
/// Largest window that a compressed text may ask for.
const WINDOW_LIMIT_KIB: u32 = 32 << 10;
/// What is looked at to tell what an input is: the header of a tar archive, and the beginning of
/// its first member.
const PEEK_BYTES: u64 = 1024;

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextInput {
    /// Standard input, by the label `-`.
    StandardInput,
    /// A file, by its path.
    File(PathBuf),
}

/// Reads all inputs, in order. Compressed ones (gzip, xz, zstd) are decompressed and archives (tar)
/// taken apart, three deep; the members of an archive are labelled `archive!member`. Of a long text
/// the ends and the lines that say something are kept, and marked as parts; see [`TextLimits`].
pub fn collect_text(inputs: &[TextInput]) -> Result<RawSet, SourceError> {
    collect_text_within(inputs, TextLimits::default())
}

/// [`collect_text`] with limits of one's own.
pub fn collect_text_within(
    inputs: &[TextInput],
    limits: TextLimits,
) -> Result<RawSet, SourceError> {
    let mut texts = Texts { limits, left: TOTAL_LIMIT_BYTES, set: RawSet::new() };
    for input in inputs {
        match input {
            TextInput::StandardInput => texts.take(&mut io::stdin().lock(), "-", 0),
            TextInput::File(path) => {
                let unreadable = |error: &io::Error| SourceError::unreadable(path, error);
                let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
                if metadata.is_dir() {
                    let error = io::Error::from_raw_os_error(libc::EISDIR);
                    return Err(unreadable(&error));
                }
                let mut file = File::open(path).map_err(|error| unreadable(&error))?;
                texts.take(&mut file, &path.to_string_lossy(), 0);
            }
        }
    }
    Ok(texts.set)
}

struct Texts {
    limits: TextLimits,
    left: usize,
    set: RawSet,
}

impl Texts {
    /// Takes one input: looks what it is, unfolds it, keeps the text.
    fn take(&mut self, input: &mut dyn Read, label: &str, depth: u32) {
        let mut start = Vec::new();
        // A failed read shows again when the rest is read.
        let _ = (&mut *input).take(PEEK_BYTES).read_to_end(&mut start);
        let compression = detect(&start);
        let is_archive = start.get(..tar::BLOCK_BYTES).is_some_and(tar::is_header);
        let is_bundle = is_archive && bundle::is_bundle(&start);
        let mut input = Cursor::new(start).chain(input);
        if depth < DEPTH_LIMIT {
            if let Some(compression) = compression {
                if let Some(mut reader) = decompressor(compression, &mut input) {
                    self.take(&mut *reader, label, depth + 1);
                } else {
                    let nothing = Part { bytes: Arc::from([]), first_line: 1 };
                    self.push(label, Kept { parts: vec![nothing], partial: true });
                }
                return;
            }
            if is_bundle {
                let bundle = bundle::read_bundle(&mut input);
                self.set.live |= bundle.live;
                self.set.append(bundle);
                return;
            }
            if is_archive {
                self.take_members(&mut input, label, depth + 1);
                return;
            }
        }
        self.keep(&mut input, label);
    }

    fn take_members(&mut self, input: &mut dyn Read, label: &str, depth: u32) {
        let mut count = 0;
        // Damage ends the reading; what came before it stays.
        let _ = tar::read_members(input, |member, content| {
            count += 1;
            if member.size > 0 {
                self.take(content, &format!("{label}!{}", member.name), depth);
            }
            count < MEMBERS_LIMIT
        });
    }

    fn keep(&mut self, input: &mut dyn Read, label: &str) {
        let mut limits = self.limits;
        limits.whole_bytes = limits.whole_bytes.min(self.left);
        limits.between_bytes = limits.between_bytes.min(self.left);
        limits.end_bytes = limits.end_bytes.min(self.left);
        self.push(label, sift(input, &limits));
    }

    fn push(&mut self, label: &str, kept: Kept) {
        for part in kept.parts {
            self.left = self.left.saturating_sub(part.bytes.len());
            let mut item = RawItem::new(ItemName::Text(label.to_owned()), part.bytes);
            if part.first_line > 1 {
                item.cut_from = Some((Arc::from(label), part.first_line));
            }
            item.partial = kept.partial;
            self.set.push(item);
        }
    }
}

/// A reader that decompresses within bounded memory; `None` for a damaged beginning.
fn decompressor<'a>(
    compression: Compression,
    input: &'a mut (dyn Read + 'a),
) -> Option<Box<dyn Read + 'a>> {
    Some(match compression {
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(input)),
        Compression::Xz => {
            Box::new(lzma_rust2::XzReader::new_mem_limit(input, true, WINDOW_LIMIT_KIB))
        }
        Compression::Zstd => {
            let window = u64::from(WINDOW_LIMIT_KIB) << 10;
            let reader =
                ruzstd::decoding::StreamingDecoder::new_with_max_window_size(input, window);
            Box::new(reader.ok()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn collect(name: &str, content: &[u8]) -> Vec<(String, String, bool)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let set = collect_text(&[TextInput::File(path)]).unwrap();
        let prefix = format!("text:{}/", folder.path().display());
        let item = |item: &RawItem| {
            let name = item.name.to_string();
            let label = name.strip_prefix(&prefix).unwrap().to_owned();
            (label, item.text().unwrap().into_owned(), item.partial)
        };
        set.items().map(item).collect()
    }

    #[test]
    fn plain_and_compressed_texts_are_one_item_each() {
        let expected = vec![("a.log".to_owned(), "line\n".to_owned(), false)];
        assert_eq!(collect("a.log", b"line\n"), expected);
        assert_eq!(collect("a.log", &gzip(b"line\n")), expected);
        assert_eq!(collect("a.log", &gzip(&gzip(b"line\n"))), expected);
        assert_eq!(collect("empty", b""), [("empty".to_owned(), String::new(), false)]);
    }

    #[test]
    fn nesting_ends_at_three_and_damage_is_no_error() {
        let mut content = b"line\n".to_vec();
        for _ in 0..5 {
            content = gzip(&content);
        }
        assert!(collect("bomb.gz", &content)[0].1.starts_with('\u{1f}'));
        let damaged = gzip(&b"line\n".repeat(1000));
        let found = collect("a.gz", &damaged[..damaged.len() / 2]);
        assert!(found[0].2, "what is cut off is a part");
    }

    #[test]
    fn a_missing_file_and_a_folder_are_errors() {
        let error = |path: &str| collect_text(&[TextInput::File(path.into())]).unwrap_err();
        assert!(error("/no/such/file").to_string().contains("ENOENT"));
        assert!(matches!(error("/"), SourceError::Unreadable { .. }));
    }
}
