//! CUDA toolkits on disk, by their version files; and what is preloaded into every program.

use super::reading::Reading;
use crate::model::Facts;
use crate::observed::Observed;
use crate::version::CudaVersion;

/// `version.json`, since CUDA 11.1.
pub(super) fn version_json(reading: &Reading, facts: &mut Facts) {
    let version = reading.single(|text| {
        let root: serde_json::Value = serde_json::from_str(text).ok()?;
        CudaVersion::parse(root.get("cuda")?.get("version")?.as_str()?)
    });
    enter(reading, version, facts);
}

/// `version.txt` before that: `CUDA Version 10.2.89`.
pub(super) fn version_txt(reading: &Reading, facts: &mut Facts) {
    let version =
        reading.single(|text| CudaVersion::parse(text.trim().strip_prefix("CUDA Version ")?));
    enter(reading, version, facts);
}

fn enter(reading: &Reading, version: Observed<CudaVersion>, facts: &mut Facts) {
    let folder = reading.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    if let Observed::Seen(seen) = version {
        let toolkit = crate::Seen::new((folder.to_owned(), seen.value), seen.origin);
        facts.framework.toolkits.push(toolkit);
    }
}

/// /etc/ld.so.preload: libraries between every program and the driver.
pub(super) fn ld_so_preload(reading: &Reading, facts: &mut Facts) {
    let Some(text) = reading.text() else { return };
    for (line, content) in crate::parse::numbered(text.as_str()) {
        let names = content.split('#').next().unwrap_or("");
        for name in names.split([' ', '\t', ':']).filter(|name| !name.is_empty()) {
            let origin = reading.item.origin_at(line, content);
            facts.library.interposers.push((name.to_owned(), origin));
        }
    }
}
