//! Messages of PyTorch and other frameworks, of loaders and of compilers.

use super::Line;
use super::pattern::{captures, group, matches, pattern};
use crate::extract::torch;
use crate::model::Facts;
use crate::model::framework::FrameworkMessage;
use crate::observed::Observed;
use crate::raw::ItemName;
use crate::version::CudaVersion;

pattern! {
    NOT_COMPATIBLE = r"with CUDA capability (?P<capability>sm_\d+\w?) is not compatible"
}
pattern! { SUPPORTS = r"supports CUDA capabilities (?P<list>sm_\d+\w?(?:[ ,]+(?:sm|compute)_\d+\w?)*)" }
pattern! { TOO_OLD = r"(?i)driver on your system is too old \(found version (?P<found>\d+)\)" }
pattern! {
    /// The container tools' word on an image that asks for more than the driver has.
    IMAGE_TOO_NEW = r"unsupported CUDA version: driver (?P<found>\d+\.\d+) < image \d+\.\d+"
}
pattern! {
    MISMATCH = r"(?i)detected CUDA version \((?P<toolkit>[\d.]+)\) mismatches the version that was used to compile\s*PyTorch \((?P<framework>[\d.]+)\)"
}
pattern! { SYMBOL = r"(?P<library>[\w./+\-]+\.so[\w.]*): undefined symbol: (?P<symbol>\w+)" }
pattern! {
    MISSING = r"(?P<library>lib(?:cudart|cublas|cublasLt|cudnn|cufft|curand|cusparse|cusolver|nvrtc|nccl|nvJitLink)[\w.\-]*\.so[\w.]*): cannot open shared object file"
}
pattern! {
    /// The loader's words, and those of TensorFlow before them, which a narrow terminal cuts off.
    DRIVER_MISSING = r"(?P<library>libcuda\.so[.\d]*|libnvidia-ml\.so[.\d]*)(?:: cannot open shared object file|'; dlerror: \S+: c)"
}
pattern! {
    /// What programs that load it themselves say: FFmpeg (`Cannot load libcuda.so.1`) and others.
    DRIVER_UNLOADED = r"(?i)\b(?:cannot|can['’]t|could ?n['’]t|could not|failed to|unable to) (?:load|open|dlopen|find)(?: (?:the|shared|dynamic|CUDA|NVML|driver|library)){0,4}:? ['\x22`]?(?P<library>libcuda\.so[.\d]*|libnvidia-ml\.so[.\d]*)\b"
}
pattern! { MAPPED = r"(?P<path>/[\w./+\-]*/libcuda\.so[.\d]*)" }
pattern! {
    TORCH = r"(?i)\b(?:py)?torch(?:\s+version)?\s*(?:==|:|=|\s)\s*v?(?P<version>\d+\.\d+(?:\.\d+)?(?:\.?(?:dev|a|rc)\d*)?(?:\+\w+)?)"
}
pattern! { TORCH_CUDA = r"(?i)\btorch\.version\.cuda\b\W{1,5}(?:is |prints |returns |gives |shows |says )?(?P<version>\d+\.\d+|None)" }
pattern! { AVAILABLE = r"torch\.cuda\.is_available\(\)\W{1,6}(?:is |returns |gives |= ?)?(?P<answer>(?i:True|False))\b" }
pattern! {
    /// A program of PyTorch's that asked `is_available()` and says so in its own words.
    UNABLE = r"\bTorch is not able to use (?:the )?GPU\b"
}

pattern! {
    /// A program, in a person's words, that does not find the GPU.
    FINDS_NONE = r"(?i)\b(?:fails? to|failed to|can(?:not|['’]t| not)|could(?:n['’]t| not)|does(?:n['’]t| not)|did(?:n['’]t| not)|unable to|not able to) (?:(?:detect|find|see|recogni[sz]e|use) (?:any |the |my |our |an? |its )?(?:nvidia )?GPUs?|load (?:any |the )?nvidia drivers?)\b"
}
pattern! {
    /// Programs that print it: counted by CUDA or by OpenCL, which loads libcuda beneath.
    PRINTS_NONE = r"(?i)\bno CUDA[- ](?:capable |enabled |compatible |supported )?(?:devices?|GPUs?|cards?) (?:were |was |is |are |could be )?(?:found|detected|available|present)\b|\bCL_PLATFORM_NOT_FOUND_KHR\b|\bclGetPlatformIDs\b[^\n]{0,40}-1001\b|\b(?:has_cuda(?:_gpu)?|CUDA\.functional|is_gpu_available|(?:cupy|numba)\.cuda\.is_available)\(\)[^\n]{0,40}?\bfalse\b"
}
pattern! {
    /// Those that look without CUDA, and doubts.
    OF_ANOTHER_KIND = r"(?i)\bnvidia-smi\b|\blspci\b|\bBIOS\b|\bUEFI\b|\bWindows\b|\bmonitor\b|\bdisplay\b|\bX(?:org|11)\b|\bWayland\b|\bVulkan\b|\bOpenGL\b|\bgame\b|\b(?:if|whether|when|should|might|may|AMD|Intel|ROCm)\b|\?"
}

