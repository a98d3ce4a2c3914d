//! The CUDA driver library beyond its devices: a context, memory, and one small kernel.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr;

use super::cuda::{Cuda, Device};
use super::library::{Answer, answered};

/// An address in device memory, `CUdeviceptr`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceMemory(u64);

/// A `CUmodule` with its one `CUfunction`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    module: *mut c_void,
    function: *mut c_void,
}

impl Cuda {
    /// `cuDevicePrimaryCtxRetain` and `cuCtxSetCurrent`.
    pub(crate) fn enter_context(&self, device: Device) -> Answer<()> {
        type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
        type SetCurrent = unsafe extern "C" fn(*mut c_void) -> c_int;
        let mut context = ptr::null_mut();
        // SAFETY: types as in cuda.h; one pointer is written and handed back as it came.
        unsafe {
            let retain = self.library.function::<Retain>(c"cuDevicePrimaryCtxRetain")?;
            let set_current = self.library.function::<SetCurrent>(c"cuCtxSetCurrent")?;
            answered(retain(&raw mut context, device.0))?;
            answered(set_current(context))
        }
    }

    /// `cuDevicePrimaryCtxRelease_v2`.
    pub(crate) fn leave_context(&self, device: Device) -> Answer<()> {
        type Release = unsafe extern "C" fn(c_int) -> c_int;
        // SAFETY: type as in cuda.h.
        unsafe {
            let release = self.library.function::<Release>(c"cuDevicePrimaryCtxRelease_v2")?;
            answered(release(device.0))
        }
    }

    /// `cuMemAlloc_v2`.
    pub(crate) fn allocate(&self, bytes: usize) -> Answer<DeviceMemory> {
        type Allocate = unsafe extern "C" fn(*mut u64, usize) -> c_int;
        let mut address = 0;
        // SAFETY: type as in cuda.h; one 64-bit address is written.
        unsafe {
            let allocate = self.library.function::<Allocate>(c"cuMemAlloc_v2")?;
            answered(allocate(&raw mut address, bytes))?;
        }
        Ok(DeviceMemory(address))
    }

    /// `cuMemFree_v2`.
    pub(crate) fn free(&self, memory: DeviceMemory) -> Answer<()> {
        type Free = unsafe extern "C" fn(u64) -> c_int;
        // SAFETY: type as in cuda.h; the address came from `allocate`.
        unsafe {
            let free = self.library.function::<Free>(c"cuMemFree_v2")?;
            answered(free(memory.0))
        }
    }

    /// `cuMemcpyHtoD_v2`: copies the numbers to the start of the memory.
    pub(crate) fn copy_to(&self, memory: DeviceMemory, numbers: &[u32]) -> Answer<()> {
        type Copy = unsafe extern "C" fn(u64, *const c_void, usize) -> c_int;
        // SAFETY: type as in cuda.h; the slice is as long as the call is told.
        unsafe {
            let copy = self.library.function::<Copy>(c"cuMemcpyHtoD_v2")?;
            answered(copy(memory.0, numbers.as_ptr().cast(), size_of_val(numbers)))
        }
    }

    /// `cuMemcpyDtoH_v2`: fills the numbers from the start of the memory.
    pub(crate) fn copy_from(&self, memory: DeviceMemory, numbers: &mut [u32]) -> Answer<()> {
        type Copy = unsafe extern "C" fn(*mut c_void, u64, usize) -> c_int;
        // SAFETY: type as in cuda.h; the slice is as long as the call is told.
        unsafe {
            let copy = self.library.function::<Copy>(c"cuMemcpyDtoH_v2")?;
            answered(copy(numbers.as_mut_ptr().cast(), memory.0, size_of_val(numbers)))
        }
    }

    /// `cuModuleLoadData` of PTX text and `cuModuleGetFunction`.
    pub(crate) fn load_kernel(&self, ptx: &CStr, name: &CStr) -> Answer<Kernel> {
        type Load = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int;
        type Get = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const i8) -> c_int;
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: types as in cuda.h; PTX ends with a zero, which is how its length is known.
        unsafe {
            let load = self.library.function::<Load>(c"cuModuleLoadData")?;
            let get = self.library.function::<Get>(c"cuModuleGetFunction")?;
            answered(load(&raw mut module, ptx.as_ptr().cast()))?;
            answered(get(&raw mut function, module, name.as_ptr().cast()))?;
        }
        Ok(Kernel { module, function })
    }

    /// `cuLaunchKernel` of one block with that many threads and the memory as only argument, and
    /// `cuCtxSynchronize`.
    pub(crate) fn launch(&self, kernel: Kernel, threads: u32, memory: DeviceMemory) -> Answer<()> {
        type Launch = unsafe extern "C" fn(
            *mut c_void,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            c_uint,
            *mut c_void,
            *mut *mut c_void,
            *mut *mut c_void,
        ) -> c_int;
        type Synchronize = unsafe extern "C" fn() -> c_int;
        let mut address = memory.0;
        let mut arguments: [*mut c_void; 1] = [(&raw mut address).cast()];
        let (stream, extra) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: types as in cuda.h; the kernel has one 64-bit parameter, to which the one entry
        // of `arguments` points, and it writes only within the memory that `allocate` gave.
        unsafe {
            let launch = self.library.function::<Launch>(c"cuLaunchKernel")?;
            let synchronize = self.library.function::<Synchronize>(c"cuCtxSynchronize")?;
            let arguments = arguments.as_mut_ptr();
            answered(launch(kernel.function, 1, 1, 1, threads, 1, 1, 0, stream, arguments, extra))?;
            answered(synchronize())
        }
    }

    /// `cuModuleUnload`.
    pub(crate) fn unload_kernel(&self, kernel: Kernel) -> Answer<()> {
        type Unload = unsafe extern "C" fn(*mut c_void) -> c_int;
        // SAFETY: type as in cuda.h; the module came from `load_kernel`.
        unsafe {
            let unload = self.library.function::<Unload>(c"cuModuleUnload")?;
            answered(unload(kernel.module))
        }
    }
}
