//! Which file the loader would map for a name, worked out without loading it: LD_LIBRARY_PATH,
//! then the loader's cache, then the default folders (ld.so(8)).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use facts::parse::ld_cache::{self, CacheAbi, CacheEntry};

use super::reader::{self, Reader};

/// The loader's cache.
const CACHE: &str = "/etc/ld.so.cache";
/// Largest cache that is read; a full desktop's has half a MiB.
const CACHE_LIMIT_BYTES: u64 = 16 << 20;

/// Folders that the loader searches last, on Debian's kin and on the others.
#[cfg(target_arch = "x86_64")]
const DEFAULT_FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// Folders that the loader searches last, on Debian's kin and on the others.
#[cfg(not(target_arch = "x86_64"))]
const DEFAULT_FOLDERS: &[&str] = &[
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Subfolders that the loader tries first in each folder of LD_LIBRARY_PATH (glibc 2.33 and later).
const HARDWARE_FOLDERS: &[&str] =
    &["glibc-hwcaps/x86-64-v4", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2"];

/// First bytes of a 64-bit little-endian ELF file.
const ELF_64_LITTLE: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];

/// Where a file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// In a folder of LD_LIBRARY_PATH.
    Environment,
    /// In the loader's cache.
    Cache,
    /// In a default folder.
    Default,
}

impl FoundBy {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            FoundBy::Environment => "LD_LIBRARY_PATH",
            FoundBy::Cache => "ld.so.cache",
            FoundBy::Default => "default folder",
        }
    }
}

/// What the loader goes by.
pub(super) struct Search<'a> {
    reader: &'a Reader,
    environment: Vec<String>,
    cache: Vec<CacheEntry>,
}

impl<'a> Search<'a> {
    /// Takes the folders of LD_LIBRARY_PATH and the cache of the machine. For the root of another
    /// machine this process's variables mean nothing.
    pub(super) fn new(reader: &'a Reader, library_path: Option<String>) -> Search<'a> {
        let environment = library_path.unwrap_or_default();
        // Colons and semicolons part folders; an empty one is the working folder.
        let environment: Vec<String> = environment
            .split([':', ';'])
            .filter(|_| !environment.is_empty())
            .map(|folder| if folder.is_empty() { ".".to_owned() } else { folder.to_owned() })
            .collect();
        let cache = ld_cache::read(&cache_bytes(reader).unwrap_or_default()).value;
        Search { reader, environment, cache }
    }

    /// The file that would be mapped for a name.
    pub(super) fn find(&self, name: &str) -> Option<(String, FoundBy)> {
        self.in_environment(name)
            .map(|path| (path, FoundBy::Environment))
            .or_else(|| self.in_cache(name).map(|path| (path, FoundBy::Cache)))
            .or_else(|| self.in_default(name).map(|path| (path, FoundBy::Default)))
    }

    /// The folders in which this machine's loader looks, for listing what else lies there.
    pub(super) fn folders(&self) -> Vec<String> {
        let cached = self.cache.iter().filter_map(|entry| {
            let driver =
                entry.name.starts_with("libcuda.so") || entry.name.starts_with("libnvidia-ml.so");
            let (folder, _) = entry.path.rsplit_once('/').filter(|_| driver)?;
            Some(folder.to_owned())
        });
        let default = DEFAULT_FOLDERS.iter().map(|folder| (*folder).to_owned());
        self.environment.iter().cloned().chain(cached).chain(default).collect()
    }

    fn in_environment(&self, name: &str) -> Option<String> {
        let places = self.environment.iter().flat_map(|folder| {
            let hardware = HARDWARE_FOLDERS.iter().map(move |sub| format!("{folder}/{sub}/{name}"));
            hardware.chain([format!("{folder}/{name}")])
        });
        self.first_that_loads(places)
    }

    fn in_cache(&self, name: &str) -> Option<String> {
        let fitting = |entry: &&CacheEntry| entry.name == name && entry.abi == CacheAbi::Wide;
        self.first_that_loads(self.cache.iter().filter(fitting).map(|entry| entry.path.clone()))
    }

    fn in_default(&self, name: &str) -> Option<String> {
        self.first_that_loads(DEFAULT_FOLDERS.iter().map(|folder| format!("{folder}/{name}")))
    }

    /// The loader passes over files of another word size; any other file ends its search, be it
    /// usable or not.
    fn first_that_loads(&self, mut places: impl Iterator<Item = String>) -> Option<String> {
        places.find(|path| match first_bytes(&self.reader.place(path)) {
            Some(bytes) => !bytes.starts_with(b"\x7fELF") || bytes == ELF_64_LITTLE,
            None => false,
        })
    }
}

fn cache_bytes(reader: &Reader) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = reader::open(&reader.place(CACHE)).ok()?;
    file.take(CACHE_LIMIT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The first bytes of a plain file; `None` when there is none that can be read.
fn first_bytes(place: &Path) -> Option<Vec<u8>> {
    let file: File = reader::open(place).ok()?;
    let mut bytes = Vec::new();
    file.take(6).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_first_and_other_word_sizes_are_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, content: &[u8]| {
            let place = root.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, content).unwrap();
        };
        let mut narrow = ELF_64_LITTLE;
        narrow[4] = 1;
        put("/usr/lib64/libcuda.so.1", &ELF_64_LITTLE);
        put("/opt/narrow/libcuda.so.1", &narrow);
        put("/opt/wide/libcuda.so.1", &ELF_64_LITTLE);
        let reader = Reader::new(root.path());
        let find =
            |path: Option<&str>| Search::new(&reader, path.map(str::to_owned)).find("libcuda.so.1");
        let default = Some(("/usr/lib64/libcuda.so.1".to_owned(), FoundBy::Default));
        assert_eq!(find(None), default);
        assert_eq!(find(Some("/opt/narrow")), default);
        let wide = Some(("/opt/wide/libcuda.so.1".to_owned(), FoundBy::Environment));
        assert_eq!(find(Some("/opt/narrow:/opt/wide")), wide);
        assert_eq!(Search::new(&reader, None).find("libnvidia-ml.so.1"), None);
    }
}
