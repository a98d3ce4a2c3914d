//! Device memory, which is the host's.

use core::ffi::{c_int, c_void};
use std::sync::Mutex;

use super::context::begin_in_context;
use super::{INVALID_VALUE, SUCCESS};
use crate::put;
use crate::settings::settings;

/// Allocations. An address handed out is that of the buffer, so the buffers must not move: boxed
/// slices do not.
static ALLOCATIONS: Mutex<Vec<(u64, Box<[u8]>)>> = Mutex::new(Vec::new());

/// Lends the `size` bytes of device memory at `address`, if they are allocated.
pub(super) fn with_memory<R>(
    address: u64,
    size: Option<usize>,
    work: impl FnOnce(&mut [u8]) -> R,
) -> Option<R> {
    let mut allocations = ALLOCATIONS.lock().ok()?;
    let (start, buffer) = allocations
        .iter_mut()
        .find(|(start, buffer)| address >= *start && address - *start < buffer.len() as u64)?;
    let offset = usize::try_from(address - *start).ok()?;
    let size = size.unwrap_or(buffer.len() - offset);
    buffer.get_mut(offset..offset.checked_add(size)?).map(work)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, size: usize) -> c_int {
    const OUT_OF_MEMORY: c_int = 2;
    const MOST: usize = 1 << 28;
    if let Some(code) = begin_in_context("cuMemAlloc_v2", "alloc") {
        return code;
    }
    if size == 0 || size > MOST {
        return if size == 0 { INVALID_VALUE } else { OUT_OF_MEMORY };
    }
    let buffer = vec![0; size].into_boxed_slice();
    let start = buffer.as_ptr().addr() as u64;
    let Ok(mut allocations) = ALLOCATIONS.lock() else {
        return OUT_OF_MEMORY;
    };
    allocations.push((start, buffer));
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(address, start) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    if let Some(code) = begin_in_context("cuMemFree_v2", "") {
        return code;
    }
    let Ok(mut allocations) = ALLOCATIONS.lock() else {
        return INVALID_VALUE;
    };
    let before = allocations.len();
    allocations.retain(|(start, _)| *start != address);
    if allocations.len() < before { SUCCESS } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, size: usize) -> c_int {
    if let Some(code) = begin_in_context("cuMemcpyHtoD_v2", "copy") {
        return code;
    }
    // SAFETY: cuda.h demands `size` readable bytes at `from`.
    let copied = with_memory(to, Some(size), |memory| unsafe {
        memory.as_mut_ptr().copy_from_nonoverlapping(from.cast(), size);
    });
    if copied.is_some() { SUCCESS } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, size: usize) -> c_int {
    if let Some(code) = begin_in_context("cuMemcpyDtoH_v2", "copy") {
        return code;
    }
    // SAFETY: cuda.h demands `size` writable bytes at `to`.
    let copied = with_memory(from, Some(size), |memory| unsafe {
        let to = to.cast::<u8>();
        to.copy_from_nonoverlapping(memory.as_ptr(), size);
        if settings().copy_wrong && size > 0 {
            to.write(!to.read());
        }
    });
    if copied.is_some() { SUCCESS } else { INVALID_VALUE }
}
