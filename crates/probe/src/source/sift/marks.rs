//! Where the lines with marks are. This is where the time goes that reading a long text takes.

use facts::parse::sieve::Marks;

use super::host::HostName;

/// A shorter text is not worth a second thread.
const SHARED_BYTES: usize = 256 << 10;

/// Where each line begins that has a mark, in order. Two threads share a long text.
pub(super) fn marked_lines(text: &[u8], marks: Marks, host: Option<&HostName>) -> Vec<usize> {
    let search = |text: &[u8]| {
        marks.lines(text, &|line, place| host.and_then(|host| host.covers(line, place)))
    };
    if text.len() < SHARED_BYTES {
        return search(text);
    }
    let half = text.get(..text.len() / 2).unwrap_or_default();
    let middle = memchr::memrchr(b'\n', half).map_or(0, |end| end + 1);
    let (one, other) = text.split_at(middle);
    let (mut lines, more) = std::thread::scope(|scope| {
        let second = std::thread::Builder::new().spawn_scoped(scope, || search(other));
        let lines = search(one);
        // Where no thread is to be had, this one does it all.
        let more = second.ok().and_then(|second| second.join().ok());
        (lines, more.unwrap_or_else(|| search(other)))
    });
    lines.extend(more.into_iter().map(|begin| middle + begin));
    lines
}

/// The first line with its end.
pub(super) fn first_line(text: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', text);
    end.and_then(|end| text.get(..=end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_find_what_one_finds() {
        let mut text = Vec::new();
        for number in 0..40_000 {
            let mark = if number % 777 == 0 { "NVRM: " } else { "" };
            text.extend(format!("{mark}line {number}\n").into_bytes());
        }
        assert!(text.len() > SHARED_BYTES);
        let found = marked_lines(&text, Marks::All, None);
        assert_eq!(found, Marks::All.lines(&text, &|_, _| None));
        assert_eq!(found.len(), 52);
        assert!(found.iter().all(|begin| text[*begin..].starts_with(b"NVRM: line")));
    }
}
