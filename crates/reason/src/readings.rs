//! Questions that several causes ask of the facts, each answered in one place.

use facts::model::cuda::{Stage, Trial, TrialResult};
use facts::model::experiment::{Change, Effect};
use facts::model::log::LogEvent;
use facts::model::node::{Node, NodeKind, NodeOpen};
use facts::model::nvml::NvmlResult;
use facts::version::{CudaVersion, DriverVersion};
use facts::{Errno, Facts, Observed, Origin, Seen};
use nvabi::pci_id::{self, Product};

/// Codes of cuda.h that this crate speaks of by name (cuda_results table).
pub mod code {
    /// CUDA_ERROR_OUT_OF_MEMORY
    pub const OUT_OF_MEMORY: i64 = 2;
    /// CUDA_ERROR_NOT_INITIALIZED
    pub const NOT_INITIALIZED: i64 = 3;
    /// CUDA_ERROR_STUB_LIBRARY
    pub const STUB_LIBRARY: i64 = 34;
    /// cudaErrorInsufficientDriver (runtime)
    pub const INSUFFICIENT_DRIVER: i64 = 35;
    /// CUDA_ERROR_DEVICE_UNAVAILABLE
    pub const DEVICE_UNAVAILABLE: i64 = 46;
    /// CUDA_ERROR_NO_DEVICE
    pub const NO_DEVICE: i64 = 100;
    /// CUDA_ERROR_INVALID_DEVICE
    pub const INVALID_DEVICE: i64 = 101;
    /// CUDA_ERROR_NO_BINARY_FOR_GPU
    pub const NO_BINARY_FOR_GPU: i64 = 209;
    /// CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    pub const UNSUPPORTED_PTX: i64 = 222;
    /// CUDA_ERROR_OPERATING_SYSTEM
    pub const OPERATING_SYSTEM: i64 = 304;
    /// CUDA_ERROR_SYSTEM_NOT_READY
    pub const SYSTEM_NOT_READY: i64 = 802;
    /// CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
    pub const DRIVER_MISMATCH: i64 = 803;
    /// CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
    pub const COMPAT_NOT_SUPPORTED: i64 = 804;
    /// CUDA_ERROR_UNKNOWN
    pub const UNKNOWN: i64 = 999;
    /// NVML_ERROR_NO_PERMISSION
    pub const NVML_NO_PERMISSION: i64 = 4;
    /// NVML_ERROR_DRIVER_NOT_LOADED
    pub const NVML_DRIVER_NOT_LOADED: i64 = 9;
    /// NVML_ERROR_LIBRARY_NOT_FOUND
    pub const NVML_LIBRARY_NOT_FOUND: i64 = 12;
    /// NVML_ERROR_GPU_IS_LOST
    pub const NVML_GPU_IS_LOST: i64 = 15;
    /// NVML_ERROR_RESET_REQUIRED
    pub const NVML_RESET_REQUIRED: i64 = 16;
    /// NVML_ERROR_OPERATING_SYSTEM
    pub const NVML_OPERATING_SYSTEM: i64 = 17;
    /// NVML_ERROR_LIB_RM_VERSION_MISMATCH
    pub const NVML_VERSION_MISMATCH: i64 = 18;
    /// NVML_ERROR_UNKNOWN
    pub const NVML_UNKNOWN: i64 = 999;
}

/// The first failure of cuInit itself (or of counting devices), with its code.
pub fn init_failure(facts: &Facts) -> Option<(i64, &Trial)> {
    facts
        .cuda
        .plain()
        .filter(|trial| matches!(trial.stage, Stage::Init | Stage::Version | Stage::Count))
        .find_map(|trial| Some((trial.failure_code()?, trial)))
}

/// The first failure of cuInit with this code.
pub fn init_failed_with(facts: &Facts, code: i64) -> Option<&Trial> {
    facts.cuda.init_failures(code).next()
}

/// The first trial in which cuInit did not return.
pub fn init_hang(facts: &Facts) -> Option<&Trial> {
    facts.cuda.hangs().find(|trial| trial.stage <= Stage::Init)
}

