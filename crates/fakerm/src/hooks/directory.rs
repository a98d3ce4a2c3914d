//! Listing folders: `opendir` and its kin.
//!
//! A folder with pretended names in it is read to its end and then followed by those names. One
//! that the real system lacks is a stream of our own, backed by a memfd of its name.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;

use super::target;
use crate::real;
use crate::tree::{self, Entry};

/// A listing with pretended names. Its address is the `DIR*` that the caller sees.
struct Listing {
    /// The C library's stream of the real folder; null when there is none.
    real: *mut libc::DIR,
    /// Descriptor of our own when there is no real folder, else −1.
    descriptor: c_int,
    /// Names to come after the real ones, with their `d_type`.
    names: Vec<(String, u8)>,
    next: usize,
    record: libc::dirent64,
}

/// Addresses of the listings that are open.
static OPEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn is_listing(stream: *mut libc::DIR) -> bool {
    OPEN.lock().is_ok_and(|open| open.contains(&stream.addr()))
}

/// # Safety
///
/// The C library's function of this name must have type `F`.
unsafe fn next<F: Copy>(symbol: &CStr) -> Option<F> {
    let address: *mut c_void = real::next(symbol);
    // SAFETY: a function pointer has the size of a pointer; the caller vouches for the type.
    (!address.is_null()).then(|| unsafe { core::mem::transmute_copy::<*mut c_void, F>(&address) })
}

type OpenByPath = unsafe extern "C" fn(*const c_char) -> *mut libc::DIR;
type OpenByDescriptor = unsafe extern "C" fn(c_int) -> *mut libc::DIR;
type Read = unsafe extern "C" fn(*mut libc::DIR) -> *mut libc::dirent64;
type OfStream = unsafe extern "C" fn(*mut libc::DIR) -> c_int;
type Rewind = unsafe extern "C" fn(*mut libc::DIR);

fn kind(entry: &Entry) -> u8 {
    match entry {
        Entry::Device { .. } => libc::DT_CHR,
        Entry::Link(_) => libc::DT_LNK,
        Entry::Folder => libc::DT_DIR,
        _ => libc::DT_REG,
    }
}

/// The names to add to the folder at `path`: those that the real folder does not have anyway.
fn additions(path: &str) -> Vec<(String, u8)> {
    tree::names_in(path)
        .into_iter()
        .filter(|(_, entry)| !matches!(entry, Entry::Nothing | Entry::Added(..)))
        .map(|(name, entry)| (name, kind(entry)))
        .collect()
}

fn open_listing(
    real: *mut libc::DIR,
    descriptor: c_int,
    names: Vec<(String, u8)>,
) -> *mut libc::DIR {
    // SAFETY: all zeroes are a valid dirent64.
    let record = unsafe { core::mem::zeroed() };
    let listing = Box::into_raw(Box::new(Listing { real, descriptor, names, next: 0, record }));
    if let Ok(mut open) = OPEN.lock() {
        open.push(listing.addr());
    }
    listing.cast()
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut libc::DIR {
    // SAFETY: the caller keeps the C library's contract.
    unsafe {
        let target = target::absolute(libc::AT_FDCWD, path);
        if let Some((path, Entry::Folder)) = target.as_deref().and_then(tree::find_followed) {
            let descriptor = real::memfd(&path, true);
            return open_listing(core::ptr::null_mut(), descriptor, additions(&path));
        }
        let Some(open) = next::<OpenByPath>(c"opendir") else {
            return core::ptr::null_mut();
        };
        with_additions(open(path), target)
    }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdopendir(descriptor: c_int) -> *mut libc::DIR {
    // SAFETY: the caller keeps the C library's contract.
    unsafe {
        if let Some((path, Entry::Folder)) = target::behind(descriptor) {
            return open_listing(core::ptr::null_mut(), descriptor, additions(&path));
        }
        let path = target::path_of(descriptor);
        let Some(open) = next::<OpenByDescriptor>(c"fdopendir") else {
            return core::ptr::null_mut();
        };
        with_additions(open(descriptor), path)
    }
}

fn with_additions(real: *mut libc::DIR, path: Option<String>) -> *mut libc::DIR {
    let names = path.map(|path| additions(&path)).unwrap_or_default();
    if real.is_null() || names.is_empty() { real } else { open_listing(real, -1, names) }
}

/// # Safety
///
/// `stream` must be an open stream.
unsafe fn read(symbol: &CStr, stream: *mut libc::DIR) -> *mut libc::dirent64 {
    // SAFETY: the stream is one of the C library's or, being registered, one of ours.
    unsafe {
        let Some(read) = next::<Read>(symbol) else {
            return core::ptr::null_mut();
        };
        if !is_listing(stream) {
            return read(stream);
        }
        let listing = &mut *stream.cast::<Listing>();
        if !listing.real.is_null() {
            let entry = read(listing.real);
            if !entry.is_null() {
                return entry;
            }
        }
        let Some((name, kind)) = listing.names.get(listing.next) else {
            return core::ptr::null_mut();
        };
        listing.next += 1;
        let record = &mut listing.record;
        record.d_ino = 1;
        record.d_type = *kind;
        record.d_reclen = u16::try_from(size_of::<libc::dirent64>()).unwrap_or(0);
        record.d_name = [0; 256];
        for (to, from) in record.d_name.iter_mut().zip(name.bytes().take(255)) {
            *to = from.cast_signed();
        }
        &raw mut listing.record
    }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn readdir(stream: *mut libc::DIR) -> *mut libc::dirent64 {
    // SAFETY: the caller keeps the C library's contract; on 64-bit Linux both records are alike.
    unsafe { read(c"readdir", stream) }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn readdir64(stream: *mut libc::DIR) -> *mut libc::dirent64 {
    // SAFETY: the caller keeps the C library's contract.
    unsafe { read(c"readdir64", stream) }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn closedir(stream: *mut libc::DIR) -> c_int {
    // SAFETY: the stream is one of the C library's or, being registered, one of ours.
    unsafe {
        let Some(close) = next::<OfStream>(c"closedir") else {
            return -1;
        };
        if !is_listing(stream) {
            return close(stream);
        }
        if let Ok(mut open) = OPEN.lock() {
            open.retain(|address| *address != stream.addr());
        }
        let listing = Box::from_raw(stream.cast::<Listing>());
        if listing.real.is_null() {
            real::close(listing.descriptor);
            return 0;
        }
        close(listing.real)
    }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn dirfd(stream: *mut libc::DIR) -> c_int {
    // SAFETY: the stream is one of the C library's or, being registered, one of ours.
    unsafe {
        let Some(of_stream) = next::<OfStream>(c"dirfd") else {
            return -1;
        };
        if !is_listing(stream) {
            return of_stream(stream);
        }
        let listing = &*stream.cast::<Listing>();
        if listing.real.is_null() { listing.descriptor } else { of_stream(listing.real) }
    }
}

/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn rewinddir(stream: *mut libc::DIR) {
    // SAFETY: the stream is one of the C library's or, being registered, one of ours.
    unsafe {
        let Some(rewind) = next::<Rewind>(c"rewinddir") else {
            return;
        };
        if !is_listing(stream) {
            return rewind(stream);
        }
        let listing = &mut *stream.cast::<Listing>();
        listing.next = 0;
        if !listing.real.is_null() {
            rewind(listing.real);
        }
    }
}
