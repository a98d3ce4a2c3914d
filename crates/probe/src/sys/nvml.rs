//! The management library: `libnvidia-ml.so.1` by the names of nvml.h.
//!
//! Values and layouts are those of nvml.h 13; older libraries lack some functions, which is
//! [`super::library::Refusal::NoSuchFunction`] of that one call.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::library::{Answer, Library, Refusal, answered, c_text, text};

/// File name of the library.
pub(crate) const LIBRARY: &str = "libnvidia-ml.so.1";

/// `NVML_ERROR_FUNCTION_NOT_FOUND`, which stands for a function that the library lacks.
pub(crate) const FUNCTION_NOT_FOUND: i64 = 13;

/// `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
const FIELD_RECOVERY_ACTION: u32 = 230;
/// `nvmlDeviceAddressingMode_v1`: size 8, version 1.
const ADDRESSING_MODE_V1: u32 = 0x0100_0008;
/// `nvmlGpuFabricInfo_v2`: size 36, version 2.
const FABRIC_INFO_V2: u32 = 0x0200_0024;

/// An `nvmlDevice_t`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device(pub(super) *mut c_void);

/// Where a GPU is on the bus, from `nvmlPciInfo_t`.
#[derive(Debug, Clone)]
pub(crate) struct PciInfo {
    /// Bus id as text.
    pub(crate) bus_id: String,
    /// Device and vendor id, the device in the upper half.
    pub(crate) device_id: u32,
}

/// Fabric registration, from `nvmlGpuFabricInfoV_t`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FabricInfo {
    /// State: 0 not supported, 1 not started, 2 in progress, 3 completed.
    pub(crate) state: u8,
    /// Status of a completed registration, an `nvmlReturn_t`.
    pub(crate) status: u32,
    /// Health mask.
    pub(crate) health: u32,
}

/// `nvmlPciInfo_t`.
#[repr(C)]
struct RawPciInfo {
    bus_id_legacy: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    pci_device_id: c_uint,
    pci_sub_system_id: c_uint,
    bus_id: [u8; 32],
}

/// `nvmlGpuFabricInfo_v2_t`.
#[repr(C)]
#[derive(Default)]
struct RawFabricInfo {
    version: c_uint,
    cluster_uuid: [u8; 16],
    status: c_uint,
    clique_id: u32,
    state: u8,
    health_mask: u32,
}

/// `nvmlFieldValue_t`; the value is a union of at most eight bytes.
#[repr(C)]
#[derive(Default)]
struct RawFieldValue {
    field_id: u32,
    scope_id: u32,
    timestamp: i64,
    latency_usec: i64,
    value_type: c_uint,
    nvml_return: c_uint,
    value: u64,
}

/// The library, loaded.
pub(crate) struct Nvml {
    pub(super) library: Library,
}

impl Nvml {
    /// Loads the library.
    pub(crate) fn load() -> Result<Nvml, String> {
        Library::load(LIBRARY).map(|library| Nvml { library })
    }

    /// The file that was loaded.
    pub(crate) fn path(&self) -> Option<String> {
        self.library.path("nvmlInit_v2")
    }

    /// `nvmlInit_v2`.
    pub(crate) fn init(&self) -> Answer<()> {
        // SAFETY: type as in nvml.h.
        unsafe {
            let call = self.library.function::<unsafe extern "C" fn() -> c_int>(c"nvmlInit_v2")?;
            answered(call())
        }
    }

    /// `nvmlSystemGetDriverVersion` or `nvmlSystemGetNVMLVersion`.
    pub(crate) fn system_text(&self, function: &CStr) -> Answer<String> {
        type Call = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
        // SAFETY: type as in nvml.h for both; `text` gives the buffer and its length.
        unsafe {
            let call = self.library.function::<Call>(function)?;
            text(|buffer, room| call(buffer, room))
        }
    }

    /// `nvmlSystemGetCudaDriverVersion_v2` or `nvmlDeviceGetCount_v2`: one integer.
    pub(crate) fn system_number(&self, function: &CStr) -> Answer<i32> {
        let mut number = 0;
        // SAFETY: type as in nvml.h for both.
        unsafe {
            let call =
                self.library.function::<unsafe extern "C" fn(*mut c_int) -> c_int>(function)?;
            answered(call(&raw mut number))?;
        }
        Ok(number)
    }