/// The first failure after cuInit: context, allocation, copy or kernel.
pub fn context_failure(facts: &Facts) -> Option<&Trial> {
    facts.cuda.plain().find(|trial| {
        trial.stage >= Stage::Device
            && matches!(trial.result, TrialResult::WrongResult | TrialResult::Code(1..))
    })
}

/// Where it was seen that cuInit works in a fresh process (or in one that nothing is said about).
pub fn cuda_works(facts: &Facts) -> Option<&Origin> {
    let trial = facts.cuda.plain().find(|trial| {
        trial.ok() && trial.stage >= Stage::Init && trial.fresh_process != Some(false)
    })?;
    Some(&trial.origin)
}

/// Where it was seen that NVML (or nvidia-smi) answers.
pub fn nvml_works(facts: &Facts) -> Option<Origin> {
    if let Some(origin) = facts.nvml.answers() {
        return Some(origin.clone());
    }
    facts.nvml.gpus.first().map(|gpu| gpu.origin.clone())
}

/// NVML's failure, with its code.
pub fn nvml_failure(facts: &Facts) -> Option<(i64, Origin)> {
    match &facts.nvml.init {
        Observed::Seen(Seen { value: NvmlResult::Code(code), origin }) if *code != 0 => {
            Some((*code, origin.clone()))
        }
        _ => None,
    }
}

/// NVML failed with this code.
pub fn nvml_failed_with(facts: &Facts, code: i64) -> Option<Origin> {
    nvml_failure(facts).filter(|(found, _)| *found == code).map(|(_, origin)| origin)
}

/// Where it was seen that the nvidia module is loaded and talks.
pub fn module_loaded(facts: &Facts) -> Option<Origin> {
    let own = facts.module.version().map(|version| version.origin);
    own.or_else(|| {
        facts
            .module
            .loaded("nvidia")
            .origin()
            .filter(|_| facts.module.loaded("nvidia").is_seen())
            .cloned()
    })
    .or_else(|| facts.nvml.driver_version.origin().cloned())
    .or_else(|| nvml_works(facts))
    .or_else(|| {
        let names = ["nvidia-frontend", "nvidia", "nvidiactl"];
        let major = names.iter().find_map(|name| facts.module.major(name).as_seen().cloned());
        major.map(|seen| seen.origin)
    })
}

/// Where it was seen that nvidia_uvm is registered.
pub fn uvm_registered(facts: &Facts) -> Option<Origin> {
    if let Observed::Seen(seen) = facts.module.major("nvidia-uvm") {
        return Some(seen.origin);
    }
    match facts.module.loaded("nvidia_uvm") {
        Observed::Seen(seen) => Some(seen.origin),
        _ => facts.module.uvm_disable_hmm.as_seen().map(|seen| seen.origin.clone()),
    }
}

/// Where the absence of nvidia_uvm was seen.
pub fn uvm_missing(facts: &Facts) -> Option<Origin> {
    let major = facts.module.major("nvidia-uvm");
    let loaded = facts.module.loaded("nvidia_uvm");
    major.absent().or_else(|| loaded.absent()).cloned()
}

/// The driver's version by the best source: the module itself, NVML, nvidia-smi's table, what a text
/// tells.
pub fn driver_version(facts: &Facts) -> Option<Seen<DriverVersion>> {
    let by_nvml = || facts.nvml.driver_version.as_seen().cloned();
    facts.module.version().or_else(by_nvml).or_else(|| facts.nvml.driver_told.as_seen().cloned())
}

/// The CUDA version that the driver supports: measured, shown by nvidia-smi, or by its branch.
pub fn driver_cuda(facts: &Facts) -> Option<Seen<CudaVersion>> {
    if let Some(seen) = facts.cuda.driver_api.as_seen().or(facts.nvml.cuda_version.as_seen()) {
        return Some(seen.clone());
    }
    let driver = driver_version(facts)?;
    let (major, minor) = nvabi::branch::cuda_version(driver.value.branch())?;
    Some(Seen::new(CudaVersion { major, minor }, driver.origin))
}

