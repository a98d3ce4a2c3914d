//! The CUDA driver library up to its devices: `libcuda.so.1` by the names of cuda.h.
//!
//! The names are spelled with their versions. The unversioned `libcuda.so` is never loaded: with a
//! toolkit's `stubs` folder on the search path it would be the stub.

use std::ffi::{c_char, c_int, c_uint};

use super::library::{Answer, Library, Refusal, answered, text};

/// File name of the library.
pub(crate) const LIBRARY: &str = "libcuda.so.1";

/// `CUDA_ERROR_NOT_FOUND`, which stands for a function that the library lacks.
pub(crate) const NOT_FOUND: i64 = 500;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];

/// A `CUdevice`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device(pub(super) c_int);

/// The library, loaded.
pub(crate) struct Cuda {
    pub(super) library: Library,
}

impl Cuda {
    /// Loads the library of this name, which is [`LIBRARY`] unless a certain file is meant.
    pub(crate) fn load(name: &str) -> Result<Cuda, String> {
        Library::load(name).map(|library| Cuda { library })
    }

    /// The file that was loaded.
    pub(crate) fn path(&self) -> Option<String> {
        self.library.path("cuInit")
    }

    /// `cuInit(0)`.
    pub(crate) fn init(&self) -> Answer<()> {
        // SAFETY: type as in cuda.h; no flag is defined, so 0 is the only argument.
        unsafe {
            let call = self.library.function::<unsafe extern "C" fn(c_uint) -> c_int>(c"cuInit")?;
            answered(call(0))
        }
    }

    /// `cuDriverGetVersion`: 12080 for CUDA 12.8.
    pub(crate) fn driver_version(&self) -> Answer<i32> {
        // SAFETY: type as in cuda.h.
        unsafe { self.number(c"cuDriverGetVersion") }
    }

    /// `cuDeviceGetCount`.
    pub(crate) fn device_count(&self) -> Answer<i32> {
        // SAFETY: type as in cuda.h.
        unsafe { self.number(c"cuDeviceGetCount") }
    }

    /// `cuDeviceGet`.
    pub(crate) fn device(&self, ordinal: i32) -> Answer<Device> {
        type Call = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
        let mut device = 0;
        // SAFETY: type as in cuda.h; one integer is written.
        unsafe {
            let call = self.library.function::<Call>(c"cuDeviceGet")?;
            answered(call(&raw mut device, ordinal))?;
        }
        Ok(Device(device))
    }

    /// `cuDeviceGetName`.
    pub(crate) fn device_name(&self, device: Device) -> Answer<String> {
        // SAFETY: type as in cuda.h.
        unsafe { self.device_text(c"cuDeviceGetName", device) }
    }

    /// `cuDeviceGetPCIBusId`.
    pub(crate) fn device_pci(&self, device: Device) -> Answer<String> {
        type Call = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        // SAFETY: type as in cuda.h; `text` gives the buffer and its length.
        unsafe {
            let call = self.library.function::<Call>(c"cuDeviceGetPCIBusId")?;
            text(|buffer, room| call(buffer, room.cast_signed(), device.0))
        }
    }

    /// `cuDeviceGetUuid_v2` (since 11.4; tells the instance's in MIG mode) or `cuDeviceGetUuid`.
    pub(crate) fn device_uuid(&self, device: Device) -> Answer<[u8; 16]> {
        type Call = unsafe extern "C" fn(*mut [u8; 16], c_int) -> c_int;
        let mut uuid = [0_u8; 16];
        // SAFETY: type as in cuda.h, where CUuuid is 16 bytes.
        unsafe {
            let call = match self.library.function::<Call>(c"cuDeviceGetUuid_v2") {
                Err(Refusal::NoSuchFunction) => self.library.function(c"cuDeviceGetUuid")?,
                found => found?,
            };
            answered(call(&raw mut uuid, device.0))?;
        }
        Ok(uuid)
    }

    /// Compute capability, major and minor, by `cuDeviceGetAttribute`.
    pub(crate) fn device_capability(&self, device: Device) -> Answer<(i32, i32)> {
        type Call = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        let mut numbers = [0; 2];
        // SAFETY: type as in cuda.h; each call writes one integer.
        unsafe {
            let call = self.library.function::<Call>(c"cuDeviceGetAttribute")?;
            for (number, attribute) in numbers.iter_mut().zip(CAPABILITY) {
                answered(call(number, attribute, device.0))?;
            }
        }
        Ok((numbers[0], numbers[1]))
    }

    /// Calls a function whose only argument is where to write one integer.
    ///
    /// # Safety
    ///
    /// The function must have that type.
    unsafe fn number(&self, name: &std::ffi::CStr) -> Answer<i32> {
        let mut number = 0;
        // SAFETY: the caller vouches for the type.
        unsafe {
            let call = self.library.function::<unsafe extern "C" fn(*mut c_int) -> c_int>(name)?;
            answered(call(&raw mut number))?;
        }
        Ok(number)
    }

    /// Calls a function of the type `(char *, int, CUdevice)`.
    ///
    /// # Safety
    ///
    /// The function must have that type.
    unsafe fn device_text(&self, name: &std::ffi::CStr, device: Device) -> Answer<String> {
        type Call = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        // SAFETY: the caller vouches for the type; `text` gives the buffer and its length.
        unsafe {
            let call = self.library.function::<Call>(name)?;
            text(|buffer, room| call(buffer, room.cast_signed(), device.0))
        }
    }
}
