//! What CUDA answered, as programs report it: by number, by name or by message.

use super::Line;
use super::pattern::{Lazy, captures, matches, pattern};
use crate::model::Facts;
use crate::model::cuda::{Stage, Trial, TrialResult};

pattern! {
    /// `cuInit(0) = 3`, `cuInit -> 3`, `cuInit returned CUDA_ERROR_UNKNOWN`, `cuInit (+x): 999`.
    INIT = r"(?i)\bcu_?init\b[^\n]{0,100}?(?:=|→|->|=>|:|\breturn(?:s|ed|ing)?\b|\banswer(?:s|ed)?\b|\bgives?\b|\bgave\b|\bwith\b|\bcode\b|\bfails?\b|\bfailed\b|\brc\b|\bresults? in\b)\s*[(`']?(?:error\s*)?(?:code\s*)?(?P<code>\d{1,3}|CUDA_SUCCESS|CUDA_ERROR_\w+)\b(?P<next>.{0,2})"
}
pattern! {
    /// `cuInit 802 (system not yet initialized)`.
    INIT_BARE = r"(?i)\bcu_?init(?:\(0\))?\s+(?P<code>[1-9]\d{0,2})\b(?P<next>.{0,2})"
}
pattern! {
    /// hashcat's `cuDriverGetVersion(): 34`.
    OF_CALL = r"\b(?:cu[A-Z]|cuda[A-Z])\w+\(\)\s*(?::|=|->|returned)\s*(?P<code>[1-9]\d{0,2})\b(?P<next>.{0,2})"
}
pattern! {
    /// `CUDA error 304`, `cuda runtime error (802)`, `Error 803:`, `error=46 :`, `CUDA error code=35`.
    NUMBERED = r"(?i)(?:\bcuda(?:[ _](?:runtime|driver))?(?:[ _]library)?[ _](?:error|failure|init failure)(?:[ _]code)?|\binit failure|\bcudaError(?:_t)?|\bcudaGet\w+ returned|\bcudaSet\w+ returned|\bError)\s*[:=(#]?\s*(?:error code\s*[:=]?\s*)?(?P<code>[1-9]\d{0,2})\b(?P<next>.{0,3})"
}
pattern! {
    /// `error=46 : all CUDA-capable devices are busy`, `(35) CUDA driver version is insufficient`.
    ASSIGNED = r"(?i)\b(?:error|err|rc|status|code|result)\s*[=:]\s*(?P<code>[1-9]\d{0,2})\b"
}
pattern! {
    /// 46 in the words of people, who turn its message round.
    BUSY_DEVICES = r"(?i)\b(?:cuda|gpus?)\b[^.\n]{0,24}\b(?:unavailable or busy|busy or unavailable)\b"
}
pattern! { NAME = r"\b(?P<name>CUDA_ERROR_[A-Z_0-9]+|cudaError[A-Z]\w+)\b" }
pattern! {
    /// The call never ends, in the words people use for it.
    HANG = r"(?i)(?:\b(?:cu_?init|cudagetdevicecount|cudafree|cuda init\w*|cuda start\w*|torch\.cuda\.\w+\(\))\W[^.\n]{0,60}\b(?:hangs?|hung|never returns?|does not return|doesn['’]t return|do not return|blocks? (?:for ?ever|indefinitely)|is stuck|gets stuck|freezes)\b|\b(?:hangs?|hung|stuck|freezes|blocked)\b[^.\n]{0,20}\b(?:in|at|on|inside|during)\b[^.\n]{0,12}\bcu_?init\b|\b(?:hangs?|hung|stuck|freezes|blocked|spins)\b[^.\n]{0,48}\b(?:in|at|on|inside|during)\b[^.\n]{0,8}\bfirst CUDA (?:call|API)\b)"
}
pattern! {
    /// The program runs and does not sleep.
    BUSY = r"(?i)\b(?:9\d|100)(?:\.\d)? ?% (?:of (?:one|a|1) )?(?:CPU|core)\b|\bCPU (?:usage |load )?(?:is |at |of )?(?:9\d|100) ?%|\b(?:process |task )?(?:in )?state:? R\b|\bR state\b|\bbusy[- ]loops?\b|\bspins? (?:forever|endlessly|in user)"
}
pattern! {
    /// The process was forked from one that had used CUDA.
    FORKED = r"(?i)\b(?:forked (?:child|process|subprocess|worker)|after fork|in the child|child process)\b"
}
pattern! {
    /// CUDA does not start, in the words people use when they give no code.
    FAILS = r"(?i)\bUNKNOWN_CUDA_ERROR\b|\b(?:(?:every|all|any) CUDA (?:call|program|init|app)\w*|CUDA (?:calls?|programs?|init\w*|apps?)|cu_?init(?:\(0\))?)\b[^.\n]{0,24}\b(?:fails?|failed|dies|die|does not (?:work|start)|doesn['’]t (?:work|start)|stopped working|is broken|crash(?:es)?)\b"
}
pattern! { STOPS = r"(?i)\b(?:stop(?:s|ped)?|quit(?:s)?|cease[sd]?) working\b" }
pattern! { CALL = r"(?:^|\s)\s(?:cudaMemcpy\w*|cudaMemset\w*|cudaStreamSynchronize|cudaDeviceSynchronize|cudaGetLastError|cublas\w+|(?P<malloc>cudaMalloc\w*))\(" }
pattern! { FRESH = r"(?i)\b(?:fresh|new|separate|spawned) (?:python )?(?:process|interpreter)\b" }