/// What a person says of a program.
pub(super) fn read_prose(line: &Line<'_>, facts: &mut Facts) {
    let told = super::statement::sentences(line.text)
        .any(|said| matches(&FINDS_NONE, said) && !matches(&OF_ANOTHER_KIND, said));
    let message = FrameworkMessage::FindsNoGpu;
    if told && facts.framework.said(&message).is_none() {
        facts.framework.messages.push((message, line.origin()));
    }
}

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    versions(line, facts);
    libraries(line, facts);
    if let Some(message) = message(line) {
        facts.mentions_gpu = true;
        facts.framework.messages.push((message, line.origin()));
    }
    let message = FrameworkMessage::FindsNoGpu;
    if matches(&PRINTS_NONE, line.text)
        && nvabi::error_text::in_line(line.text).is_none()
        && facts.framework.said(&message).is_none()
    {
        facts.mentions_gpu = true;
        facts.framework.messages.push((message, line.origin()));
    }
    // The entry point of NVIDIA's own images looks for libcuda and nvidiactl.
    if line.text.contains("NVIDIA Driver was not detected") {
        facts.mentions_gpu = true;
        facts.sandbox.image_lacks_driver.get_or_insert(line.origin());
        facts.framework.messages.push((FrameworkMessage::FindsNoGpu, line.origin()));
    }
    if let Some(list) = group(&SUPPORTS, line.text, "list") {
        let names = list.split([' ', ',']).filter(|name| !name.is_empty()).map(str::to_owned);
        torch::entry(facts, &line.origin()).arch_list = Some(names.collect());
    }
}

fn message(line: &Line<'_>) -> Option<FrameworkMessage> {
    let text = line.text;
    if let Some(capability) = group(&NOT_COMPATIBLE, text, "capability") {
        let supported = Vec::new();
        return Some(FrameworkMessage::CapabilityNotCompatible {
            capability: capability.to_owned(),
            supported,
        });
    }
    if text.contains("no kernel image is available") {
        return Some(FrameworkMessage::NoKernelImage);
    }
    if let Some(found) = group(&TOO_OLD, text, "found") {
        let found = found.parse().ok().and_then(CudaVersion::from_api);
        return Some(FrameworkMessage::DriverTooOld { found });
    }
    if let Some(found) = group(&IMAGE_TOO_NEW, text, "found") {
        return Some(FrameworkMessage::DriverTooOld { found: CudaVersion::parse(found) });
    }
    if text.contains("not compiled with CUDA enabled") {
        return Some(FrameworkMessage::NotCompiledWithCuda);
    }
    if text.contains("Cannot re-initialize CUDA in forked subprocess") {
        return Some(FrameworkMessage::ForkedSubprocess);
    }
    if text.contains("PTX was compiled with an unsupported toolchain") {
        return Some(FrameworkMessage::PtxTooNew);
    }
    if let Some(found) = captures(&MISMATCH, text) {
        let toolkit = CudaVersion::parse(found.name("toolkit")?.as_str())?;
        let framework = CudaVersion::parse(found.name("framework")?.as_str())?;
        return Some(FrameworkMessage::ToolkitMismatch { toolkit, framework });
    }
    if let Some(library) = group(&MISSING, text, "library") {
        return Some(FrameworkMessage::MissingCudaLibrary { library: library.to_owned() });
    }
    let found = captures(&SYMBOL, text)?;
    let library = found.name("library")?.as_str().to_owned();
    let symbol = found.name("symbol")?.as_str().to_owned();
    // Only symbols of frameworks and of CUDA: a game's plug-in is no matter of ours.
    let ours = ["c10", "torch", "at6", "cuda", "cublas", "cudnn", "nccl", "ncclComm", "nvJit"];
    let of_driver = symbol.strip_prefix("cu").or_else(|| symbol.strip_prefix("nvml"));
    let of_driver = of_driver.is_some_and(|rest| rest.starts_with(|ch: char| ch.is_uppercase()));
    (of_driver || ours.iter().any(|word| symbol.contains(word)))
        .then_some(FrameworkMessage::UndefinedSymbol { library, symbol })
}

