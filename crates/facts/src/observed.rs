//! The four-valued observation. Only [`Observed::Absent`] is evidence of absence.

use std::fmt;
use std::sync::Arc;

/// A number of `errno.h`, as the kernel of the observed machine returned it (positive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Errno = Errno(1);
    /// No such file or directory.
    pub const ENOENT: Errno = Errno(2);
    /// Input/output error.
    pub const EIO: Errno = Errno(5);
    /// No such device or address.
    pub const ENXIO: Errno = Errno(6);
    /// Try again.
    pub const EAGAIN: Errno = Errno(11);
    /// Out of memory.
    pub const ENOMEM: Errno = Errno(12);
    /// Permission denied.
    pub const EACCES: Errno = Errno(13);
    /// Device or resource busy.
    pub const EBUSY: Errno = Errno(16);
    /// No such device.
    pub const ENODEV: Errno = Errno(19);
    /// Invalid argument.
    pub const EINVAL: Errno = Errno(22);
    /// Too many open files in this process.
    pub const EMFILE: Errno = Errno(24);
    /// Inappropriate ioctl for device.
    pub const ENOTTY: Errno = Errno(25);
    /// Read-only file system.
    pub const EROFS: Errno = Errno(30);
    /// Function not implemented.
    pub const ENOSYS: Errno = Errno(38);

    const NAMES: [(i32, &'static str); 22] = [
        (1, "EPERM"),
        (2, "ENOENT"),
        (4, "EINTR"),
        (5, "EIO"),
        (6, "ENXIO"),
        (9, "EBADF"),
        (11, "EAGAIN"),
        (12, "ENOMEM"),
        (13, "EACCES"),
        (14, "EFAULT"),
        (16, "EBUSY"),
        (17, "EEXIST"),
        (19, "ENODEV"),
        (20, "ENOTDIR"),
        (22, "EINVAL"),
        (24, "EMFILE"),
        (25, "ENOTTY"),
        (30, "EROFS"),
        (38, "ENOSYS"),
        (104, "ECONNRESET"),
        (110, "ETIMEDOUT"),
        (111, "ECONNREFUSED"),
    ];

    /// The symbolic name, such as `EPERM`, or `None` for a number that is not in the small table.
    pub fn name(self) -> Option<&'static str> {
        Errno::NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }

    /// The number of a symbolic name, such as `EPERM`.
    pub fn from_name(name: &str) -> Option<Errno> {
        Errno::NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| Errno(*number))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

/// Where a reading comes from: the raw item, the lines within it and what stood there.
///
/// Lines count from 1 in the input that the user gave (a pasted file) or, for an item that was
/// read from the machine, in that item. Line 0 means the whole item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The raw item, such as `/proc/modules`, `$ nvidia-smi -q`, `probe:cuinit#1` or `text:report.txt`.
    pub item: Arc<str>,
    /// The file that the user handed over and that this item was cut from, when it was.
    pub input: Option<Arc<str>>,
    /// First line.
    pub line: u32,
    /// Last line; equal to `line` for a single one.
    pub end_line: u32,
    /// What stood there, shortened, without control characters.
    pub excerpt: Arc<str>,
    /// Seconds since the Unix epoch when the item was taken, if known.
    pub taken_at: Option<u64>,
    /// True when it is the item's silence that counts: a list in which something does not stand.
    pub is_silence: bool,
}

impl Origin {
    /// An origin that names a whole item.
    pub fn item(item: impl Into<Arc<str>>) -> Origin {
        Origin {
            item: item.into(),
            input: None,
            line: 0,
            end_line: 0,
            excerpt: Arc::from(""),
            taken_at: None,
            is_silence: false,
        }
    }

    /// The silence of an output that a person pasted. Lines may have been left out of it without a
    /// mark, so that it makes an absence probable and no more; an error message that says that
    /// something is not there is no silence.
    pub fn is_pasted_silence(&self) -> bool {
        self.is_silence && self.is_pasted()
    }

    /// True for what a person cut out of an output or a file, or a command printed.
    pub fn is_pasted(&self) -> bool {
        self.input.is_some() || self.item.starts_with("$ ") || self.item.starts_with("text:")
    }

    /// The same origin with an excerpt, cut to a readable length and stripped of control
    /// characters, since text from outside is hostile.
    pub fn with_excerpt(mut self, text: &str) -> Origin {
        self.excerpt = clean_excerpt(text).into();
        self
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.input, self.line) {
            (Some(input), 0) => write!(f, "{input} ({})", self.item),
            (Some(input), line) => write!(f, "{input}:{line}"),
            (None, 0) => f.write_str(&self.item),
            (None, line) => write!(f, "{}:{line}", self.item),
        }
    }
}

/// Longest excerpt kept, in characters; a log line of the driver fits.
const EXCERPT_LIMIT: usize = 240;

/// Cuts a text to one line of printable characters.
pub fn clean_excerpt(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(EXCERPT_LIMIT + 4));
    for (count, ch) in text.trim().chars().enumerate() {
        if count == EXCERPT_LIMIT {
            out.push('…');
            break;
        }
        out.push(if ch.is_control() { ' ' } else { ch });
    }
    out
}

/// A value that was seen, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<T> {
    /// The value.
    pub value: T,
    /// Where it was read.
    pub origin: Origin,
}

impl<T> Seen<T> {
    /// Joins a value and its origin.
    pub fn new(value: T, origin: Origin) -> Seen<T> {
        Seen { value, origin }
    }
}

