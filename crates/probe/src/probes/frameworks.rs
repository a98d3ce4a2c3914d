//! Frameworks, from the files that installing them leaves. Nothing is imported: an
//! import would initialize CUDA and take seconds.

use super::Options;
use super::pythons::site_folders;
use super::reader::{self, Reader};
use crate::child::report::Report;

/// Packages whose version or needs matter, as their folders spell them.
const PACKAGES: [&str; 27] = [
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "jax",
    "jaxlib",
    "vllm",
    "sglang",
    "sgl_kernel",
    "flash_attn",
    "flash_attn_3",
    "flashinfer",
    "flashinfer_python",
    "xformers",
    "bitsandbytes",
    "tensorflow",
    "tensorrt",
    "tensorrt_llm",
    "onnxruntime_gpu",
    "deepspeed",
    "llama_cpp_python",
    "ctranslate2",
    "cuda_python",
    "cuda_bindings",
    "nvshmem",
    "numba_cuda",
    "apex",
];
/// Beginnings of the names of packages that matter too.
const FAMILIES: [&str; 5] = ["nvidia_", "cupy", "jax_cuda", "cudf", "paddlepaddle"];
/// Most packages that are described.
const PACKAGES_LIMIT: usize = 300;
/// The description that follows a package's metadata is long and tells nothing.
const METADATA_LIMIT_BYTES: usize = 64 * 1024;

/// Tells them.
pub(super) fn run(report: &mut Report, options: &Options) {
    let reader = Reader::new(&options.root);
    compiler(report, &reader);
    let mut left = PACKAGES_LIMIT;
    for site in site_folders(&reader) {
        report.note("python-site", site.as_str());
        packages(report, &reader, &site, &mut left);
    }
}

fn packages(report: &mut Report, reader: &Reader, site: &str, left: &mut usize) {
    for name in reader.names(site) {
        let Some(package) = package_of(&name).filter(|package| matters(package)) else { continue };
        if *left == 0 {
            return;
        }
        *left -= 1;
        metadata(report, reader, &format!("{site}/{name}/METADATA"));
        if package == "torch" {
            reader.file(report, &format!("{site}/torch/version.py"), METADATA_LIMIT_BYTES);
        }
    }
}

/// The package of a folder `NAME-VERSION.dist-info`, in lower case.
fn package_of(folder: &str) -> Option<String> {
    let (name, _) = folder.strip_suffix(".dist-info")?.split_once('-')?;
    Some(name.to_lowercase().replace('.', "_"))
}

fn matters(package: &str) -> bool {
    PACKAGES.contains(&package) || FAMILIES.iter().any(|family| package.starts_with(family))
}

/// Reports name, version and needs; the rest of the file is prose.
fn metadata(report: &mut Report, reader: &Reader, path: &str) {
    let Some(text) = reader.text(path) else {
        reader.file(report, path, METADATA_LIMIT_BYTES);
        return;
    };
    let head = text.lines().take_while(|line| !line.trim().is_empty());
    let telling = ["Name:", "Version:", "Requires-Dist:", "Requires-Python:"];
    let lines = head.filter(|line| telling.iter().any(|key| line.starts_with(key)));
    let mut kept = String::new();
    for line in lines {
        if kept.len() + line.len() > METADATA_LIMIT_BYTES {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    report.item(path, kept.as_bytes(), false);
}

/// Which compiler is first on PATH; the version files of toolkits are rows of the group.
fn compiler(report: &mut Report, reader: &Reader) {
    let path = std::env::var_os("PATH").filter(|_| reader.is_live()).unwrap_or_default();
    let compiler = std::env::split_paths(&path)
        .map(|folder| folder.join("nvcc"))
        .find(|candidate| reader::open(candidate).is_ok());
    if let Some(compiler) = compiler {
        let real = std::fs::canonicalize(&compiler).unwrap_or(compiler);
        report.note("nvcc-on-path", real.to_string_lossy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_this_field_are_known_by_their_folders() {
        let known = |folder| package_of(folder).is_some_and(|package| matters(&package));
        assert!(known("torch-2.10.0+cu128.dist-info"));
        assert!(known("nvidia_cuda_runtime_cu12-12.8.90.dist-info"));
        assert!(known("cupy_cuda12x-13.0.dist-info"));
        assert!(!known("torch") && !known("requests-2.0.dist-info"));
    }
}
