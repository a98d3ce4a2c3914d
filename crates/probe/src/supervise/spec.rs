//! What is to be run, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use facts::raw::RawItem;
use facts::wire::End;

/// Word with which the binary is told that it is a probe's child.
pub const CHILD_WORD: &str = "__probe";

/// Most that a child may write before it is ended, in bytes.
const OUTPUT_LIMIT_BYTES: usize = 16 << 20;

/// One child to be run.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// Name of the probe, such as `cuinit`.
    pub probe: String,
    /// Counts from 1.
    pub trial: u32,
    /// The binary; `None` for the one that is running.
    pub program: Option<PathBuf>,
    /// Arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// Variables that are set on top of those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables of this process that it does not get.
    pub without: Vec<OsString>,
    /// Notes that stand before its own records, whatever comes of it.
    pub notes: Vec<(String, String)>,
    /// It runs its probe under the tracer: where it is stuck itself tells nothing.
    pub traced: bool,
    /// Time that it may take. The supervisor's overall deadline may cut it.
    pub limit: Duration,
    /// Most bytes that it may write.
    pub output_limit_bytes: usize,
}

impl ChildSpec {
    /// A probe of this binary: `gpudx __probe NAME`.
    pub fn probe(name: &str, trial: u32, limit: Duration) -> ChildSpec {
        ChildSpec {
            probe: name.to_owned(),
            trial,
            program: None,
            arguments: vec![CHILD_WORD.into(), name.into()],
            environment: Vec::new(),
            without: Vec::new(),
            notes: Vec::new(),
            traced: false,
            limit,
            output_limit_bytes: OUTPUT_LIMIT_BYTES,
        }
    }

    /// The same with one more argument.
    pub fn with_argument(mut self, argument: impl Into<OsString>) -> ChildSpec {
        self.arguments.push(argument.into());
        self
    }
}

/// What came of one child.
#[derive(Debug)]
pub struct Finished {
    /// Name of the probe.
    pub probe: String,
    /// Trial.
    pub trial: u32,
    /// How it ended.
    pub end: End,
    /// What it reported: the items that it read, then its own lines with the end as the last one.
    pub items: Vec<RawItem>,
}
