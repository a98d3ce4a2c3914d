//! Where raw items come from: the seam between the command line and crate `probe`.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use facts::parse::elf_gsp::{self, GspSummary};
use facts::parse::{decompress, elf};
use facts::raw::RawSet;
use probe::source::{
    ExperimentOrder, HostOptions, SourceError, TextInput, collect_case, collect_context,
    collect_experiment, collect_host, collect_text, experiment_not_made,
};
use probe::supervise::Waiting;

use crate::args::{CheckArgs, ExperimentWhen};
use crate::progress::Progress;

/// Time for a whole `check` where none is asked for.
const DEADLINE: Duration = Duration::from_secs(20);

/// Trials of cuInit where it does not succeed at once.
const TRIALS: u32 = 3;

/// Looks at this machine.
pub(crate) fn host(args: &CheckArgs) -> RawSet {
    let progress = Progress::new();
    collect_host(&host_options(args), &mut |waiting| show(&progress, waiting))
}

/// Goes on from cuInit to a context, memory and a kernel, in what is left of the deadline, and adds
/// what comes of it.
pub(crate) fn context(args: &CheckArgs, spent: Duration, trial: u32, raw: &mut RawSet) {
    let mut options = host_options(args);
    options.deadline = options.deadline.saturating_sub(spent);
    let progress = Progress::new();
    raw.append(collect_context(&options, trial, &mut |waiting| show(&progress, waiting)));
}

/// The time for everything.
pub(crate) fn deadline(args: &CheckArgs) -> Duration {
    args.deadline.unwrap_or(DEADLINE)
}

/// Makes one experiment within this time.
pub(crate) fn experiment(order: &ExperimentOrder, limit: Duration) -> RawSet {
    let progress = Progress::new();
    let what = order.change.words();
    collect_experiment(order, limit, &mut |waiting| {
        if let Some(child) = waiting.first() {
            progress.waiting(&format!("cuInit {what}"), child.elapsed, child.limit);
        }
    })
}

/// Records why an experiment that was listed is not made.
pub(crate) fn no_experiment(order: &ExperimentOrder, reason: &str) -> RawSet {
    experiment_not_made(order, reason)
}

fn host_options(args: &CheckArgs) -> HostOptions {
    HostOptions {
        root: args.root.clone(),
        deadline: deadline(args),
        trials: args.trials.unwrap_or(TRIALS),
        context: args.context,
        stuck: args.stuck,
        experiments: args.experiment != ExperimentWhen::Never,
        // The verdict needs all layers; which of them to show is for the report to decide.
        layers: Vec::new(),
    }
}

/// Shows the probe that has been waited for longest.
fn show(progress: &Progress, waiting: &[Waiting]) {
    if let Some(longest) = waiting.iter().max_by_key(|waiting| waiting.elapsed) {
        progress.waiting(call_of(&longest.probe), longest.elapsed, longest.limit);
    }
}

/// The probe by the name that its readers know.
fn call_of(probe: &str) -> &str {
    match probe {
        "cuinit" => "cuInit",
        "nvml" => "NVML",
        other => other,
    }
}

/// Reads files, folders of bundles and standard input as one input, in this order.
pub(crate) fn inputs(paths: &[PathBuf]) -> Result<RawSet, String> {
    let mut all = RawSet::new();
    let mut texts = Vec::new();
    for path in paths {
        if path.is_dir() {
            take_texts(&mut texts, &mut all)?;
            let case = collect_case(path).map_err(told)?;
            all.live |= case.live;
            all.append(case);
        } else if path == Path::new("-") {
            texts.push(TextInput::StandardInput);
        } else {
            texts.push(TextInput::File(path.clone()));
        }
    }
    take_texts(&mut texts, &mut all)?;
    Ok(all)
}

/// Reads the texts that stand before a folder, or at the end, in one go: their size is bounded
/// together.
fn take_texts(texts: &mut Vec<TextInput>, all: &mut RawSet) -> Result<(), String> {
    if !texts.is_empty() {
        let set = collect_text(&std::mem::take(texts)).map_err(told)?;
        // A bundle among them may be of a live look.
        all.live |= set.live;
        all.append(set);
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn told(error: SourceError) -> String {
    error.to_string()
}

/// Most bytes of a compressed firmware file that are read; the largest has 76 MB unpacked.
const COMPRESSED_LIMIT_BYTES: u64 = 128 << 20;

/// Reads the sections of a firmware file, a few small pieces of it; a compressed one is unpacked.
pub(crate) fn firmware(path: &Path) -> Result<GspSummary, String> {
    let shown = path.display();
    // Opening a pipe or a device can block or do something; only a file is opened.
    let metadata = path.metadata().map_err(|error| format!("cannot read {shown}: {error}"))?;
    if !metadata.is_file() {
        return Err(format!("{shown} is not a file"));
    }
    let file = File::open(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let start = read_at(&file, 0, 6).unwrap_or_default();
    if decompress::detect(&start).is_none() {
        return Ok(elf_gsp::read(&|offset, length| read_at(&file, offset, length)));
    }
    let mut packed = Vec::new();
    file.take(COMPRESSED_LIMIT_BYTES)
        .read_to_end(&mut packed)
        .map_err(|error| format!("cannot read {shown}: {error}"))?;
    let bytes = decompress::decompress(&packed).map_err(|fault| format!("{shown}: {fault}"))?;
    Ok(elf_gsp::read(&elf::reader_of(&bytes)))
}

fn read_at(file: &File, offset: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}
