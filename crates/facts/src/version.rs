//! Versions as this field writes them. `semver` refuses `535.183.01` (leading zero) and `12.4`.

use std::cmp::Ordering;
use std::fmt;

/// A driver version such as `535.183.01`, kept as written and compared by number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DriverVersion {
    text: String,
    parts: Vec<u32>,
}

impl DriverVersion {
    /// Reads a version of two or three numbers. The branch is from 60 up, which keeps CUDA
    /// versions (`12.4`) and kernel releases (`6.8.12`) out.
    pub fn parse(text: &str) -> Option<DriverVersion> {
        let text = text.trim();
        let parts: Option<Vec<u32>> = text
            .split('.')
            .map(|part| {
                let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                if digits && part.len() <= 4 { part.parse().ok() } else { None }
            })
            .collect();
        let parts = parts?;
        let plausible = matches!(parts.len(), 2 | 3) && (60..2000).contains(&parts[0]);
        plausible.then(|| DriverVersion { text: text.to_owned(), parts })
    }

    /// The branch, such as 535.
    pub fn branch(&self) -> u32 {
        self.parts[0]
    }

    /// True when all three parts are there: `550.54` could be any `550.54.x`.
    pub fn is_exact(&self) -> bool {
        self.parts.len() == 3
    }

    /// True when both name the same release. A two-part version is equal to a three-part one when
    /// the parts it has agree, since tools cut the third.
    pub fn same_release(&self, other: &DriverVersion) -> bool {
        self.parts.iter().zip(&other.parts).all(|(a, b)| a == b)
    }
}

impl PartialOrd for DriverVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DriverVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts.cmp(&other.parts).then_with(|| self.text.cmp(&other.text))
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A CUDA version: major and minor, which is what compatibility goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVersion {
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
}

impl CudaVersion {
    /// Reads `12.8`, `12.8.93` or `13`.
    pub fn parse(text: &str) -> Option<CudaVersion> {
        let mut parts = text.trim().split('.');
        let major: u32 = parts.next()?.parse().ok()?;
        let minor: u32 = match parts.next() {
            Some(minor) => minor.parse().ok()?,
            None => 0,
        };
        (major < 100 && minor < 100).then_some(CudaVersion { major, minor })
    }

    /// The driver API's integer, such as 12080.
    pub fn from_api(value: i64) -> Option<CudaVersion> {
        let value = u32::try_from(value).ok()?;
        (value >= 1000).then_some(CudaVersion { major: value / 1000, minor: value % 1000 / 10 })
    }

    /// A wheel tag without `cu`: `128`, `118`, `102`, `92`.
    pub fn from_tag(digits: &str) -> Option<CudaVersion> {
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) || !(2..=4).contains(&digits.len()) {
            return None;
        }
        let (major, minor) = digits.split_at(digits.len() - 1);
        Some(CudaVersion { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A kernel release such as `6.8.12-9-pve` or `5.14.0-570.23.1.el9_6.x86_64`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelRelease {
    text: String,
    version: (u32, u32, u32),
}

impl KernelRelease {
    /// Reads a release. It must begin with two or three numbers.
    pub fn parse(text: &str) -> Option<KernelRelease> {
        let text = text.trim();
        let head = text.split(|ch: char| ch != '.' && !ch.is_ascii_digit()).next()?;
        let mut numbers = head.split('.').filter(|part| !part.is_empty()).map(str::parse::<u32>);
        let major = numbers.next()?.ok()?;
        let minor = numbers.next()?.ok()?;
        let patch = numbers.next().and_then(Result::ok).unwrap_or(0);
        let plausible = (2..20).contains(&major) && minor < 1000 && text.len() < 100;
        plausible.then(|| KernelRelease { text: text.to_owned(), version: (major, minor, patch) })
    }

    /// Major and minor, which is what kernel interfaces change by.
    pub fn major_minor(&self) -> (u32, u32) {
        (self.version.0, self.version.1)
    }

    /// True when this is at least major.minor.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        self.major_minor() >= (major, minor)
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for KernelRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_versions_keep_their_zeros_and_compare_by_number() {
        let version = |text| DriverVersion::parse(text).unwrap();
        assert_eq!(version("535.183.01").to_string(), "535.183.01");
        assert!(version("535.54.03") < version("535.183.01"));
        assert!(version("550.54").same_release(&version("550.54.14")));
        assert!(!version("550.54.15").same_release(&version("550.54.14")));
        for text in ["12.4", "6.8.12-9-pve", "535", "535.x.1", "", "1.2.3.4"] {
            assert_eq!(DriverVersion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn cuda_versions_in_all_spellings() {
        let cuda = |major, minor| Some(CudaVersion { major, minor });
        assert_eq!(CudaVersion::parse("12.8.93"), cuda(12, 8));
        assert_eq!(CudaVersion::from_api(12080), cuda(12, 8));
        assert_eq!(CudaVersion::from_api(9000), cuda(9, 0));
        assert_eq!(CudaVersion::from_tag("128"), cuda(12, 8));
        assert_eq!(CudaVersion::from_tag("92"), cuda(9, 2));
        assert_eq!(CudaVersion::from_tag("12"), cuda(1, 2));
        assert_eq!(CudaVersion::parse("none"), None);
    }

    #[test]
    fn kernel_releases_with_distribution_suffixes() {
        let release = KernelRelease::parse("5.14.0-570.23.1.el9_6.x86_64").unwrap();
        assert_eq!(release.major_minor(), (5, 14));
        assert!(KernelRelease::parse("6.8.12-9-pve").unwrap().at_least(6, 8));
        assert_eq!(KernelRelease::parse("7.0.2-3-pve").unwrap().major_minor(), (7, 0));
        assert_eq!(KernelRelease::parse("590.48.01"), None);
        assert_eq!(KernelRelease::parse("pve"), None);
    }
}
