//! What building and loading the kernel module said: modprobe, DKMS, make, the installer.

/// Why the kernel did not take a module, by what modprobe or insmod print after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// `Key was rejected by service` (EKEYREJECTED): signed, by a key that the kernel does not
    /// trust.
    KeyRejected,
    /// `Required key not available` (ENOKEY): not signed, or by a key that the kernel does not
    /// have.
    KeyMissing,
    /// `Exec format error`, `Invalid module format`: built for another kernel or compiler.
    WrongFormat,
    /// `No such device` (ENODEV): the module found no device that it could take.
    NoDevice,
    /// `Operation not permitted` (EPERM): lockdown, a container, or no root.
    NotPermitted,
    /// EACCES: root may load modules, so that a security module denied it.
    PolicyDenied,
    /// `Unknown symbol in module`: built against another kernel or another nvidia module.
    UnknownSymbol,
    /// Any other reason.
    Other,
}

/// What stopped the compiler or the linker of the kernel's build system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BuildFault {
    /// An interface of the kernel that the driver's source does not fit: the compiler's message.
    Interface(String),
    /// A header file that is not there, such as `linux/version.h`.
    Header(String),
    /// A flag of the kernel's that this compiler does not know.
    CompilerFlag(String),
    /// The build refused another compiler than the kernel's.
    CompilerCheck,
    /// A compiler that is not installed, such as `gcc-12`.
    CompilerMissing(String),
    /// A symbol that only modules under the GPL may use.
    LicensedSymbol(String),
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ModuleMessage {
    /// No such module: for the kernel whose folder was searched, or for the running one.
    NotFound {
        /// The module, with underscores.
        module: String,
        /// Release of the kernel, if the message names its folder.
        kernel: Option<String>,
    },
    /// The kernel refused to load it.
    Refused {
        /// The module, with underscores.
        module: String,
        /// Why.
        refusal: Refusal,
    },
    /// The kernel refused the key of somebody else's module, or of one that is not named.
    OtherKeyRefused {
        /// The module as written; empty when none is named.
        module: String,
    },
    /// Building it failed.
    BuildFailed {
        /// The release of the kernel that it was built for, if the message names it.
        kernel: Option<String>,
        /// True when the message names nvidia; DKMS's own error line names no module.
        of_nvidia: bool,
    },
    /// The headers of a kernel, which a build needs, are not there.
    HeadersMissing {
        /// Release of the kernel, if the message names it.
        kernel: Option<String>,
    },
    /// What stopped the build.
    BuildFault {
        /// The fault.
        fault: BuildFault,
        /// True when the line names a file of the driver's source.
        of_nvidia: bool,
    },
    /// The kernel was built by another compiler than the one in use. A mere warning by itself.
    CompilerDiffers,
}

/// A row of `dkms status`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DkmsRow {
    /// The package's name, such as `nvidia` or `nvidia-current`.
    pub name: String,
    /// Its version as written.
    pub version: String,
    /// Release of the kernel; `None` for a package that was only added.
    pub kernel: Option<String>,
    /// `added`, `built`, `installed` or `broken`.
    pub state: String,
}
