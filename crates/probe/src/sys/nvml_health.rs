//! The management library's word on a GPU's condition: memory, link, performance, licence,
//! confidential computing, MIG devices. Types and layouts are those of nvml.h 13.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use super::library::{Answer, Refusal, answered};
use super::nvml::{Device, Nvml};

/// `NVML_MEMORY_ERROR_TYPE_UNCORRECTED`.
const UNCORRECTED: c_uint = 1;
/// `NVML_GRID_LICENSE_FEATURE_MAX_COUNT`.
const FEATURES: usize = 3;

/// `nvmlGridLicenseExpiry_t`.
#[repr(C)]
struct RawExpiry {
    year: u32,
    month_day_hour_minute_second: [u16; 5],
    status: u8,
}

/// `nvmlGridLicensableFeature_t`.
#[repr(C)]
struct RawFeature {
    code: c_uint,
    state: c_uint,
    license_info: [u8; 128],
    product_name: [u8; 128],
    enabled: c_uint,
    expiry: RawExpiry,
}

/// `nvmlGridLicensableFeatures_t`.
#[repr(C)]
struct RawFeatures {
    supported: c_int,
    count: c_uint,
    features: [RawFeature; FEATURES],
}

/// Replaced rows of a GPU's memory, from `nvmlDeviceGetRemappedRows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemappedRows {
    /// For errors that could be corrected.
    pub(crate) correctable: u32,
    /// For errors that could not.
    pub(crate) uncorrectable: u32,
    /// One waits for the next reset.
    pub(crate) pending: bool,
    /// One could not be replaced.
    pub(crate) failed: bool,
}

impl Nvml {
    /// `nvmlDeviceGetRemappedRows`, from Ampere on.
    pub(crate) fn remapped_rows(&self, device: Device) -> Answer<RemappedRows> {
        type Call = unsafe extern "C" fn(
            *mut c_void,
            *mut c_uint,
            *mut c_uint,
            *mut c_uint,
            *mut c_uint,
        ) -> c_int;
        let mut got = [0; 4];
        let [correctable, uncorrectable, pending, failed] = &mut got;
        // SAFETY: type as in nvml.h; four integers are written.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetRemappedRows")?;
            answered(call(device.0, correctable, uncorrectable, pending, failed))?;
        }
        let [correctable, uncorrectable, pending, failed] = got;
        Ok(RemappedRows { correctable, uncorrectable, pending: pending != 0, failed: failed != 0 })
    }

    /// `nvmlDeviceGetTotalEccErrors`: errors that could not be corrected, since the driver was loaded
    /// (counter 0) or over the GPU's life (1).
    pub(crate) fn uncorrected_errors(&self, device: Device, counter: u32) -> Answer<u64> {
        type Call = unsafe extern "C" fn(*mut c_void, c_uint, c_uint, *mut c_ulonglong) -> c_int;
        let mut count = 0;
        // SAFETY: type as in nvml.h; one number is written.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetTotalEccErrors")?;
            answered(call(device.0, UNCORRECTED, counter, &raw mut count))?;
        }
        Ok(count)
    }

    /// `nvmlDeviceGetUtilizationRates`: of the GPU and of its memory, in percent.
    pub(crate) fn utilization(&self, device: Device) -> Answer<[u32; 2]> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut [c_uint; 2]) -> c_int;
        let mut rates = [0; 2];
        // SAFETY: type as in nvml.h, where nvmlUtilization_t is two integers.
        unsafe {
            let call = self.library.function::<Call>(c"nvmlDeviceGetUtilizationRates")?;
            answered(call(device.0, &raw mut rates))?;
        }
        Ok(rates)
    }

    /// `nvmlDeviceGetGridLicensableFeatures_v4`: whether the vGPU has its licence; `None` where the
    /// GPU takes none.
    pub(crate) fn is_licensed(&self, device: Device) -> Answer<Option<bool>> {
        type Call = unsafe extern "C" fn(*mut c_void, *mut RawFeatures) -> c_int;
        // SAFETY: type and layout as in nvml.h; the structure is plain data, valid as zeros.
        let features = unsafe {
            let mut features: RawFeatures = std::mem::zeroed();
            let call = self.library.function::<Call>(c"nvmlDeviceGetGridLicensableFeatures_v4")?;
            answered(call(device.0, &raw mut features))?;
            features
        };
        let count = usize::try_from(features.count).unwrap_or(0);
        let known = features.features.iter().take(count);
        let on = known.clone().filter(|feature| feature.enabled != 0);
        let licensed = on.clone().any(|feature| feature.state != 0);
        Ok((features.supported != 0 && on.count() > 0).then_some(licensed))
    }

    /// `nvmlSystemGetConfComputeState`: environment, feature, tools mode; the feature is 1 when on.
    pub(crate) fn confidential_state(&self) -> Answer<[u32; 3]> {
        let mut state = [0; 3];
        // SAFETY: type as in nvml.h, where the structure is three integers.
        unsafe {
            let call = self.library.function::<unsafe extern "C" fn(*mut [c_uint; 3]) -> c_int>(
                c"nvmlSystemGetConfComputeState",
            )?;
            answered(call(&raw mut state))?;
        }
        Ok(state)
    }

    /// `nvmlSystemGetConfComputeGpusReadyState`: 1 when the GPUs take work.
    pub(crate) fn confidential_ready(&self) -> Answer<u32> {
        let mut ready = 0;
        // SAFETY: type as in nvml.h; one integer is written.
        unsafe {
            let call = self.library.function::<unsafe extern "C" fn(*mut c_uint) -> c_int>(
                c"nvmlSystemGetConfComputeGpusReadyState",
            )?;
            answered(call(&raw mut ready))?;
        }
        Ok(ready)
    }

    /// UUIDs of the MIG devices of a GPU in MIG mode: `nvmlDeviceGetMaxMigDeviceCount`, then each
    /// by `nvmlDeviceGetMigDeviceHandleByIndex`. Places without a device are passed over.
    pub(crate) fn mig_devices(&self, device: Device) -> Answer<Vec<String>> {
        type ByIndex = unsafe extern "C" fn(*mut c_void, c_uint, *mut *mut c_void) -> c_int;
        /// `NVML_ERROR_NOT_FOUND`.
        const NOT_FOUND: c_int = 6;
        let places = self.device_number(c"nvmlDeviceGetMaxMigDeviceCount", device)?;
        let mut found = Vec::new();
        for index in 0..places.min(64) {
            let mut handle = std::ptr::null_mut();
            // SAFETY: type as in nvml.h; one pointer is written.
            let code = unsafe {
                let call =
                    self.library.function::<ByIndex>(c"nvmlDeviceGetMigDeviceHandleByIndex")?;
                call(device.0, index, &raw mut handle)
            };
            match code {
                0 => found.push(self.device_text(c"nvmlDeviceGetUUID", Device(handle))?),
                NOT_FOUND => {}
                code => return Err(Refusal::Code(code)),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_the_header_makes_them() {
        assert_eq!(size_of::<RawExpiry>(), 16);
        assert_eq!(size_of::<RawFeature>(), 284);
        assert_eq!(size_of::<RawFeatures>(), 860);
    }
}
