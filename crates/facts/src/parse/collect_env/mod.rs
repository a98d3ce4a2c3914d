//! The output of `python -m torch.utils.collect_env`, also in the older layouts and in vLLM's
//! longer one.

mod packages;

use super::{At, Parsed, numbered};
use crate::model::framework::{Package, Torch};
use crate::version::{CudaVersion, DriverVersion};

/// What the output tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectEnv {
    /// PyTorch's version and the CUDA it was built with.
    pub torch: Option<At<Torch>>,
    /// `Is CUDA available`.
    pub available: Option<At<bool>>,
    /// `CUDA runtime version`: the release of the nvcc on PATH, and not of any runtime.
    pub nvcc: Option<At<CudaVersion>>,
    /// Operating system.
    pub os: Option<At<String>>,
    /// Kernel release, cut from the Python platform.
    pub kernel: Option<At<String>>,
    /// Hypervisor vendor, lower case, from lscpu's part.
    pub hypervisor: Option<At<String>>,
    /// GPUs: index, if shown, and name.
    pub gpus: Vec<At<(Option<u32>, String)>>,
    /// Driver version.
    pub driver: Option<At<DriverVersion>>,
    /// Packages that matter here.
    pub packages: Vec<At<Package>>,
    /// Environment variables (vLLM's layout has a section of them).
    pub env: Vec<At<(String, String)>>,
}

impl CollectEnv {
    /// True when the text is none of this.
    pub fn is_empty(&self) -> bool {
        self.torch.is_none() && self.available.is_none() && self.driver.is_none()
    }
}

/// Longest line that is looked at; the CPU's flags take about 2 KB.
const LINE_LIMIT: usize = 8192;
/// Most packages and variables that are kept.
const LIST_LIMIT: usize = 1024;

/// Reads the output.
pub fn parse(text: &str) -> Parsed<CollectEnv> {
    let mut reader = Reader::default();
    for (number, line) in numbered(text).filter(|(_, line)| line.len() <= LINE_LIMIT) {
        reader.line(number, line.trim());
    }
    reader.parsed
}

#[derive(Default)]
struct Reader {
    parsed: Parsed<CollectEnv>,
    /// True below `GPU models and configuration`, until the list ends.
    in_gpus: bool,
}

impl Reader {
    fn line(&mut self, number: u32, line: &str) {
        if self.in_gpus && self.gpu(number, line) {
            return;
        }
        if let Some(package) = packages::line(line) {
            if self.parsed.value.packages.len() < LIST_LIMIT {
                self.parsed.value.packages.push(At::new(number, package));
            }
            return;
        }
        // A value may hold the other mark, so the first one counts.
        match line.split_once([':', '=']) {
            Some((key, value)) if line.as_bytes().get(key.len()) == Some(&b':') => {
                self.field(number, key.trim_end(), value.trim());
            }
            Some((key, value)) => self.variable(number, key, value),
            None => {}
        }
    }

    fn field(&mut self, number: u32, key: &str, value: &str) {
        let env = &mut self.parsed.value;
        let text = || Some(At::new(number, value.to_owned()));
        match key {
            "PyTorch version" => self.torch(number).version = known(value).map(str::to_owned),
            "CUDA used to build PyTorch" => {
                // A CPU-only build says `None` or `Could not collect`.
                self.torch(number).cuda = Some(CudaVersion::parse(value));
            }
            "OS" => env.os = text(),
            "Python platform" => {
                env.kernel = kernel_of_platform(value).map(|kernel| At::new(number, kernel));
            }
            "Is CUDA available" => env.available = yes(value).map(|yes| At::new(number, yes)),
            "CUDA runtime version" => {
                env.nvcc = CudaVersion::parse(value).map(|version| At::new(number, version));
            }
            "GPU models and configuration" => {
                self.in_gpus = true;
                self.gpu(number, value);
            }
            "Nvidia driver version" => {
                env.driver = DriverVersion::parse(value).map(|version| At::new(number, version));
            }
            "Hypervisor vendor" => env.hypervisor = Some(At::new(number, value.to_lowercase())),
            _ => {}
        }
    }

    fn torch(&mut self, number: u32) -> &mut Torch {
        &mut self.parsed.value.torch.get_or_insert_with(|| At::new(number, Torch::default())).value
    }

    /// Reads a line of the list of GPUs. Returns whether it was one.
    fn gpu(&mut self, number: u32, line: &str) -> bool {
        let named = line.strip_prefix("GPU ").and_then(|rest| rest.split_once(": "));
        if let Some((index, name)) = named {
            // Old layouts append the UUID.
            let name = name.split(" (UUID").next().unwrap_or(name).trim();
            let entry = (index.parse().ok(), name.to_owned());
            if self.parsed.value.gpus.len() < LIST_LIMIT {
                self.parsed.value.gpus.push(At::new(number, entry));
            }
            return true;
        }
        let within = line.is_empty() && self.parsed.value.gpus.is_empty()
            || line.starts_with("MIG ")
            || line == "Could not collect";
        self.in_gpus = within;
        within
    }

    fn variable(&mut self, number: u32, name: &str, value: &str) {
        let plain = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        let ours = ["CUDA_", "NVIDIA_", "LD_", "NCCL_", "VLLM_", "PYTORCH_", "TORCH_"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        let env = &mut self.parsed.value.env;
        if plain && ours && env.len() < LIST_LIMIT {
            env.push(At::new(number, (name.to_owned(), value.to_owned())));
        }
    }
}

fn known(value: &str) -> Option<&str> {
    (!matches!(value, "" | "N/A" | "None" | "Could not collect")).then_some(value)
}

fn yes(value: &str) -> Option<bool> {
    match value {
        "True" | "Yes" => Some(true),
        "False" | "No" => Some(false),
        _ => None,
    }
}

/// `Linux-6.8.0-45-generic-x86_64-with-glibc2.39`: what stands between the system's name and the
/// machine's.
fn kernel_of_platform(value: &str) -> Option<String> {
    let rest = value.strip_prefix("Linux-")?;
    let end =
        ["-x86_64-", "-aarch64-", "-ppc64le-"].iter().find_map(|machine| rest.find(machine))?;
    rest.get(..end).map(str::to_owned)
}