/// Most trials that loose text may add: a log that repeats a line a thousand times tells nothing
/// new.
const LIMIT: usize = 64;

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    // The container hook speaks before any program does, and NVML has codes of its own.
    if facts.cuda.trials.len() >= LIMIT
        || line.has("nvidia-container-cli:")
        || line.has(": nvml ") && line.has(" init failure: ")
    {
        return;
    }
    if matches(&BUSY, line.text) {
        facts.cuda.busy_told.get_or_insert_with(|| line.origin());
    }
    if matches(&HANG, line.text) && !line.text.to_lowercase().contains("no longer") {
        push(line, facts, Stage::Init, TrialResult::Hung { killable: None }, "cuInit");
        return;
    }
    if belongs_to_call(line, facts) {
        return;
    }
    let Some((code, named_init)) = code_of(line) else {
        if matches(&FAILS, line.text) {
            push(line, facts, Stage::Init, TrialResult::Failed, "CUDA");
        }
        return;
    };
    let stage = match (named_init, code) {
        (true, _) => Stage::Init,
        (false, code) => match stage_of(code) {
            Some(stage) => stage,
            None => return,
        },
    };
    let what = if named_init { "cuInit" } else { "a CUDA call" };
    push(line, facts, stage, TrialResult::Code(code), what);
}

/// llama.cpp tells, indented in the lines after an error, which call gave it: `cudaMemcpyAsync(data,
/// …)`. A copy, a kernel or a wait comes long after cuInit. Other lines of a journal may stand between.
fn belongs_to_call(line: &Line<'_>, facts: &mut Facts) -> bool {
    let Some(found) = captures(&CALL, line.text) else { return false };
    let last = facts.cuda.trials.last_mut();
    let Some(trial) = last.filter(|trial| trial.stage == Stage::Init && trial.what != "cuInit")
    else {
        return false;
    };
    trial.stage = match found.name("malloc") {
        Some(_) => Stage::Allocation,
        None => Stage::Kernel,
    };
    true
}

fn push(line: &Line<'_>, facts: &mut Facts, stage: Stage, result: TrialResult, what: &str) {
    facts.mentions_gpu = true;
    let fresh_process = if matches(&FORKED, line.text) {
        Some(false)
    } else if matches(&FRESH, line.text) {
        Some(true)
    } else {
        None
    };
    facts.cuda.trials.push(Trial {
        fresh_process,
        hmm_disabled: facts.module.uvm_disable_hmm.value().copied(),
        under: condition(line, result),
        ..Trial::new(stage, result, what, line.origin())
    });
}

/// The condition under which the sentence says that it works; one that says that it stopped working
/// names none.
fn condition(line: &Line<'_>, result: TrialResult) -> Option<String> {
    let sentence = sentence_with(line, result);
    if matches(&STOPS, sentence) {
        return None;
    }
    super::statement::condition(sentence)
}