/// What a node's numbers must be, and where the kernel says so: `(major, minor)`.
pub fn expected_numbers(facts: &Facts, path: &str) -> Option<(u32, u32, Origin)> {
    let name = path.strip_prefix("/dev/")?;
    let (majors, minor): (&[&str], u32) = match name {
        "nvidiactl" => (&["nvidiactl", "nvidia-frontend", "nvidia"], 255),
        "nvidia-modeset" => (&["nvidia-modeset", "nvidia-frontend", "nvidia"], 254),
        "nvidia-uvm" => (&["nvidia-uvm"], 0),
        "nvidia-uvm-tools" => (&["nvidia-uvm"], 1),
        _ => {
            let number = name.strip_prefix("nvidia")?.parse().ok()?;
            (&["nvidia", "nvidia-frontend"], number)
        }
    };
    majors.iter().find_map(|major| {
        let seen = facts.module.major(major).as_seen().cloned()?;
        Some((seen.value, minor, seen.origin))
    })
}

/// The nodes that cuInit needs: the control node, the UVM node and one for each GPU that the
/// driver or the bus is known to have.
pub fn needed_nodes(facts: &Facts) -> Vec<String> {
    let mut paths = vec!["/dev/nvidiactl".to_owned(), "/dev/nvidia-uvm".to_owned()];
    let mut minors: Vec<u32> = facts.module.gpus.iter().filter_map(|gpu| gpu.value.minor).collect();
    minors.extend(facts.nvml.gpus.iter().filter_map(|gpu| gpu.value.minor));
    if minors.is_empty() {
        let on_bus = u32::try_from(facts.pci.gpus().count()).unwrap_or(0);
        let none = facts.pci.devices.absent().is_some();
        minors.extend(0..on_bus.max(u32::from(!none)));
    }
    minors.sort_unstable();
    minors.dedup();
    paths.extend(minors.into_iter().map(|minor| format!("/dev/nvidia{minor}")));
    paths
}

/// Nodes that stand there with numbers that the kernel did not give: node, expected numbers and
/// where the kernel says so.
pub fn misnumbered_nodes(facts: &Facts) -> Vec<(Seen<Node>, (u32, u32), Origin)> {
    facts
        .node
        .nodes
        .values()
        .filter_map(|node| {
            let node = node.as_seen()?;
            let (major, minor, origin) = expected_numbers(facts, &node.value.path)?;
            let right = node.value.kind == NodeKind::Char { major, minor };
            (!right).then(|| (node.clone(), (major, minor), origin))
        })
        .collect()
}

/// The first needed node whose open failed with one of these errnos.
pub fn open_failed(facts: &Facts, errnos: &[Errno]) -> Option<(String, Errno, Origin)> {
    facts.node.opens.iter().find_map(|(path, (open, origin))| match open {
        NodeOpen::Failed(errno) if errnos.contains(errno) => {
            Some((path.clone(), *errno, origin.clone()))
        }
        _ => None,
    })
}

/// Where it was seen that this node opens for reading and writing.
pub fn opens(facts: &Facts, path: &str) -> Option<Origin> {
    match facts.node.opens.get(path) {
        Some((NodeOpen::Opened, origin)) => Some(origin.clone()),
        _ => None,
    }
}

/// Where it was seen that every needed node that was tried opened; `None` when one failed, or
/// when none was tried.
pub fn all_nodes_open(facts: &Facts) -> Option<Origin> {
    let mut first = None;
    for path in needed_nodes(facts) {
        match facts.node.opens.get(&path) {
            Some((NodeOpen::Opened, origin)) => first = first.or_else(|| Some(origin.clone())),
            Some((NodeOpen::Failed(_) | NodeOpen::Hung | NodeOpen::NotTried(_), _)) | None => {
                return None;
            }
        }
    }
    first
}

