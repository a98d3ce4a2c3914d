//! PyTorch's collect_env in its layouts, up to the facts.

use crate::support::command;
use facts::Facts;
use facts::extract::collect_env;
use facts::parse::collect_env::parse;
use facts::version::CudaVersion;

const H200: &str = include_str!("../data/torch-collect-env.h200-x2.txt");

/// The layout of 2020, with conda.
const OLD: &str = "Collecting environment information...
PyTorch version: 1.5.0
Is debug build: No
CUDA used to build PyTorch: 10.2

OS: Ubuntu 18.04.4 LTS
GCC version: (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0
CMake version: Could not collect

Python version: 3.7
Is CUDA available: No
CUDA runtime version: 10.1.243
GPU models and configuration: GPU 0: GeForce RTX 2080 Ti
Nvidia driver version: 440.64.00
cuDNN version: Could not collect

Versions of relevant libraries:
[pip3] numpy==1.18.1
[pip3] torch==1.5.0
[conda] cudatoolkit               10.2.89              hfd86e86_1
[conda] pytorch                   1.5.0           py3.7_cuda10.2.89_cudnn7.6.5_0    pytorch
[conda] Could not collect
";

/// vLLM's layout, with padded keys and the environment.
const VLLM: &str = "==============================
        System Info
==============================
OS                           : Ubuntu 22.04.5 LTS (x86_64)

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
CUDA used to build PyTorch   : 12.6

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : False
CUDA runtime version         : Could not collect
GPU models and configuration :
GPU 0: NVIDIA H100 80GB HBM3
  MIG 1g.10gb     Device  0:
Nvidia driver version        : 550.54.15

==============================
     Environment Variables
==============================
NVIDIA_VISIBLE_DEVICES=all
CUDA_VISIBLE_DEVICES=
LD_LIBRARY_PATH=/usr/local/cuda/compat:/usr/local/cuda/lib64
HOME=/root
";

#[test]
fn the_recorded_output_fills_the_facts() {
    let mut facts = Facts::default();
    collect_env::apply(&command("python -m torch.utils.collect_env", H200), &mut facts);
    let torch = facts.framework.torch.value().unwrap();
    assert_eq!(torch.version.as_deref(), Some("2.11.0+cu130"));
    assert_eq!(torch.cuda, Some(CudaVersion::parse("13.0")));
    assert_eq!(facts.framework.torch_available.value(), Some(&true));
    assert_eq!(facts.framework.nvcc.value().copied(), CudaVersion::parse("13.0"));
    assert_eq!(
        facts.nvml.driver_version.value().map(ToString::to_string).as_deref(),
        Some("580.159.04")
    );
    assert_eq!(facts.host.os.value().map(String::as_str), Some("Ubuntu 24.04.3 LTS (x86_64)"));
    assert_eq!(facts.host.kernel.value().map(ToString::to_string).as_deref(), Some("6.18.44"));
    assert_eq!(facts.host.hypervisor.value().map(String::as_str), Some("kvm"));
    let indices: Vec<_> = facts.nvml.gpus.iter().map(|gpu| gpu.value.index).collect();
    assert_eq!(indices, [Some(0), Some(1)]);
    let package = |name: &str| facts.framework.packages.iter().find(|seen| seen.value.name == name);
    assert_eq!(package("nvidia-cuda-runtime").unwrap().value.cuda, CudaVersion::parse("13.0"));
    assert_eq!(package("torch").unwrap().value.version, "2.11.0");
    assert!(package("torch").unwrap().origin.excerpt.contains("[pip3] torch==2.11.0"));
}

#[test]
fn the_old_layout() {
    let env = parse(OLD).value;
    assert!(!env.available.unwrap().value);
    assert_eq!(env.gpus[0].value, (Some(0), "GeForce RTX 2080 Ti".to_owned()));
    assert_eq!(env.driver.unwrap().value.to_string(), "440.64.00");
    let names: Vec<_> = env.packages.iter().map(|package| package.value.name.as_str()).collect();
    assert_eq!(names, ["numpy", "torch", "cudatoolkit", "pytorch"]);
    assert_eq!(env.packages[3].value.cuda, CudaVersion::parse("10.2"));
}

#[test]
fn the_layout_of_vllm() {
    let env = parse(VLLM).value;
    assert_eq!(env.torch.unwrap().value.version.as_deref(), Some("2.7.0+cu126"));
    assert!(!env.available.unwrap().value);
    assert_eq!(env.nvcc, None);
    assert_eq!(env.gpus.len(), 1);
    assert_eq!(env.driver.unwrap().line, 20);
    let names: Vec<_> = env.env.iter().map(|entry| entry.value.0.as_str()).collect();
    assert_eq!(names, ["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"]);
}

#[test]
fn a_build_without_cuda_says_so() {
    let text =
        "PyTorch version: 2.4.0+cpu\nCUDA used to build PyTorch: None\nIs CUDA available: False\n";
    let torch = parse(text).value.torch.unwrap().value;
    assert_eq!(torch.cuda, Some(None));
}

#[test]
fn other_text_leaves_the_facts_alone() {
    let mut facts = Facts::default();
    collect_env::apply(&command("cat notes", "OS: something\nPATH=/bin\n"), &mut facts);
    assert!(facts.host.os.is_unknown() && !facts.mentions_gpu);
}
