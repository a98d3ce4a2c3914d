//! The child's side of the wire: records, one JSON object a line, each flushed before the call
//! that it announces.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::time::Instant;

use facts::Errno;
use facts::wire::Record;

use crate::sys::{library::Answer, library::Refusal, pipe};

/// Key of the note that ends a whole report. The parent takes it out again.
pub(crate) const DONE: &str = "done";

/// Why a call brought no value.
pub(crate) struct Failure {
    /// The raw code; for system calls the errno.
    pub(crate) code: i64,
    /// What there is to say beside the code.
    pub(crate) text: Option<String>,
}

/// Where a probe tells what it sees.
pub(crate) struct Report {
    out: File,
}

impl Report {
    /// A report to the parent: takes over standard output, so that nothing else can write there.
    pub(crate) fn to_parent() -> Result<Report, Errno> {
        let out = pipe::take_standard_output()?;
        Ok(Report { out: File::from(out) })
    }

    /// Writes one record. A parent that is gone has no use for the rest, and its death ends this
    /// process anyway, so a failed write is not told.
    fn write(&mut self, record: &Record) {
        let Ok(mut line) = serde_json::to_vec(record) else { return };
        line.push(b'\n');
        let _ = self.out.write_all(&line);
    }

    /// Something worth telling that is no call.
    pub(crate) fn note(&mut self, key: &str, value: impl Into<String>) {
        self.write(&Record::Note { key: key.to_owned(), value: value.into() });
    }

    /// Announces a call, makes it and tells its result; `show` writes a value as text.
    pub(crate) fn call<T>(
        &mut self,
        call: &str,
        on: Option<&str>,
        work: impl FnOnce() -> Result<T, Failure>,
        show: impl FnOnce(&T) -> Option<String>,
    ) -> Result<T, i64> {
        let (call, on) = (call.to_owned(), on.map(str::to_owned));
        self.write(&Record::Enter { call: call.clone(), on: on.clone() });
        let started = Instant::now();
        let result = work();
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        // Microseconds are the most that a reader can use.
        let ms = (ms * 1000.0).round() / 1000.0;
        let (code, value) = match &result {
            Ok(value) => (0, show(value)),
            Err(failure) => (failure.code, failure.text.clone()),
        };
        self.write(&Record::Call { call, on, code, ms, value });
        result.map_err(|failure| failure.code)
    }

    /// A call that is not made, and why. Its code is negative, which no errno is.
    pub(crate) fn not_called(&mut self, call: &str, on: &str, reason: &str) {
        let (call, on) = (call.to_owned(), Some(on.to_owned()));
        self.write(&Record::Call { call, on, code: -1, ms: 0.0, value: Some(reason.to_owned()) });
    }

    /// A system call.
    pub(crate) fn system_call<T>(
        &mut self,
        call: &str,
        on: Option<&str>,
        work: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let work = || work().map_err(|errno| Failure { code: i64::from(errno.0), text: None });
        self.call(call, on, work, |_| None).map_err(|code| Errno(i32::try_from(code).unwrap_or(-1)))
    }

    /// A call into a driver library; `missing` is the code that stands for a function which the
    /// library does not have.
    pub(crate) fn driver_call<T>(
        &mut self,
        call: &str,
        on: Option<&str>,
        missing: i64,
        work: impl FnOnce() -> Answer<T>,
        show: impl FnOnce(&T) -> String,
    ) -> Result<T, i64> {
        let work = || {
            work().map_err(|refusal| match refusal {
                Refusal::NoSuchFunction => Failure {
                    code: missing,
                    text: Some("the library has no such function".to_owned()),
                },
                Refusal::Code(code) => Failure { code: i64::from(code), text: None },
            })
        };
        self.call(call, on, work, |value| Some(show(value)).filter(|text| !text.is_empty()))
    }

    /// A file or a link that was read.
    pub(crate) fn item(&mut self, name: &str, content: &[u8], partial: bool) {
        let (text, hex) = match std::str::from_utf8(content) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(hexadecimal(content))),
        };
        let name = name.to_owned();
        self.write(&Record::Item { name, text, hex, errno: None, partial });
    }

    /// A file or a link that could not be read.
    pub(crate) fn failed_item(&mut self, name: &str, errno: Errno) {
        let (name, errno) = (name.to_owned(), Some(errno.0));
        self.write(&Record::Item { name, text: None, hex: None, errno, partial: false });
    }

    /// Ends the report: without this the parent takes it for cut off.
    pub(crate) fn finish(mut self) {
        self.note(DONE, "");
        let _ = self.out.flush();
    }
}

/// Two digits a byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
