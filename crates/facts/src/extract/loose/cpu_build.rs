//! Frameworks that say that they were built without CUDA.

use super::Line;
use super::pattern::{matches, pattern};
use crate::model::Facts;
use crate::model::framework::FrameworkMessage;
use crate::observed::Observed;

pattern! {
    /// The words of PyTorch stand in another reader; these are of the others: jaxlib, CTranslate2,
    /// XGBoost, LightGBM, OpenCV, DGL, bitsandbytes, llama.cpp, ONNX Runtime, Numba's kind.
    SAYS = r"(?i)\bCUDA-enabled jaxlib is not installed|\bwas not compiled with CUDA support|\b(?:is |was )?not (?:compiled|built) with (?:CUDA|GPU)(?: support)?\b|\b(?:compiled|built) without (?:CUDA|GPU)(?: support)?\b|\bnot compiled with GPU offload support|\bcompiled without support for GPU offload|\bDevice API cuda is not enabled|\bCUDA Tree Learner was not enabled in this build|\bGPU Tree Learner was not enabled in this build|\b'?CUDAExecutionProvider'? is not in available provider names|\bno CUDA support in this (?:build|binary)"
}
pattern! { NONE_FOUND = r"\bNo GPU/TPU found, falling back to CPU" }
pattern! {
    /// How TensorFlow and JAX name a GPU that they list.
    LISTS = r"/physical_device:GPU:\d|\bCudaDevice\(id=\d|\bStreamExecutorGpuDevice\(id=\d"
}
pattern! {
    /// A package whose name or build string tells: `pytorch 1.10.0 py3.8_cpu_0`, `tensorflow-cpu`.
    PACKAGE = r"\bpy(?:torch|torch-mutex)?\b.{0,20}\s\d[\w.]*\s+\S*py\d\S*_cpu_\S*|\bpytorch-mutex\s+\S+\s+cpu\b|\bcpuonly\s+\d|\btensorflow[-_]cpu\s+\d"
}

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if matches(&NONE_FOUND, line.text) {
        let none = FrameworkMessage::NoAccelerator;
        if !facts.framework.messages.iter().any(|(message, _)| *message == none) {
            facts.framework.messages.push((none, line.origin()));
        }
    }
    if matches(&LISTS, line.text) {
        facts.framework.gpu_listed.or_better(Observed::seen((), line.origin()));
    }
    let lower =
        line.text.contains("torch not compiled") || line.text.contains("Torch not compiled");
    if lower || !(matches(&SAYS, line.text) || matches(&PACKAGE, line.text)) {
        return;
    }
    let known = facts
        .framework
        .messages
        .iter()
        .any(|(message, _)| *message == FrameworkMessage::NotCompiledWithCuda);
    if !known {
        facts.mentions_gpu = true;
        facts.framework.messages.push((FrameworkMessage::NotCompiledWithCuda, line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines_of;

    #[test]
    fn builds_that_say_so() {
        for line in [
            "an NVIDIA GPU may be present, but a CUDA-enabled jaxlib is not installed.",
            "ValueError: This CTranslate2 package was not compiled with CUDA support",
            "pytorch   1.4.0   py3.7_cpu_0  [cpuonly]  pytorch",
            "CUDA Tree Learner was not enabled in this build.",
        ] {
            assert_eq!(lines_of(line).framework.messages.len(), 1, "{line}");
        }
        assert!(
            lines_of("pytorch 2.3.0 py3.11_cuda12.1_cudnn8.9.2_0 pytorch")
                .framework
                .messages
                .is_empty()
        );
    }
}
