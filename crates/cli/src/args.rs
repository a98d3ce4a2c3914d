//! The command line, as data: clap prints the help and the usage errors from these types.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use facts::Layer;
use probe::trace::Injection;

/// Why does CUDA not come up here, how do we know, what was ruled out, and what puts it right?
///
/// Without a command, gpudx diagnoses this machine (`gpudx check`). Observing changes nothing.
///
/// Exit status: 0 healthy (or no GPU at all), 1 a fault was found, 2 undetermined, 64 usage.
#[derive(Debug, Parser)]
#[command(name = "gpudx", version, disable_help_subcommand = true, args_override_self = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    /// When to use color; `auto` is on a terminal, and NO_COLOR is honored
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Diagnose this machine (the default)
    Check(CheckArgs),
    /// Diagnose a bundle, a bug report, logs, or pasted text
    Read(ReadArgs),
    /// Explain a cause, a code or a word: uvm.hmm, 803, xid 119, NV_ERR_…, PHB
    Explain(ExplainArgs),
    /// Tell which chips and version a GSP firmware file carries
    Firmware(FirmwareArgs),
    /// Walk through a recorded case; needs no GPU
    Demo(DemoArgs),
    /// Show what a program asks the driver and what the driver answers, call by call
    Trace(TraceArgs),
}

/// Options of `check`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub(crate) struct CheckArgs {
    /// End within this time, with a partial verdict if need be: 5s, 500ms, 1m [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Option<Duration>,
    /// How often to try cuInit when it fails or hangs [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) trials: Option<u32>,
    /// Also create a context, allocate, copy there and back and run a kernel
    #[arg(long)]
    pub(crate) context: bool,
    /// Also look for tasks of the whole machine that are stuck in the driver or asleep in state D,
    /// as it is done by itself when a probe hangs; as root it sees most
    #[arg(long)]
    pub(crate) stuck: bool,
    /// When to run cuInit again with one thing changed at a time (without LD_PRELOAD, one GPU
    /// alone, …), in children that change nothing here: auto is when that may settle a cause that
    /// is not certain yet, and --experiment alone is always
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto",
        default_missing_value = "always", num_args = 0..=1, require_equals = true)]
    pub(crate) experiment: ExperimentWhen,
    /// Take files of the machine from below this folder, such as a host's root in a container
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Options of `read`.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Files, compressed or not; folders of a bundle; `-` for standard input. Several are read as
    /// one input, in this order
    #[arg(required = true, value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// How a report is shown.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub(crate) struct ReportArgs {
    /// Show only this layer, such as cuda or node; may be repeated
    #[arg(long, value_name = "LAYER", value_parser = layer)]
    pub(crate) layer: Vec<Layer>,
    /// Form of the report [default: text]
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) format: Option<ReportFormat>,
    /// Show every observation with its origin
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Options of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The word, or several: `xid 119`
    #[arg(required = true, value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Form of the explanation
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) format: PageFormat,
}

/// Options of `firmware`.
#[derive(Debug, Args)]
pub(crate) struct FirmwareArgs {
    /// The file, such as /lib/firmware/nvidia/590.48.01/gsp_ga10x.bin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Form of the answer
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) format: DataFormat,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// A recorded case by name (see --list), or the folder of one; all stages when left out
    #[arg(value_name = "CASE")]
    pub(crate) case: Option<String>,
    /// List the recorded cases
    #[arg(long, conflicts_with = "case")]
    pub(crate) list: bool,
}

/// Options of `trace`.
///
/// A launched program ends when gpudx ends; one that was attached to goes on.
///
/// Exit status: 0 every driver call returned, 1 one did not, 2 there is no trace, 64 usage.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Attach to this running process instead of starting one
    #[arg(short, long, value_name = "PID", conflicts_with = "command",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// End after this time: 5s, 500ms, 1m. A launched program is killed, an attached one let go
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Option<Duration>,
    /// Form of the trace; json is gpudx/trace/1, one object a line
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub(crate) format: DataFormat,
    /// Write the trace to this file instead of standard error
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also save the trace, with what can be read about this machine without asking the driver, as
    /// a bundle for `gpudx read`. A file that exists is not overwritten
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Let the driver calls before the N-th through and hold that one before the driver sees it,
    /// to see what the program does when the driver does not answer
    #[arg(long, alias = "hold", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) block: Option<u64>,
    /// Answer the N-th driver call in the driver's stead, with an errno (12=EPERM, 12=1) or a
    /// status of the driver (12=NV_ERR_NO_MEMORY); may be repeated
    #[arg(long, value_name = "N=ERRNO")]
    pub(crate) fail: Vec<Injection>,
    /// The program and its arguments
    #[arg(required_unless_present = "pid", last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// When to make experiments.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExperimentWhen {
    /// When CUDA shows a symptom whose cause is not certain and that may settle it, in the time left.
    #[default]
    Auto,
    /// Whenever one can tell something.
    Always,
    /// Not at all.
    Never,
}

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people at a terminal.
    Text,
    /// Schema gpudx/report/1.
    Json,
    /// Markdown, for tickets.
    Md,
}

/// Form of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// For people at a terminal.
    Text,
    /// Markdown; of causes only.
    Md,
}

/// Form of plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFormat {
    /// For people at a terminal.
    Text,
    /// JSON.
    Json,
}

/// When to use color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal that can.
    Auto,
    /// Also into pipes and files.
    Always,
    /// Not at all.
    Never,
}

/// The longest deadline, in seconds: a day.
const LONGEST_S: f64 = 86_400.0;

/// Reads `5s`, `500ms`, `1m`, `2.5s`, or a bare number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|ch: char| !ch.is_ascii_digit() && ch != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_s = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return Err("a time is a number with ms, s or m, such as 5s".to_owned()),
    };
    let seconds = number
        .parse::<f64>()
        .map_err(|_| "a time is a number with ms, s or m, such as 5s".to_owned())?
        * unit_s;
    if seconds > 0.0 && seconds <= LONGEST_S {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("a deadline is more than nothing and at most a day".to_owned())
    }
}

fn layer(text: &str) -> Result<Layer, String> {
    Layer::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Layer::ALL.iter().map(|layer| layer.name()).collect();
        format!("the layers are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_in_their_spellings() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m"), Ok(Duration::from_mins(1)));
        assert_eq!(duration("2.5"), Ok(Duration::from_millis(2500)));
        for text in ["", "s", "0s", "-1s", "5h", "1e9s", "999999m", "1.2.3s", "nan"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
