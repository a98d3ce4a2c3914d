//! ELF files, module files, the loader's cache, compressed data.
#![no_main]

use facts::parse::{decompress, elf, elf_gsp, elf_library, ld_cache, modinfo};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = elf_gsp::read(&elf::reader_of(data));
    let _ = elf_library::read(&elf::reader_of(data), "/usr/lib/libcuda.so.1");
    let _ = modinfo::read(data);
    let _ = ld_cache::read(data);
    let _ = decompress::decompress_within(data, 1 << 20);
});
