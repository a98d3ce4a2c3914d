//! Parsers and extractors of what tools print and of binary files.

mod binary;
mod collect_env;
mod hostile;
mod log;
mod smi;
#[cfg(test)]
mod support;
