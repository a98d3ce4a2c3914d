//! Loading a driver library and calling what it has.

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::mem::ManuallyDrop;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW, Symbol};

/// A loaded library. It is never unloaded: the destructors of a driver library can block on a
/// sick driver, so a process that loaded one leaves by [`super::process::leave`].
pub(crate) struct Library(ManuallyDrop<Handle>);

/// Why a call brought no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The library has no such function: it is older than the function.
    NoSuchFunction,
    /// The function returned this code.
    Code(c_int),
}

/// What a call into a driver library brought.
pub(crate) type Answer<T> = Result<T, Refusal>;

impl Library {
    /// Loads a library by its name, along the search path that any program of this process's
    /// surroundings would use. The error is the loader's own text.
    pub(crate) fn load(name: &str) -> Result<Library, String> {
        // SAFETY: runs the library's constructors, as every CUDA program does; this process is a
        // child made for that and holds nothing that they could harm.
        let handle = unsafe { Handle::open(Some(OsStr::new(name)), RTLD_NOW | RTLD_LOCAL) };
        handle.map(|handle| Library(ManuallyDrop::new(handle))).map_err(|error| {
            // The loader's text is the source of the error; the error itself only says "failed".
            let source = std::error::Error::source(&error).map(ToString::to_string);
            source.unwrap_or_else(|| error.to_string())
        })
    }

    /// A function of the library.
    ///
    /// # Safety
    ///
    /// `F` must be the function's type as the vendor's header declares it.
    pub(super) unsafe fn function<F>(&self, name: &CStr) -> Answer<Symbol<F>> {
        // SAFETY: the caller vouches for the type.
        unsafe { self.0.get(name) }.map_err(|_| Refusal::NoSuchFunction)
    }
}

/// Turns a vendor's return code into a result.
pub(super) fn answered(code: c_int) -> Answer<()> {
    if code == 0 { Ok(()) } else { Err(Refusal::Code(code)) }
}

/// Room for a name, a UUID or a version; the longest that the headers speak of is 96 bytes.
const TEXT_BYTES: usize = 256;

/// Calls something that writes a C string into a buffer of a given length.
pub(super) fn text(call: impl FnOnce(*mut c_char, u32) -> c_int) -> Answer<String> {
    let mut buffer = [0_u8; TEXT_BYTES];
    // One byte is held back so that the text ends even where a library forgets to end it.
    answered(call(buffer.as_mut_ptr().cast(), 255))?;
    Ok(c_text(&buffer))
}

/// The text in a buffer up to its first zero.
pub(super) fn c_text(buffer: &[u8]) -> String {
    let text = buffer.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The file that holds the code at which a name of the library leads, as the loader knows it.
impl Library {
    /// Path of the file that is mapped, as the loader resolved it.
    pub(crate) fn path(&self, function: &str) -> Option<String> {
        let name = CString::new(function).ok()?;
        // SAFETY: only the address is used; nothing is called through it.
        let address = unsafe { self.function::<*const ()>(&name) }.ok()?;
        // SAFETY: plain data for which zero is valid.
        let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: dladdr looks the address up in the loader's own list and writes `found`.
        let known = unsafe { libc::dladdr((*address).cast(), &raw mut found) } != 0;
        if !known || found.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the loader's C string, which lives as long as the library does.
        let path = unsafe { CStr::from_ptr(found.dli_fname) };
        Some(path.to_string_lossy().into_owned())
    }
}