    /// `nvmlDeviceGetHandleByIndex_v2`.
    pub(crate) fn device(&self, index: u32) -> Answer<Device> {
        type Call = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_int;
        let mut device = std::ptr::null_mut();
        // SAFETY: type as in nvml.h; one pointer is written.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetHandleByIndex_v2")?;
            answered(call(index, &raw mut device))?;
        }
        Ok(Device(device))
    }

    /// A text of a device: `nvmlDeviceGetName`, `nvmlDeviceGetUUID`,
    /// `nvmlDeviceGetGspFirmwareVersion`.
    pub(crate) fn device_text(&self, function: &CStr, device: Device) -> Answer<String> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_int;
        // The firmware's version has no length argument; the headers promise at most 64 bytes,
        // and a third argument that a function does not take is harmless in this ABI.
        // SAFETY: type as in nvml.h; `text` gives the buffer and its length.
        unsafe {
            let call = self.library.function::<Call>(function)?;
            text(|buffer, room| call(device.0, buffer, room))
        }
    }

    /// A number of a device: `nvmlDeviceGetMinorNumber`, `…Architecture`, `…ComputeMode`,
    /// `…PersistenceMode`, `…VirtualizationMode`.
    pub(crate) fn device_number(&self, function: &CStr, device: Device) -> Answer<u32> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;
        let mut number = 0;
        // SAFETY: type as in nvml.h for each of them; enums are 32-bit integers.
        unsafe {
            let call = self.library.function::<Call>(function)?;
            answered(call(device.0, &raw mut number))?;
        }
        Ok(number)
    }

    /// `nvmlDeviceGetPciInfo_v3`.
    pub(crate) fn device_pci(&self, device: Device) -> Answer<PciInfo> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut RawPciInfo) -> c_int;
        // SAFETY: type and layout as in nvml.h; the structure is plain data, valid as zeros.
        let info = unsafe {
            let mut info: RawPciInfo = std::mem::zeroed();
            let call = self.library.function::<Call>(c"nvmlDeviceGetPciInfo_v3")?;
            answered(call(device.0, &raw mut info))?;
            info
        };
        Ok(PciInfo { bus_id: c_text(&info.bus_id), device_id: info.pci_device_id })
    }

    /// `nvmlDeviceGetMigMode`: the current mode, 1 for on.
    pub(crate) fn device_mig(&self, device: Device) -> Answer<u32> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut c_uint, *mut c_uint) -> c_int;
        let (mut current, mut pending) = (0, 0);
        // SAFETY: type as in nvml.h; two integers are written.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetMigMode")?;
            answered(call(device.0, &raw mut current, &raw mut pending))?;
        }
        Ok(current)
    }

    /// `nvmlDeviceGetMemoryInfo`: total, free and used bytes.
    pub(crate) fn device_memory(&self, device: Device) -> Answer<[u64; 3]> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut [u64; 3]) -> c_int;
        let mut memory = [0; 3];
        // SAFETY: type as in nvml.h, where nvmlMemory_t is three 64-bit numbers.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetMemoryInfo")?;
            answered(call(device.0, &raw mut memory))?;
        }
        Ok(memory)
    }

    /// `nvmlDeviceGetAddressingMode`: 0 none, 1 HMM, 2 ATS.
    pub(crate) fn device_addressing(&self, device: Device) -> Answer<u32> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut [u32; 2]) -> c_int;
        let mut mode = [ADDRESSING_MODE_V1, 0];
        // SAFETY: type as in nvml.h, where the structure is version and value.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetAddressingMode")?;
            answered(call(device.0, &raw mut mode))?;
        }
        Ok(mode[1])
    }

    /// `nvmlDeviceGetGpuFabricInfoV`.
    pub(crate) fn device_fabric(&self, device: Device) -> Answer<FabricInfo> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut RawFabricInfo) -> c_int;
        let mut info = RawFabricInfo { version: FABRIC_INFO_V2, ..RawFabricInfo::default() };
        // SAFETY: type as in nvml.h; the version says how long the structure is.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetGpuFabricInfoV")?;
            answered(call(device.0, &raw mut info))?;
        }
        Ok(FabricInfo { state: info.state, status: info.status, health: info.health_mask })
    }

    /// The recovery action, by `nvmlDeviceGetFieldValues`: 0 none, 1 reset, 2 reboot, ….
    pub(crate) fn device_recovery(&self, device: Device) -> Answer<u64> {
        let [action] = self.device_fields(device, [FIELD_RECOVERY_ACTION])?;
        action
    }

    /// `nvmlDeviceGetFieldValues`: whole numbers of these fields, each with its own answer.
    pub(crate) fn device_fields<const COUNT: usize>(
        &self,
        device: Device,
        fields: [u32; COUNT],
    ) -> Answer<[Answer<u64>; COUNT]> {
        type Call = unsafe extern "C" fn(*mut c_void, c_int, *mut RawFieldValue) -> c_int;
        let mut values =
            fields.map(|field_id| RawFieldValue { field_id, ..RawFieldValue::default() });
        let count = c_int::try_from(COUNT).unwrap_or(0);
        // SAFETY: type as in nvml.h; as many fields are asked for as are given.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetFieldValues")?;
            answered(call(device.0, count, values.as_mut_ptr()))?;
        }
        Ok(values.map(|field| field.number()))
    }
}

impl RawFieldValue {
    /// The whole number in the union, by `nvmlValueType_t`.
    fn number(&self) -> Answer<u64> {
        const UNSIGNED_INT: c_uint = 1;
        match c_int::try_from(self.nvml_return) {
            // An unsigned int fills only the lower half of the union.
            Ok(0) if self.value_type == UNSIGNED_INT => Ok(self.value & u64::from(u32::MAX)),
            Ok(0) => Ok(self.value),
            Ok(code) => Err(Refusal::Code(code)),
            Err(_) => Err(Refusal::Code(c_int::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_their_versions_say() {
        assert_eq!(size_of::<RawPciInfo>(), 68);
        assert_eq!(size_of::<RawFabricInfo>(), (FABRIC_INFO_V2 & 0xffff) as usize);
        assert_eq!(size_of::<[u32; 2]>(), (ADDRESSING_MODE_V1 & 0xffff) as usize);
        assert_eq!(size_of::<RawFieldValue>(), 40);
    }
}
