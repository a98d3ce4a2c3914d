//! PyTorch releases: the CUDA runtime of the PyPI wheel, and the architectures that the official
//! builds carry code for.
//!
//! Table `pytorch_cuda`: wheel metadata measured; the architectures by row, as its source column
//! says.

use crate::number;
use crate::table::Row;
use crate::tables::PYTORCH_CUDA;

/// One release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TorchBuild {
    /// The release, such as `2.9.1`.
    pub version: &'static str,
    /// The CUDA runtime that the wheel on PyPI depends on, such as `12.8.90`.
    pub default_cuda: &'static str,
    /// The CUDA versions of the official builds.
    pub other_builds: &'static str,
    /// The architectures of each build, such as `cu126: 50,60; cu128: 75,80 +PTX`; a list without
    /// a build's name holds for all builds; text that is no list says what is known.
    pub sm_list: &'static str,
    /// The oldest driver for the wheel on PyPI, such as `525.60.13`.
    pub minimum_driver: &'static str,
}

impl TorchBuild {
    fn of(row: Row) -> TorchBuild {
        TorchBuild {
            version: row.text("torch_version"),
            default_cuda: row.text("pypi_default_cuda_runtime"),
            other_builds: row.text("other_official_builds"),
            sm_list: row.text("sm_list"),
            minimum_driver: row.text("min_driver_for_pypi_default").trim_start_matches(">="),
        }
    }

    /// The list of the build for this CUDA version.
    fn list(&self, cuda: (u32, u32)) -> Option<Architectures> {
        let build = format!("cu{}{}", cuda.0, cuda.1);
        let parts = || self.sm_list.split(';').map(str::trim);
        let named = parts().find_map(|part| part.strip_prefix(&build)?.strip_prefix(':'));
        let for_all = || parts().find(|part| !part.starts_with("cu"));
        Architectures::parse(named.or_else(for_all)?)
    }
}

/// The release of that version. A local part (`+cu128`) is left out of account, and a patch
/// release that is not listed goes by the listed one of its minor version.
pub fn by_version(version: &str) -> Option<TorchBuild> {
    let release = version.split('+').next().unwrap_or("").trim();
    let minor = number::major_minor(release)?;
    let exact = all().find(|build| build.version == release);
    exact.or_else(|| all().find(|build| number::major_minor(build.version) == Some(minor)))
}

/// All releases, by version.
pub fn all() -> impl Iterator<Item = TorchBuild> {
    PYTORCH_CUDA.rows().map(TorchBuild::of)
}

/// The architectures that the official build of a release for a CUDA version carries machine code
/// for, as compute capabilities in order; `None` where the table does not tell.
pub fn architectures(torch: &str, cuda: (u32, u32)) -> Option<Vec<(u32, u32)>> {
    by_version(torch)?.list(cuda).map(|list| list.compiled)
}

/// Whether that build has code for a GPU of this capability: machine code of the same major and
/// no greater minor capability, or PTX of no greater capability. `None` where the table does not
/// tell.
pub fn runs_on(torch: &str, cuda: (u32, u32), capability: (u32, u32)) -> Option<bool> {
    let list = by_version(torch)?.list(cuda)?;
    let newest = list.compiled.iter().max().copied();
    let by_ptx = list.ptx && newest.is_some_and(|newest| newest <= capability);
    let by_code = list
        .compiled
        .iter()
        .any(|compiled| compiled.0 == capability.0 && compiled.1 <= capability.1);
    Some(by_code || by_ptx)
}

/// A list such as `75,80,86,90,100,120 +PTX`.
struct Architectures {
    compiled: Vec<(u32, u32)>,
    /// Whether PTX of the last one is there too.
    ptx: bool,
}

impl Architectures {
    fn parse(text: &str) -> Option<Architectures> {
        let (list, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let numbers: Option<Vec<u32>> = list.split(',').map(|part| part.parse().ok()).collect();
        let compiled = numbers?.into_iter().map(|number| (number / 10, number % 10)).collect();
        match rest {
            "" => Some(Architectures { compiled, ptx: false }),
            "+PTX" => Some(Architectures { compiled, ptx: true }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_by_version() {
        let build = by_version("2.10.0").unwrap();
        assert_eq!((build.default_cuda, build.minimum_driver), ("12.8.90", "525.60.13"));
        assert_eq!(by_version("2.9.0+cu128").unwrap().version, "2.9.1");
        assert_eq!(by_version("2.15.0a0").map(|build| build.version), Some("2.15.0"));
        for version in ["", "2", "1.13.1", "nightly", "+cu128"] {
            assert_eq!(by_version(version), None, "{version}");
        }
    }

    #[test]
    fn architectures_where_the_table_tells() {
        let blackwell = (12, 0);
        let has = |torch, cuda| architectures(torch, cuda).map(|list| list.contains(&blackwell));
        assert_eq!(has("2.7.1", (12, 6)), Some(false));
        assert_eq!(has("2.7.1", (12, 8)), Some(true));
        assert_eq!(has("2.5.1", (12, 4)), Some(false));
        assert_eq!(has("2.10.0", (12, 8)), Some(true));
        assert_eq!(has("2.13.0", (13, 0)), None);
        assert_eq!(has("2.10.0", (11, 8)), None);
        assert_eq!(architectures("2.0.1", (11, 8)).unwrap().first(), Some(&(3, 7)));
    }

    #[test]
    fn code_runs_within_a_major_capability_and_ptx_beyond() {
        assert_eq!(runs_on("2.6.0", (12, 4), (8, 9)), Some(true));
        assert_eq!(runs_on("2.6.0", (12, 4), (12, 0)), Some(false));
        assert_eq!(runs_on("2.10.0", (12, 8), (7, 0)), Some(true));
        assert_eq!(runs_on("2.11.0", (12, 8), (7, 0)), Some(false));
        assert_eq!(runs_on("2.9.1", (12, 8), (12, 1)), Some(true));
        assert_eq!(runs_on("2.9.1", (13, 0), (13, 0)), Some(true), "by PTX");
        assert_eq!(runs_on("2.9.1", (12, 8), (13, 0)), Some(false));
    }
}
