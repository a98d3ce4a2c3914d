//! Compressed kernel modules, firmware and kernel configurations: `.gz`, `.xz`, `.zst`, told by
//! their first bytes and never by their name.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;

/// Most bytes that come out of one file: a driver's largest module with debug sections fits, and a
/// small file that unfolds without end does not.
pub const OUTPUT_LIMIT: usize = 256 << 20;

/// Largest dictionary or window that a compressed file may ask for; kernel builds use a few MiB.
const WINDOW_LIMIT_BYTES: u32 = 64 << 20;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip.
    Gzip,
    /// xz.
    Xz,
    /// zstd.
    Zstd,
}

/// Why nothing came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecompressFault {
    /// The stream is damaged or cut off.
    Damaged(Compression),
    /// More than the limit comes out.
    TooLarge(Compression),
}

impl fmt::Display for DecompressFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecompressFault::Damaged(kind) => write!(f, "a damaged or truncated {kind} stream"),
            DecompressFault::TooLarge(kind) => write!(f, "a {kind} stream larger than the limit"),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
        })
    }
}

/// The compression that the first bytes show, if any.
pub fn detect(bytes: &[u8]) -> Option<Compression> {
    const MAGICS: [(&[u8], Compression); 3] = [
        (b"\x1f\x8b\x08", Compression::Gzip),
        (b"\xfd7zXZ\x00", Compression::Xz),
        (b"\x28\xb5\x2f\xfd", Compression::Zstd),
    ];
    MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| *kind)
}

/// The content, decompressed where it is compressed, within [`OUTPUT_LIMIT`].
pub fn decompress(bytes: &[u8]) -> Result<Cow<'_, [u8]>, DecompressFault> {
    decompress_within(bytes, OUTPUT_LIMIT)
}

/// The same with a limit of the caller's.
pub fn decompress_within(bytes: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, DecompressFault> {
    let Some(kind) = detect(bytes) else {
        return Ok(Cow::Borrowed(bytes));
    };
    match kind {
        Compression::Gzip => drain(flate2::read::MultiGzDecoder::new(bytes), kind, limit),
        Compression::Xz => {
            let limit_kib = WINDOW_LIMIT_BYTES / 1024;
            drain(lzma_rust2::XzReader::new_mem_limit(bytes, true, limit_kib), kind, limit)
        }
        Compression::Zstd => {
            let reader = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(
                bytes,
                u64::from(WINDOW_LIMIT_BYTES),
            )
            .map_err(|_| DecompressFault::Damaged(kind))?;
            drain(reader, kind, limit)
        }
    }
    .map(Cow::Owned)
}

fn drain(reader: impl Read, kind: Compression, limit: usize) -> Result<Vec<u8>, DecompressFault> {
    let mut out = Vec::new();
    let mut bounded = reader.take(u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1));
    bounded.read_to_end(&mut out).map_err(|_| DecompressFault::Damaged(kind))?;
    if out.len() > limit {
        return Err(DecompressFault::TooLarge(kind));
    }
    Ok(out)
}