/// Why nothing is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Nobody tried to look.
    NotTried,
    /// The look did not end in time.
    TimedOut(Origin),
    /// Something was read and could not be understood.
    Unparsed(Origin),
    /// The input at hand (a bundle, a pasted text) does not hold it.
    NotInInput,
}

/// A reading in one of four ways. Only `Absent` is evidence of absence; "could not look" is never
/// "healthy".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed<T> {
    /// It was there.
    Seen(Seen<T>),
    /// It was looked for and is not there.
    Absent(Origin),
    /// The look was refused.
    Denied(Errno, Origin),
    /// Nothing is known.
    Unknown(Why),
}

impl<T> Default for Observed<T> {
    fn default() -> Self {
        Observed::Unknown(Why::NotInInput)
    }
}

impl<T> Observed<T> {
    /// A value that was seen.
    pub fn seen(value: T, origin: Origin) -> Observed<T> {
        Observed::Seen(Seen { value, origin })
    }

    /// The value, if it was seen.
    pub fn value(&self) -> Option<&T> {
        match self {
            Observed::Seen(seen) => Some(&seen.value),
            Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => None,
        }
    }

    /// The value with its origin, if it was seen.
    pub fn as_seen(&self) -> Option<&Seen<T>> {
        match self {
            Observed::Seen(seen) => Some(seen),
            Observed::Absent(_) | Observed::Denied(..) | Observed::Unknown(_) => None,
        }
    }

    /// Where it was looked for, if anybody looked.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Observed::Seen(seen) => Some(&seen.origin),
            Observed::Absent(origin)
            | Observed::Denied(_, origin)
            | Observed::Unknown(Why::TimedOut(origin) | Why::Unparsed(origin)) => Some(origin),
            Observed::Unknown(Why::NotTried | Why::NotInInput) => None,
        }
    }

    /// Where its absence was seen, if it was.
    pub fn absent(&self) -> Option<&Origin> {
        match self {
            Observed::Absent(origin) => Some(origin),
            Observed::Seen(_) | Observed::Denied(..) | Observed::Unknown(_) => None,
        }
    }

    /// True when nothing is known: neither seen, nor absent, nor refused.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Observed::Unknown(_))
    }

    /// True when it was seen.
    pub fn is_seen(&self) -> bool {
        matches!(self, Observed::Seen(_))
    }

    /// The same observation of a derived value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Observed<U> {
        match self {
            Observed::Seen(Seen { value, origin }) => Observed::seen(f(value), origin),
            Observed::Absent(origin) => Observed::Absent(origin),
            Observed::Denied(errno, origin) => Observed::Denied(errno, origin),
            Observed::Unknown(why) => Observed::Unknown(why),
        }
    }

    /// The same observation by reference.
    pub fn as_ref(&self) -> Observed<&T> {
        match self {
            Observed::Seen(Seen { value, origin }) => Observed::seen(value, origin.clone()),
            Observed::Absent(origin) => Observed::Absent(origin.clone()),
            Observed::Denied(errno, origin) => Observed::Denied(*errno, origin.clone()),
            Observed::Unknown(why) => Observed::Unknown(why.clone()),
        }
    }

    /// Takes `other` where this says less: a value beats an absence, an absence beats a refusal,
    /// a refusal beats ignorance, and a reason for ignorance beats none. Of two values the earlier
    /// call's stays.
    pub fn or_better(&mut self, other: Observed<T>) {
        if other.rank() > self.rank() {
            *self = other;
        }
    }

    /// Takes `other` where it says at least as much: for input that is read in order of time,
    /// where the last word counts.
    pub fn or_later(&mut self, other: Observed<T>) {
        if other.rank() >= self.rank() {
            *self = other;
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Observed::Seen(_) => 5,
            Observed::Absent(_) => 4,
            Observed::Denied(..) => 3,
            Observed::Unknown(Why::TimedOut(_) | Why::Unparsed(_)) => 2,
            Observed::Unknown(Why::NotTried) => 1,
            Observed::Unknown(Why::NotInInput) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        Origin::item("/proc/modules")
    }

    #[test]
    fn more_knowledge_wins_and_less_never_does() {
        let mut reading: Observed<u8> = Observed::default();
        reading.or_better(Observed::Denied(Errno::EACCES, origin()));
        reading.or_better(Observed::Unknown(Why::NotTried));
        assert!(matches!(reading, Observed::Denied(..)));
        reading.or_better(Observed::seen(1, origin()));
        reading.or_better(Observed::seen(2, origin()));
        assert_eq!(reading.value(), Some(&1));
        reading.or_later(Observed::seen(3, origin()));
        reading.or_later(Observed::Absent(origin()));
        assert_eq!(reading.value(), Some(&3));
    }

    #[test]
    fn excerpts_hold_no_control_characters_and_are_short() {
        let long = format!("\x1b[31m{}\n", "x".repeat(1000));
        let excerpt = clean_excerpt(&long);
        assert!(!excerpt.chars().any(char::is_control));
        assert!(excerpt.chars().count() <= EXCERPT_LIMIT + 1);
    }

    #[test]
    fn errno_names_round_trip() {
        for (number, name) in Errno::NAMES {
            assert_eq!(Errno::from_name(name), Some(Errno(number)));
            assert_eq!(Errno(number).to_string(), name);
        }
        assert_eq!(Errno(4095).to_string(), "errno 4095");
    }
}
