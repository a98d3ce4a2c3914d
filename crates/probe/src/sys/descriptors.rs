//! What the descriptors of another process lead to.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use facts::Errno;

use super::{check, last_errno};

/// The folder of a thread's descriptors in /proc, kept open so that each look costs no walk
/// through /proc. It stays that thread's: the number of one that has ended finds nobody.
#[derive(Debug)]
pub(crate) struct Descriptors {
    folder: OwnedFd,
}

impl Descriptors {
    /// Opens the folder of a thread. Threads may have descriptors of their own, and those of a
    /// first thread that has ended are gone, so that the thread's own folder is the right one.
    pub(crate) fn of(thread: u32) -> Result<Descriptors, Errno> {
        let path = std::ffi::CString::new(format!("/proc/{thread}/fd")).map_err(|_| Errno::EIO)?;
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path is a C string.
        let folder = check(unsafe { libc::open(path.as_ptr(), flags) })?;
        // SAFETY: the descriptor was just opened and is owned by nobody else.
        Ok(Descriptors { folder: unsafe { OwnedFd::from_raw_fd(folder) } })
    }

    /// The beginning of what a descriptor leads to, as long as `buffer`.
    pub(crate) fn link<'a>(
        &self,
        descriptor: u32,
        buffer: &'a mut [u8],
    ) -> Result<&'a [u8], Errno> {
        let mut name = [0_u8; 12];
        decimal(descriptor, &mut name);
        // SAFETY: the name ends in a zero, and the buffer is as long as the call is told.
        let length = unsafe {
            libc::readlinkat(
                self.folder.as_raw_fd(),
                name.as_ptr().cast(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        let length = usize::try_from(length).map_err(|_| last_errno())?;
        Ok(buffer.get(..length).unwrap_or_default())
    }
}

/// Writes a number in decimal at the beginning of zeros.
fn decimal(number: u32, into: &mut [u8; 12]) {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for place in into.iter_mut().take(digits).rev() {
        *place = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_usual() {
        for number in [0, 7, 10, 1023, u32::MAX] {
            let mut name = [0; 12];
            decimal(number, &mut name);
            let text = std::str::from_utf8(&name).unwrap().trim_end_matches('\0');
            assert_eq!(text, number.to_string());
        }
    }

    #[test]
    fn an_own_descriptor_is_found_and_a_closed_one_is_not() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let own = Descriptors::of(std::process::id()).unwrap();
        let number = file.as_raw_fd().cast_unsigned();
        assert_eq!(own.link(number, &mut [0; 64]).unwrap(), b"/dev/null");
        assert_eq!(own.link(u32::MAX, &mut [0; 64]), Err(Errno::ENOENT));
        assert!(Descriptors::of(u32::MAX).is_err());
    }
}
