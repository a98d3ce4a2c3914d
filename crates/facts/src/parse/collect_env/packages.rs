//! The lists of packages at the end: `[pip3] torch==2.11.0`, `[conda] pytorch 2.1.0 py3.11_cuda12.1…`.

use crate::model::framework::Package;
use crate::version::CudaVersion;

/// A line of the lists.
pub(super) fn line(line: &str) -> Option<Package> {
    let (tag, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rest = rest.trim();
    match tag {
        "pip3" | "pip" => {
            let (name, version) = rest.split_once("==")?;
            Some(package(name, version, None))
        }
        "conda" => {
            let mut words = rest.split_ascii_whitespace();
            let (name, version) = (words.next()?, words.next()?);
            // `Could not collect` is a remark; a version begins with a digit.
            let is_version = version.starts_with(|ch: char| ch.is_ascii_digit());
            is_version.then(|| package(name, version, words.next()))
        }
        _ => None,
    }
}

fn package(name: &str, version: &str, build: Option<&str>) -> Package {
    let cuda = cuda_of_version(version)
        .or_else(|| build.and_then(cuda_of_build))
        .or_else(|| cuda_of_runtime(name, version));
    Package { name: name.to_owned(), version: version.to_owned(), cuda, python: None }
}

/// `2.10.0+cu128`.
fn cuda_of_version(version: &str) -> Option<CudaVersion> {
    let (_, local) = version.split_once("+cu")?;
    let digits: String = local.chars().take_while(char::is_ascii_digit).collect();
    CudaVersion::from_tag(&digits)
}

/// `py3.11_cuda12.1_cudnn8.9.2_0`.
fn cuda_of_build(build: &str) -> Option<CudaVersion> {
    let (_, rest) = build.split_once("cuda")?;
    let version = rest.split('_').next()?;
    version.contains('.').then(|| CudaVersion::parse(version))?
}

/// The runtime's wheels have CUDA's own version.
fn cuda_of_runtime(name: &str, version: &str) -> Option<CudaVersion> {
    let runtime = name.starts_with("nvidia-cuda-runtime") || name == "cudatoolkit";
    runtime.then(|| CudaVersion::parse(version))?
}
