//! Container engines: what was asked of them.

use crate::model::Facts;
use crate::model::host::ContainerKind;
use crate::observed::{Observed, Origin};

/// Whether the words of an engine's command line ask for GPUs.
pub(crate) fn request(words: &[String], origin: Origin, facts: &mut Facts) {
    let engine = words.first().map_or("", String::as_str).rsplit('/').next().unwrap_or("");
    let kind = match engine {
        "docker" | "nvidia-docker" => ContainerKind::Docker,
        "podman" => ContainerKind::Podman,
        "lxc-attach" | "pct" | "lxc" | "incus" => ContainerKind::Lxc,
        "kubectl" | "oc" => ContainerKind::Kubernetes,
        _ => ContainerKind::Other,
    };
    facts.host.container.or_better(Observed::seen(kind, origin.clone()));
    if !matches!(kind, ContainerKind::Docker | ContainerKind::Podman) {
        return;
    }
    if words.get(1).map(String::as_str) != Some("run") {
        return;
    }
    facts.sandbox.started_with = Observed::seen(words.join(" "), origin.clone());
    let runtime = words.windows(2).any(|pair| pair[0] == "--runtime" && pair[1] == "nvidia");
    // The wrapper of that name asks for every GPU by itself.
    let asks = runtime
        || engine == "nvidia-docker"
        || words.iter().any(|word| {
            word.starts_with("--gpus")
                || word.contains("nvidia.com/gpu")
                || word.starts_with("/dev/nvidia")
                || word.contains("=/dev/nvidia")
                || word.contains("NVIDIA_VISIBLE_DEVICES=")
                || word == "--runtime=nvidia"
                || word == "--privileged"
                // Given to the virtual machine in which a runtime such as Kata starts it.
                || word.contains("/dev/vfio")
        });
    facts.sandbox.gpu_requested = Observed::seen(asks, origin);
}
