//! Bounded access to the structures that a caller hands over by address.

use core::ffi::c_void;

/// A structure in the caller's memory. Reads outside of it give zero, writes outside are dropped,
/// so that a branch with a shorter structure is never overrun.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    base: *mut u8,
    length: usize,
}

impl Memory {
    /// The `length` bytes at `address`; a null address is an empty structure.
    ///
    /// # Safety
    ///
    /// `address` must be null or valid for reading and writing `length` bytes while the value is
    /// used.
    pub(crate) unsafe fn new(address: *mut c_void, length: usize) -> Self {
        let length = if address.is_null() { 0 } else { length };
        Self { base: address.cast(), length }
    }

    /// How many bytes the structure has.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    fn holds(&self, offset: usize, size: usize) -> bool {
        offset.checked_add(size).is_some_and(|end| end <= self.length)
    }

    /// Reads `N` bytes at `offset`.
    fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        if self.holds(offset, N) {
            // SAFETY: the range lies inside the structure, whose validity `new` demands.
            unsafe {
                self.base.add(offset).copy_to_nonoverlapping(bytes.as_mut_ptr(), N);
            }
        }
        bytes
    }

    /// The 32-bit number at `offset`.
    pub(crate) fn u32(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.read(offset))
    }

    /// The pointer at `offset`.
    pub(crate) fn pointer(&self, offset: usize) -> *mut c_void {
        core::ptr::with_exposed_provenance_mut(usize::from_ne_bytes(self.read(offset)))
    }

    /// The text at `offset` up to its NUL or the end of the structure.
    pub(crate) fn text(&self, offset: usize) -> String {
        let bytes: Vec<u8> = (offset..self.length)
            .map(|at| self.read::<1>(at)[0])
            .take_while(|byte| *byte != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Writes bytes at `offset`.
    pub(crate) fn set(&self, offset: usize, bytes: &[u8]) {
        if self.holds(offset, bytes.len()) {
            // SAFETY: the range lies inside the structure, whose validity `new` demands.
            unsafe {
                self.base.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
    }

    /// Writes a 32-bit number at `offset`.
    pub(crate) fn set_u32(&self, offset: usize, value: u32) {
        self.set(offset, &value.to_ne_bytes());
    }

    /// Writes a 64-bit number at `offset`.
    pub(crate) fn set_u64(&self, offset: usize, value: u64) {
        self.set(offset, &value.to_ne_bytes());
    }

    /// Writes a 16-bit number at `offset`.
    pub(crate) fn set_u16(&self, offset: usize, value: u16) {
        self.set(offset, &value.to_ne_bytes());
    }

    /// Writes text with its closing NUL into a field of `size` bytes, cut to fit.
    pub(crate) fn set_text(&self, offset: usize, size: usize, text: &str) {
        let mut bytes: Vec<u8> = text.bytes().take(size.saturating_sub(1)).collect();
        bytes.push(0);
        self.set(offset, &bytes);
    }

    /// Fills `count` 32-bit numbers from `offset` on: the values given, then `rest`.
    pub(crate) fn set_list(&self, offset: usize, count: usize, values: &[u32], rest: u32) {
        for index in 0..count {
            let value = values.get(index).copied().unwrap_or(rest);
            self.set_u32(offset + index * 4, value);
        }
    }
}