fn versions(line: &Line<'_>, facts: &mut Facts) {
    if let Some(version) = group(&TORCH, line.text, "version") {
        let torch = torch::entry(facts, &line.origin());
        torch.version.get_or_insert_with(|| version.to_owned());
        if torch.cuda.is_none()
            && let Some((_, tag)) = version.split_once("+cu")
            && let Some(cuda) = CudaVersion::from_tag(tag)
        {
            torch.cuda = Some(Some(cuda));
        } else if version.contains("+cpu") {
            torch.cuda = Some(None);
        }
    }
    if let Some(version) = group(&TORCH_CUDA, line.text, "version") {
        torch::entry(facts, &line.origin()).cuda = Some(CudaVersion::parse(version));
    }
    if let Some(answer) = group(&AVAILABLE, line.text, "answer") {
        let answer = answer.eq_ignore_ascii_case("true");
        facts.framework.torch_available.or_better(Observed::seen(answer, line.origin()));
    }
    if matches(&UNABLE, line.text) {
        facts.mentions_gpu = true;
        facts.framework.torch_available.or_better(Observed::seen(false, line.origin()));
    }
}

fn libraries(line: &Line<'_>, facts: &mut Facts) {
    listed(line, facts);
    let missing = [&DRIVER_MISSING, &DRIVER_UNLOADED];
    let missing = missing.into_iter().find_map(|pattern| group(pattern, line.text, "library"));
    if let Some(library) = missing.filter(|_| !line.text.trim_end().ends_with('?')) {
        facts.mentions_gpu = true;
        let error = Observed::seen(crate::observed::clean_excerpt(line.text), line.origin());
        if library.starts_with("libcuda") {
            facts.library.cuda_load_error.or_better(error);
        } else {
            facts.library.nvml_load_error.or_better(error);
        }
        return;
    }
    if let Some(path) = group(&MAPPED, line.text, "path") {
        let loaded = matches(&LOADED, line.text);
        let file = crate::extract::libraries::by_path(path, "libcuda.so.1", &line.origin(), facts);
        if loaded && !facts.library.cuda.is_seen() {
            facts.library.cuda = Observed::seen(file, line.origin());
        } else {
            facts.library.others.push(file);
        }
    }
}
pattern! {
    /// A row of `ls -l`: a driver library with its version, or the link that programs follow.
    LISTED = r"^\s*[l-]r[rwx-]{8}\S?\s.*?\s(?:(?P<soname>libcuda\.so\.1|libnvidia-ml\.so\.1) -> )?(?P<file>\S*lib(?:cuda|nvidia-ml)\.so\.\d{3}\.\d+(?:\.\d+)?)\s*$"
}

/// A listing of a folder whose path is not told.
fn listed(line: &Line<'_>, facts: &mut Facts) {
    const LIMIT: usize = 64;
    // The reader of the command has had what was listed by its path.
    let by_path = matches!(&line.item.name, ItemName::Command(command) if command.contains(" /"));
    let room = facts.library.others.len() < LIMIT;
    let Some(found) = captures(&LISTED, line.text).filter(|_| room && !by_path) else {
        return;
    };
    let file = found.name("file").map_or("", |file| file.as_str());
    let of_cuda = file.contains("libcuda");
    let soname = if of_cuda { "libcuda.so.1" } else { "libnvidia-ml.so.1" };
    let library = crate::extract::libraries::by_path(file, soname, &line.origin(), facts);
    let linked = if of_cuda { &mut facts.library.cuda } else { &mut facts.library.nvml };
    if found.name("soname").is_some() && !linked.is_seen() {
        *linked = Observed::seen(library, line.origin());
    } else if !facts.library.others.iter().any(|known| known.version == library.version) {
        facts.library.others.push(library);
    }
}
pattern! {
    /// Words that say that this file is the one that was loaded.
    LOADED = r"(?i)\b(?:mapped|loaded|loading|using|opened|load|dlopen|resolved)\b"
}
