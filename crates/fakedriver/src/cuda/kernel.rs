//! Modules and kernels. Whatever PTX is loaded, the one kernel here is in place on 32-bit
//! elements: `data[i] = data[i] * 3 + i` for each thread `i` of the grid's first dimension, where
//! `data` is the kernel's first parameter. That is what the product's own kernel computes.

use core::ffi::{c_char, c_int, c_uint, c_void};

use super::context::begin_in_context;
use super::memory::with_memory;
use super::{INVALID_VALUE, SUCCESS};
use crate::put;
use crate::settings::settings;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> c_int {
    if let Some(code) = begin_in_context("cuModuleLoadData", "") {
        return code;
    }
    if image.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(module, core::ptr::without_provenance_mut(0x30d)) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    function: *mut *mut c_void,
    _module: *mut c_void,
    _name: *const c_char,
) -> c_int {
    if let Some(code) = begin_in_context("cuModuleGetFunction", "") {
        return code;
    }
    // SAFETY: cuda.h demands a valid pointer.
    unsafe { put::value(function, core::ptr::without_provenance_mut(0xf00)) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(_module: *mut c_void) -> c_int {
    begin_in_context("cuModuleUnload", "").unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    _function: *mut c_void,
    grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared_bytes: c_uint,
    _stream: *mut c_void,
    parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    if let Some(code) = begin_in_context("cuLaunchKernel", "kernel") {
        return code;
    }
    if parameters.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: cuda.h demands an array of pointers to the parameters; the first one is the address.
    let data = unsafe { (*parameters).cast::<u64>().read_unaligned() };
    let threads = grid_x as usize * block_x as usize;
    match with_memory(data, None, |memory| compute(memory, threads)) {
        Some(()) => SUCCESS,
        None => INVALID_VALUE,
    }
}

fn compute(memory: &mut [u8], threads: usize) {
    let mistake = u32::from(settings().kernel_wrong);
    let (elements, _) = memory.as_chunks_mut::<4>();
    for (index, element) in (0_u32..).zip(elements.iter_mut().take(threads)) {
        let value = u32::from_ne_bytes(*element).wrapping_mul(3).wrapping_add(index);
        *element = value.wrapping_add(mistake).to_ne_bytes();
    }
}
