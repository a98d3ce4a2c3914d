//! The kernel log: /dev/kmsg, or where that is refused the ring as syslog(2) copies it, or the
//! files of the log daemons.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use super::reader::{self, Reader};
use crate::child::report::Report;
use crate::sys::{errno_of, host};

const KMSG: &str = "/dev/kmsg";
/// Name of the ring as syslog(2) gives it: the form of `dmesg --raw`.
const RING: &str = "$ dmesg --raw";
/// Longest record of /dev/kmsg (`CONSOLE_EXT_LOG_MAX` of the kernel).
const RECORD_BYTES: usize = 8192;

/// Reads one log. Files of log daemons are read only where the kernel's own log cannot be, since
/// they repeat it.
pub(super) fn read(report: &mut Report, reader: &Reader, path: &str, limit: usize) {
    if !reader.is_live() {
        // The device below another root is this machine's log, not that one's.
        let is_file = reader.metadata(path).is_none_or(|metadata| metadata.is_file());
        if is_file {
            read_end(report, reader, path, limit);
        }
    } else if path == KMSG {
        read_ring(report, limit);
    } else if OpenOptions::new().read(true).open(KMSG).is_err() {
        read_end(report, reader, path, limit);
    }
}

fn read_ring(report: &mut Report, limit: usize) {
    match read_kmsg(limit) {
        Ok((text, partial)) => report.item(KMSG, &text, partial),
        Err(error) => {
            report.failed_item(KMSG, errno_of(&error));
            match host::kernel_log() {
                Ok(text) => report.item(RING, &text, false),
                Err(errno) => report.failed_item(RING, errno),
            }
        }
    }
}

/// Reads records until there is none without waiting. Where the ring is longer than what is kept,
/// its newest end is.
fn read_kmsg(limit: usize) -> std::io::Result<(Vec<u8>, bool)> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(KMSG)?;
    let mut text = Vec::new();
    let mut partial = false;
    let mut record = [0_u8; RECORD_BYTES];
    loop {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(length) => text.extend_from_slice(record.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // EPIPE: records were overwritten before they were read; the next read goes on behind.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => partial = true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if text.is_empty() => return Err(error),
            Err(_) => {
                partial = true;
                break;
            }
        }
        if text.len() > limit.saturating_mul(2) {
            partial |= keep_end(&mut text, limit);
        }
    }
    partial |= keep_end(&mut text, limit);
    Ok((text, partial))
}

/// Drops whole lines from the beginning until the text is within the limit.
fn keep_end(text: &mut Vec<u8>, limit: usize) -> bool {
    let surplus = text.len().saturating_sub(limit);
    if surplus == 0 {
        return false;
    }
    let rest = text.iter().skip(surplus).position(|byte| *byte == b'\n');
    text.drain(..rest.map_or(surplus, |at| surplus + at + 1));
    true
}

/// Reads the end of a log file.
fn read_end(report: &mut Report, reader: &Reader, path: &str, limit: usize) {
    let read = || {
        let mut file = reader::open(&reader.place(path))?;
        let size = file.metadata().map_err(|error| errno_of(&error))?.len();
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let skipped = size.saturating_sub(limit);
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(skipped)).map_err(|error| errno_of(&error))?;
        file.take(limit).read_to_end(&mut text).map_err(|error| errno_of(&error))?;
        Ok((text, skipped > 0))
    };
    match read() {
        Ok((mut text, partial)) => {
            if partial {
                let length = text.len();
                keep_end(&mut text, length.saturating_sub(1));
            }
            report.item(path, &text, partial);
        }
        Err(errno) => report.failed_item(path, errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_its_end_in_whole_lines() {
        let mut text = b"first\nsecond\nthird\n".to_vec();
        assert!(keep_end(&mut text, 10));
        assert_eq!(text, b"third\n");
        assert!(!keep_end(&mut text, 10));
    }
}
