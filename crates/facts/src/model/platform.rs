//! The machine around the GPU: guests and their hypervisors, confidential computing, vGPU, and
//! handing GPUs over.

use crate::observed::{Observed, Seen};
use crate::version::DriverVersion;

/// What a line says of a vGPU licence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LicenseWord {
    /// It is there.
    Licensed,
    /// It is not there.
    Unlicensed,
    /// It was asked for and refused, or could not be asked for.
    Refused,
}

/// On which side of a vGPU the input stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VgpuSide {
    /// The guest, which has a virtual GPU.
    Guest,
    /// The host, whose manager makes them.
    Host,
    /// vGPU is spoken of, and the side is not told.
    Either,
}

/// The platform.
#[derive(Debug, Clone, Default)]
pub struct Platform {
    /// The hypervisor that a report speaks of (`kvm`, `vmware`, `microsoft`, or `a hypervisor`)
    /// when it tells of a guest; a reading of the machine stands in [`super::Host::hypervisor`].
    pub guest_told: Vec<Seen<String>>,
    /// Confidential Computing is on, as `nvidia-smi conf-compute` shows it.
    pub cc_on: Observed<bool>,
    /// The ready state of Confidential Computing, each time it was shown.
    pub cc_ready: Vec<Seen<bool>>,
    /// Lines that speak of Confidential Computing.
    pub cc_told: Vec<Seen<String>>,
    /// Statements that CUDA works once the GPU is declared ready.
    pub cc_cured: Vec<Seen<String>>,
    /// Lines that show or speak of a vGPU.
    pub vgpu: Vec<Seen<VgpuSide>>,
    /// What is shown or said of the vGPU's licence, in order.
    pub licenses: Vec<Seen<(LicenseWord, String)>>,
    /// Lines in which host and guest of a vGPU refuse each other.
    pub vgpu_refusals: Vec<Seen<String>>,
    /// Version of the vGPU manager on the host, as its log tells it.
    pub vgpu_manager: Observed<DriverVersion>,
    /// Version of the guest's driver, as the manager's log tells it.
    pub vgpu_guest: Observed<DriverVersion>,
    /// Statements that taking a GPU away from its driver does not end.
    pub unbind_told: Vec<Seen<String>>,
    /// Statements that a GPU is bound to vfio-pci.
    pub vfio_told: Vec<Seen<String>>,
}