/// A GPU's board: how it is called, and what is known of its chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// The product's name as the input or the table of PCI ids has it.
    pub name: String,
    /// Chip, architecture and compute capability.
    pub product: Product,
}

/// The boards of the GPUs at hand as far as they are known, with where each was seen. From PCI ids
/// first, else from the names that NVML tells, else from those of /proc/driver/nvidia, else from the
/// ids with which the driver's log names a GPU that it refuses.
pub fn boards(facts: &Facts) -> Vec<Seen<Board>> {
    let mut found: Vec<Seen<Board>> = Vec::new();
    if let Some(origin) = facts.pci.devices.origin() {
        let by_id = facts.pci.gpus().filter_map(|gpu| board_of_device(gpu.device?));
        found.extend(by_id.map(|board| Seen::new(board, origin.clone())));
    }
    if found.is_empty() {
        found.extend(facts.nvml.gpus.iter().filter_map(|gpu| {
            let by_name = gpu.value.name.as_deref().and_then(board_of_name);
            let board = by_name.or_else(|| board_of_device(gpu.value.device_id?))?;
            Some(Seen::new(board, gpu.origin.clone()))
        }));
    }
    if found.is_empty() {
        found.extend(facts.module.gpus.iter().filter_map(|gpu| {
            let board = board_of_name(gpu.value.model.as_deref()?)?;
            Some(Seen::new(board, gpu.origin.clone()))
        }));
    }
    if found.is_empty() {
        let named = facts.log.events.iter().filter_map(|event| {
            Some(Seen::new(board_of_pci_id(event.get("pci_id")?)?, event.origin.clone()))
        });
        found.extend(named);
        found.dedup_by(|a, b| a.value == b.value);
    }
    found
}

fn board_of_device(device: u16) -> Option<Board> {
    let id = pci_id::by_device(device)?;
    let product =
        Product { chip: Some(id.chip), architecture: id.architecture, capability: id.capability };
    Some(Board { name: id.product_name.unwrap_or(id.name).to_owned(), product })
}

/// The board of an id as the kernel log has it, `10de:2bb5`.
pub fn board_of_pci_id(id: &str) -> Option<Board> {
    board_of_device(u16::from_str_radix(id.strip_prefix("10de:")?, 16).ok()?)
}

fn board_of_name(name: &str) -> Option<Board> {
    let product = pci_id::by_product_name(name)?;
    Some(Board { name: name.to_owned(), product })
}

/// The chips of the GPUs at hand, as [`boards`] finds them.
pub fn chips(facts: &Facts) -> Vec<Seen<Product>> {
    boards(facts).into_iter().map(|board| Seen::new(board.value.product, board.origin)).collect()
}

/// The first log event with one of these signatures.
pub fn logged<'a>(facts: &'a Facts, signatures: &[&str]) -> Option<&'a Origin> {
    facts.log.first(signatures).map(|event| &event.origin)
}

/// Where it was seen that the nvidia module runs, by what only a running one yields: its line among
/// the loaded modules, its own version file, or an NVML that answers and never failed. A version in
/// a report's words, which [`module_loaded`] takes, may be that of a module that was never built.
pub fn module_runs(facts: &Facts) -> Option<Origin> {
    let listed = facts.module.loaded("nvidia");
    if let Observed::Seen(seen) = listed {
        return Some(seen.origin);
    }
    let own = |origin: &&Origin| {
        origin.item.starts_with("/proc/driver/nvidia") || origin.excerpt.contains("NVRM version")
    };
    if let Some(origin) = facts.module.nvrm.as_seen().map(|seen| &seen.origin).filter(own) {
        return Some(origin.clone());
    }
    let failed = nvml_failure(facts).is_some();
    nvml_works(facts).filter(|_| !failed)
}

/// Whether a module of that name (with underscores) is the driver's main one: `nvidia`, or as
/// Debian and Ubuntu have named it, `nvidia_current` and `nvidia_470`.
pub fn is_main_module(name: &str) -> bool {
    let rest = name.strip_prefix("nvidia").map(|rest| rest.trim_start_matches('_'));
    rest.is_some_and(|rest| {
        rest.is_empty()
            || rest.starts_with("current")
            || rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
    })
}

