//! The kernel log: /dev/kmsg, or where that is refused the ring as syslog(2) copies it.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::Options;
use crate::child::report::Report;
use crate::sys::{errno_of, host};

const KMSG: &str = "/dev/kmsg";
/// Name of the ring as syslog(2) gives it, which is what `dmesg --raw` prints on old systems.
const RING: &str = "$ dmesg --raw";
/// Longest record of /dev/kmsg (`CONSOLE_EXT_LOG_MAX` of the kernel).
const RECORD_BYTES: usize = 8192;
/// Most bytes that are kept; a ring is 128 KiB to a few MiB.
const LOG_LIMIT_BYTES: usize = 6 << 20;

/// Reads the log.
pub(super) fn run(report: &mut Report, _: &Options) {
    match read_kmsg() {
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
fn read_kmsg() -> std::io::Result<(Vec<u8>, bool)> {
    let mut file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(KMSG)?;
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
        if text.len() > LOG_LIMIT_BYTES * 2 {
            text.drain(..text.len() - LOG_LIMIT_BYTES);
            partial = true;
        }
    }
    let surplus = text.len().saturating_sub(LOG_LIMIT_BYTES);
    text.drain(..surplus);
    Ok((text, partial || surplus > 0))
}
