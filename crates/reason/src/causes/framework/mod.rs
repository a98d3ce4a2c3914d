//! Causes in frameworks and toolkits, and the questions that they share.

use facts::version::CudaVersion;
use facts::{Facts, Observed, Seen};

pub(super) mod cpu_build;
pub(super) mod driver_too_old;
pub(super) mod lacks_arch;
pub(super) mod ptx_too_new;
pub(super) mod toolkit_mismatch;

/// The CUDA version that PyTorch is built for, or else another package, with whose it is.
fn framework_cuda(facts: &Facts) -> Option<(String, Seen<CudaVersion>)> {
    if let Observed::Seen(torch) = &facts.framework.torch
        && let Some(Some(cuda)) = torch.value.cuda
    {
        return Some(("torch".to_owned(), Seen::new(cuda, torch.origin.clone())));
    }
    facts.framework.packages.iter().find_map(|package| {
        let cuda = package.value.cuda?;
        Some((package.value.name.clone(), Seen::new(cuda, package.origin.clone())))
    })
}

/// The name of a library's file.
fn file_name(library: &str) -> &str {
    library.rsplit('/').next().unwrap_or(library)
}

/// Whether a library is one of the driver's own.
fn is_drivers(library: &str) -> bool {
    let file = file_name(library);
    file.starts_with("libcuda.so") || file.starts_with("libnvidia-")
}

/// The failure of cuInit itself, which happens before any runtime or framework code runs.
fn beneath(facts: &Facts) -> Option<(i64, &facts::model::cuda::Trial)> {
    crate::readings::init_failure(facts)
        .filter(|(number, _)| *number != crate::readings::code::INSUFFICIENT_DRIVER)
}
