//! Where the lines with marks are. This is where the time goes that reading a long text takes.

use super::host::HostName;

/// A shorter text is not worth a second thread.
const SHARED_BYTES: usize = 256 << 10;

/// Finds the next mark in a text.
pub(super) type NextMark = fn(&[u8]) -> Option<usize>;

/// Where each line begins that has a mark, in order. Two threads share a long text.
pub(super) fn marked_lines(text: &[u8], next: NextMark, host: Option<&HostName>) -> Vec<usize> {
    if text.len() < SHARED_BYTES {
        return search(text, next, host);
    }
    let half = text.get(..text.len() / 2).unwrap_or_default();
    let middle = memchr::memrchr(b'\n', half).map_or(0, |end| end + 1);
    let (one, other) = text.split_at(middle);
    let (mut lines, more) = std::thread::scope(|scope| {
        let helper = std::thread::Builder::new().spawn_scoped(scope, || search(other, next, host));
        let lines = search(one, next, host);
        // Where no thread is to be had, this one does it all.
        let more = helper.ok().and_then(|helper| helper.join().ok());
        (lines, more.unwrap_or_else(|| search(other, next, host)))
    });
    lines.extend(more.into_iter().map(|begin| middle + begin));
    lines
}

fn search(text: &[u8], next: NextMark, host: Option<&HostName>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(mark) = text.get(from..).and_then(next) {
        let mark = from + mark;
        let before = text.get(..mark).unwrap_or_default();
        let begin = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
        let line = first_line(text.get(begin..).unwrap_or_default());
        if let Some(end) = host.and_then(|host| host.covers(line, mark - begin)) {
            from = begin + end;
        } else {
            found.push(begin);
            from = begin + line.len();
        }
    }
    found
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
        let next = facts::parse::sieve::next_mark;
        let found = marked_lines(&text, next, None);
        assert_eq!(found, search(&text, next, None));
        assert_eq!(found.len(), 52);
        assert!(found.iter().all(|begin| text[*begin..].starts_with(b"NVRM: line")));
    }
}
