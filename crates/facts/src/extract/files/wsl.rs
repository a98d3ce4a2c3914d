//! WSL's folder of libraries.

use super::reading::Reading;
use crate::model::Facts;
use crate::observed::Observed;

/// /usr/lib/wsl/lib: the libraries of Windows' graphics are always in it, and libcuda comes with a
/// driver for Windows that knows WSL.
pub(super) fn libraries(reading: &Reading, facts: &mut Facts) {
    let Observed::Seen(seen) = reading.listing() else { return };
    let has = |file: &str| seen.value.iter().any(|name| name.starts_with(file));
    if !has("libdxcore.so") {
        return;
    }
    facts.host.wsl.or_better(Observed::seen(true, seen.origin.clone()));
    if !has("libcuda.so") {
        facts.library.wsl_lacks_cuda.get_or_insert(seen.origin);
    }
}
