//! Where raw items come from: the running machine, a case folder, text.

mod bundle;
mod case;
mod experiment;
mod host;
mod plan;
mod sift;
mod tar;
mod text;

use std::path::PathBuf;

use facts::Errno;

pub use self::bundle::write_bundle;
pub use self::case::collect_case;
pub use self::experiment::{
    ExperimentOrder, collect_experiment, experiment_not_made, experiment_time,
};
pub use self::host::{HostOptions, collect_context, collect_host, collect_surroundings};
pub use self::sift::TextLimits;
pub use self::text::{TextInput, collect_text, collect_text_within};

/// Why a source gave nothing. What can be told with a part missing is no error; the items then say
/// what is missing.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file could not be read.
    #[error("cannot read {path}: {errno}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// A folder is no case: it has none of `root`, `cmd`, `probe`, `text` and `manifest.toml`.
    #[error("{0} is no case folder: it has none of root/, cmd/, probe/, text/ and manifest.toml")]
    NotACase(PathBuf),
    /// A link among the files of a case leads out of them.
    #[error("{0} is a link; a case holds its files itself")]
    Link(PathBuf),
    /// A case holds more than is taken.
    #[error("{0} holds more than {1} MiB")]
    TooLarge(PathBuf, u64),
    /// The manifest of a case cannot be understood.
    #[error("{path}: {problem}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its place.
        problem: String,
    },
}

impl SourceError {
    fn unreadable(path: impl Into<PathBuf>, error: &std::io::Error) -> SourceError {
        SourceError::Unreadable { path: path.into(), errno: crate::sys::errno_of(error) }
    }
}