/// The sentence that tells the result: a condition in another sentence of the same line is that of
/// another trial.
fn sentence_with<'a>(line: &Line<'a>, result: TrialResult) -> &'a str {
    let tells = |text: &&str| match result {
        TrialResult::Hung { .. } => matches(&HANG, text),
        TrialResult::Code(code) => {
            let part = Line { item: line.item, number: line.number, text };
            code_of(&part).is_some_and(|(found, _)| found == code)
        }
        _ => matches(&FAILS, text),
    };
    super::statement::sentences(line.text).find(tells).unwrap_or(line.text)
}

/// The code that the line reports, and whether it is cuInit's own.
fn code_of(line: &Line<'_>) -> Option<(i64, bool)> {
    for pattern in [&INIT, &INIT_BARE] {
        if let Some(found) = captures(pattern, line.text)
            && let Some(code) = found.name("code").and_then(|code| number(code.as_str()))
            && !goes_on(found.name("next").map_or("", |next| next.as_str()))
        {
            return Some((code, true));
        }
    }
    let about_init = line.text.contains("cuInit");
    if let Some(code) = name_of(line) {
        return Some((code, about_init));
    }
    let about_cuda = line.text.to_lowercase().contains("cuda");
    if let Some(text) = nvabi::error_text::in_line(line.text)
        && (text.api.starts_with("cuda") || text.api == "torch")
        && let Some(code) = text.code
    {
        return Some((code, about_init));
    }
    if matches(&BUSY_DEVICES, line.text) {
        return Some((46, false));
    }
    let of_call = captures(&OF_CALL, line.text);
    let about_cuda = about_cuda || of_call.is_some();
    let patterns: [&Lazy; 2] = [&NUMBERED, &ASSIGNED];
    let other = || patterns.into_iter().find_map(|pattern| captures(pattern, line.text));
    let found = of_call.or_else(other)?;
    let code = found.name("code")?.as_str().parse().ok()?;
    let next = found.name("next").map_or("", |next| next.as_str());
    let known = nvabi::cuda_result::by_code(code).is_some();
    (about_cuda && known && !goes_on(next)).then_some((code, about_init))
}

/// `0.19 s` and `12.8` are no codes.
fn goes_on(next: &str) -> bool {
    let mut chars = next.chars();
    match chars.next() {
        Some('.') => chars.next().is_some_and(|ch| ch.is_ascii_digit()),
        Some('%') => true,
        _ => false,
    }
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| Some(nvabi::cuda_result::by_name(text)?.code))
}

fn name_of(line: &Line<'_>) -> Option<i64> {
    let found = captures(&NAME, line.text)?;
    let name = found.name("name")?.as_str();
    if let Some(result) = nvabi::cuda_result::by_name(name) {
        return Some(result.code);
    }
    nvabi::error_text::all().iter().find(|text| text.name == name)?.code
}

/// The stage at which a code arises when the line does not say; `None` for codes that tell nothing
/// of whether CUDA comes up, such as an illegal address in a kernel.
fn stage_of(code: i64) -> Option<Stage> {
    match code {
        3 | 34 | 35 | 36 | 100 | 304 | 800..=812 | 999 => Some(Stage::Init),
        101 => Some(Stage::Device),
        46 | 201 | 205 | 216 | 401 => Some(Stage::Context),
        2 => Some(Stage::Allocation),
        98 | 200 | 209 | 218 | 222 => Some(Stage::Kernel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    fn stages(text: &str) -> Vec<Stage> {
        lines_of(text).cuda.trials.iter().map(|trial| trial.stage).collect()
    }

    #[test]
    fn a_call_in_the_lines_after_an_error_tells_its_stage() {
        assert!(CALL.is_some());
        let copy = "CUDA error: unknown error\n  current device: 0, in function get_tensor_async at /x/ggml-cuda.cu:12080\n  cudaMemcpyAsync(data, (const char *)tensor->data + offset, size)\n";
        assert_eq!(stages(copy), [Stage::Kernel]);
        let count = "CUDA error: unknown error\n  current device: 0, in function ggml_init_cublas\n  cudaGetDeviceCount(&g_device_count)\n";
        assert_eq!(stages(count), [Stage::Init]);
        let apart = "cuInit(0) = 999\nthen the program calls\n  cudaMemcpyAsync(a, b)\n";
        assert_eq!(stages(apart), [Stage::Init]);
    }
}
