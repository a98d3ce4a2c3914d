//! Writers of synthetic inputs.
