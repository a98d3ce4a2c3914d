//! What a thread's stack tells of a library that stands between the program and the driver.
//!
//! A preloaded library may keep a request to itself, so that the kernel never sees it: the thread
//! sleeps or runs somewhere in user space, and no trace of system calls names what it was asked.
//! But it was called by the driver's library, whose return address lies on the stack, and what it
//! was given lies there or in the registers. Words are looked at, not frames: libraries have no
//! frame pointers to follow. So what is found is likely, not certain, and said to be so.

use nvabi::number::MEASURED_BRANCHES;

/// Most words of the stack that are looked at.
pub(super) const WORDS: usize = 2048;
/// How much further the arguments may lie than the address to which the call returns.
const BEYOND: usize = 32;

/// A mapped file, as a line of /proc/PID/maps tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapped<'a> {
    from: u64,
    to: u64,
    executable: bool,
    path: &'a str,
}

/// The mapped files.
pub(super) fn mapped(maps: &str) -> Vec<Mapped<'_>> {
    maps.lines().filter_map(mapped_file).collect()
}

fn mapped_file(line: &str) -> Option<Mapped<'_>> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let address = |text: &str| u64::from_str_radix(text, 16).ok();
    let path = rest.get(rest.find('/')?..)?;
    let executable = rest.as_bytes().get(2) == Some(&b'x');
    Some(Mapped { from: address(from)?, to: address(to)?, executable, path })
}

/// The library that the driver's library called and that has not returned, and how many words of
/// the stack are above the driver's. `program` is the program itself, which is no library.
pub(super) fn interposer<'a>(
    stack: &[u64],
    mapped: &[Mapped<'a>],
    program: &str,
) -> Option<(&'a str, usize)> {
    let code = |word: u64| {
        let holds = |file: &&Mapped<'_>| file.executable && (file.from..file.to).contains(&word);
        mapped.iter().find(holds).map(|file| file.path)
    };
    let mut between = None;
    for (at, word) in stack.iter().enumerate() {
        match code(*word) {
            Some(path) if is_drivers(path) => return between.map(|path| (path, at)),
            Some(path) if !is_systems(path) && path != program => between = between.or(Some(path)),
            _ => {}
        }
    }
    None
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_drivers(path: &str) -> bool {
    let name = file_name(path);
    name.starts_with("libcuda.so") || name.starts_with("libnvidia-")
}

/// The C library and what belongs to it, in which a thread sleeps.
fn is_systems(path: &str) -> bool {
    const NAMES: [&str; 10] = [
        "libc.so",
        "libc-2",
        "ld-linux",
        "ld-2",
        "ld-musl",
        "libpthread",
        "libdl",
        "librt",
        "libm.",
        "libm-2",
    ];
    NAMES.iter().any(|name| file_name(path).starts_with(name))
}

/// The words in which the arguments may lie.
pub(super) fn around<'a>(
    registers: &'a [u64],
    stack: &'a [u64],
    above: usize,
) -> impl Iterator<Item = u64> + Clone + 'a {
    let stack = stack.get(..stack.len().min(above + BEYOND)).unwrap_or_default();
    registers.iter().chain(stack).copied()
}

/// Both halves of each word: a compiler keeps a 32-bit argument in either.
pub(super) fn halves(
    words: impl Iterator<Item = u64> + Clone,
) -> impl Iterator<Item = u32> + Clone {
    words.flat_map(|word| {
        let half = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0);
        [half(word), half(word >> 32)]
    })
}

/// The first number among the words that can hardly be anything but a request of the driver's: an
/// escape with the right size, or one of UVM's that is no small number.
pub(super) fn request(words: impl Iterator<Item = u64> + Clone) -> Option<u32> {
    halves(words).find(|number| is_escape(*number) || is_large_uvm(*number))
}

fn is_large_uvm(number: u32) -> bool {
    const SMALL: u32 = 0x1000_0000;
    number >= SMALL && nvabi::uvm::by_request(number).is_some()
}

/// An escape's number has its size in it, which differs between branches in few.
fn is_escape(number: u32) -> bool {
    const READ_AND_WRITE: u32 = 3;
    const LETTER: u32 = 0x46;
    let of_driver = number >> 30 == READ_AND_WRITE && number >> 8 & 0xff == LETTER;
    of_driver && nvabi::ioctl::decode_request(number).is_some()
}

/// True when a number is that of a UVM request.
pub(super) fn is_uvm(request: u32) -> bool {
    let known = nvabi::uvm::by_request(request);
    known.is_some_and(|known| MEASURED_BRANCHES.into_iter().any(|at| known.size_in(at).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-2000 r-xp 00000000 08:01 1 /usr/bin/program
5000-6000 r-xp 00000000 08:01 2 /usr/lib/libcuda.so.580.159.04
6000-7000 r--p 00000000 08:01 2 /usr/lib/libcuda.so.580.159.04
8000-9000 r-xp 00000000 08:01 3 /opt/wrapper.so
a000-b000 r-xp 00000000 08:01 4 /usr/lib/libc.so.6
c000-d000 rw-p 00000000 00:00 0 [stack]
";

    #[test]
    fn a_library_above_the_drivers_is_the_one_between() {
        let maps = mapped(MAPS);
        let found = |stack: &[u64]| interposer(stack, &maps, "/usr/bin/program");
        assert_eq!(found(&[0xa100, 1, 0x8100, 2, 0x5100, 0x1100]), Some(("/opt/wrapper.so", 4)));
        assert_eq!(found(&[0xa100, 0x5100, 0x8100]), None, "the driver itself sleeps");
        assert_eq!(found(&[0xa100, 0x8100, 0x1100]), None, "the driver called nobody");
        assert_eq!(found(&[0xa100, 0x1100, 0x5100, 0x6100]), None, "the program's own hook");
    }

    #[test]
    fn requests_are_told_from_other_numbers() {
        let find = |words: &[u64]| request(words.iter().copied());
        assert_eq!(find(&[7, 0x25, 0x3000_0001]), Some(0x3000_0001));
        assert_eq!(find(&[0xc020_462a_0000_0008]), Some(0xc020_462a));
        assert_eq!(find(&[0x5401, 0x4600, 0x7ffd_1234_5678, u64::MAX, 0x27]), None);
        assert!(is_uvm(0x3000_0001) && !is_uvm(0xc020_462a));
    }
}