/// Whether a module of that name (with underscores) is one of those for displays, which are built
/// and installed together with the main one.
pub fn is_display_module(name: &str) -> bool {
    name.strip_prefix("nvidia_")
        .is_some_and(|rest| rest.ends_with("drm") || rest.ends_with("modeset"))
}

/// A crash or lockup of the kernel that the log shows together with frames of the driver's modules:
/// the first such function, with its module, and the event.
pub fn driver_crash(facts: &Facts) -> Option<(&str, &LogEvent)> {
    let event = facts.log.first(&["OOPS", "SOFT_LOCKUP", "RCU_STALL"])?;
    let (frame, _) = facts.log.frames.iter().find(|(frame, _)| frame.contains("[nvidia"))?;
    Some((frame.as_str(), event))
}

/// The kernel's own word on a task that sleeps: its watchdog's, or a listing of blocked tasks.
pub fn blocked_task(facts: &Facts) -> Option<&LogEvent> {
    let listed = || facts.log.with("TASK_STATE").find(|event| event.get("state") == Some("D"));
    let hint = || facts.log.with("HUNG_HINT").next();
    facts.log.with("HUNG_TASK").next().or_else(listed).or_else(hint)
}

/// Whether a task is one of the kernel's threads that belong to the driver: `nvidia-modeset/`,
/// `nv_queue`, `nvidia_uvm_…`, `UVM global queue`, `irq/63-nvidia`.
pub fn is_drivers_thread(name: &str) -> bool {
    ["nvidia-modeset", "nv_queue", "nvidia_uvm", "UVM "].iter().any(|own| name.starts_with(own))
        || name.starts_with("irq/") && name.ends_with("-nvidia")
}

/// The GPU with which cuInit fails while it works with each of the others alone, as experiments have
/// shown: in words.
pub fn odd_gpu(facts: &Facts) -> Option<Seen<String>> {
    let alone = |wanted: &dyn Fn(Effect) -> bool| -> Vec<(&str, &Origin)> {
        let made = facts.experiments.iter().filter(|made| wanted(made.effect));
        made.filter_map(|made| match &made.change {
            Change::OneGpu(uuid) => Some((uuid.as_str(), &made.origin)),
            _ => None,
        })
        .collect()
    };
    let works = alone(&|effect| effect == Effect::Works);
    let fails = alone(&|effect| matches!(effect, Effect::Same | Effect::Differs));
    let (_, origin) = fails.first()?;
    if works.is_empty() {
        return None;
    }
    let names: Vec<&str> = fails.iter().map(|(uuid, _)| *uuid).collect();
    let others = match works.len() {
        1 => "the other one".to_owned(),
        count => format!("each of the {count} others"),
    };
    let names = names.join(", ");
    let statement =
        format!("cuInit fails with {names} alone visible, and works with {others} alone");
    Some(Seen::new(statement, (*origin).clone()))
}

/// A success with a part of the GPUs visible, and with HMM as it is.
pub fn works_with_some_gpus(facts: &Facts) -> Option<&Trial> {
    const MARKS: [&str; 6] = [
        "CUDA_VISIBLE_DEVICES",
        "one architecture",
        "single architecture",
        "one family",
        "same architecture",
        "same generation",
    ];
    facts.cuda.trials.iter().find(|trial| {
        let under = trial.under.as_deref().unwrap_or_default();
        // Without the variable all are visible.
        let all =
            ["without CUDA_VIS", "unset CUDA_VIS", "-u CUDA_VIS", "CUDA_VISIBLE_DEVICES unset"];
        if all.iter().any(|mark| under.contains(mark)) {
            return false;
        }
        let part = MARKS.iter().any(|mark| under.contains(mark));
        trial.ok() && part && !under.contains("uvm_disable_hmm")
    })
}
