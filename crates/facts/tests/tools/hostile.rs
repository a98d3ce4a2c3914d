//! Laws of the parsers of tools' outputs and binary files: no input makes them panic.

use crate::support::{command, file, gsp, kernel_module, library, loader_cache};
use facts::Facts;
use facts::extract::{binary, collect_env, log, smi};
use facts::parse::elf::reader_of;
use facts::parse::{
    collect_env as collect_env_text, decompress, elf_gsp, elf_library, elf_summary, kernel_log,
    ld_cache, lspci, maps, modinfo, readelf_sections, smi_csv, smi_list, smi_message, smi_query,
    smi_table, smi_topo, strings_gsp,
};
use proptest::prelude::*;

/// Texts that these formats are made of, so that random text comes near them.
const PIECES: [&str; 56] = [
    "| NVIDIA-SMI 590.48.01  Driver Version: 590.48.01  CUDA Version: 13.1 |",
    "|   0  NVIDIA H200   On  | 00000000:01:00.0 Off | ERR! |",
    "|",
    "+-----+",
    "|=====|",
    "| MIG devices: |",
    "| Processes: |",
    "  0  7  0  0 ",
    "MiB / ",
    "ERR!",
    "N/A",
    "GPU ",
    "GPU 0: ",
    "GPU 00000000:01:00.0",
    "(UUID: ",
    ")",
    "MIG ",
    " : ",
    "    Fabric",
    "        State",
    "\tGPU0\tGPU1",
    "GPU0\tX\t",
    "NV18",
    "\x1b[",
    "\x1b[4m",
    "[",
    "]",
    "[   12.5] ",
    "<6>",
    "1 ",
    "6,1,2,-;",
    "Nov 30 08:36:01 ",
    "2026-11-30T08:36:01",
    "+00:00",
    "Mon ",
    "kernel: ",
    "NVRM: Xid (PCI:0000:01:00): 79, ",
    "NVRM: API mismatch: the client has the version ",
    "func+0x1/0x2",
    "01:00.0 3D controller [0302]: NVIDIA Corporation [10de:2335]",
    "\tLnkSta:\tSpeed ",
    "\tRegion 0: Memory at ",
    "[size=",
    "PyTorch version: ",
    "[pip3] torch==",
    "[conda] ",
    "libcuda.so.1 (",
    ") => ",
    "7f00-7f01 r-xp 0 0 0 /libcuda.so.1",
    "filename: ",
    "gpudx-elf 1\n",
    "kind gsp\n",
    "[ 1] .fwsignature_",
    "\r",
    "\n",
    "é",
];

fn near_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
        1 => "[0-9a-f:.]{0,12}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn read_text(text: &str) {
    smi_table::parse(text);
    smi_list::parse(text);
    smi_query::parse(text);
    smi_topo::parse(text);
    smi_csv::parse(text, Some("nvidia-smi --query-gpu=index,name --format=csv,noheader"));
    smi_csv::parse(text, None);
    smi_message::parse(text);
    collect_env_text::parse(text);
    kernel_log::parse(text.as_bytes());
    strings_gsp::parse(text);
    readelf_sections::parse(text);
    elf_summary::parse(text);
    modinfo::parse(text);
    ld_cache::parse(text);
    maps::parse(text);
    lspci::parse(text);
    let item = command("nvidia-smi", text);
    let mut facts = Facts::default();
    smi::apply(&item, &mut facts);
    log::apply(&item, &mut facts);
    collect_env::apply(&item, &mut facts);
    binary::apply_modinfo(&item, &mut facts);
    binary::apply_lspci(&item, &mut facts);
    binary::apply_ldconfig(&item, &mut facts);
    binary::apply_gsp_text(&item, "/lib/firmware/gsp.bin", "readelf", &mut facts);
    binary::conclude(&mut facts);
}

fn read_bytes(bytes: &[u8]) {
    let read_at = reader_of(bytes);
    elf_gsp::read(&read_at);
    elf_library::read(&read_at, "/x/libcuda.so.1");
    modinfo::read(bytes);
    ld_cache::read(bytes);
    kernel_log::parse(bytes);
    let _ = decompress::decompress_within(bytes, 1 << 16);
    let mut facts = Facts::default();
    for path in [
        "/lib/firmware/nvidia/590.48.01/gsp_ga10x.bin",
        "/usr/lib/libcuda.so.1",
        "/lib/modules/6.8/nvidia.ko.zst",
        "/etc/ld.so.cache",
        "/proc/self/maps",
    ] {
        binary::apply(&file(path, bytes), &mut facts);
    }
    binary::conclude(&mut facts);
}

/// A whole file of one of the binary formats.
fn whole_files() -> Vec<Vec<u8>> {
    vec![
        gsp("590.48.01", &["gb20x", "cc_gb20x"]),
        library("libcuda.so.1", 300, 60, b"\x00590.48.01\x00"),
        kernel_module(&["version=590.48.01", "license=NVIDIA"]),
        loader_cache(&[("libcuda.so.1", "/lib/libcuda.so.1", 0x303)]),
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec(),
        b"\xfd7zXZ\0\0\x04".to_vec(),
        b"\x28\xb5\x2f\xfd\x24\x05".to_vec(),
        b"ld.so-1.7.0\0\xff\xff\xff\xff".to_vec(),
    ]
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in near_text()) {
        read_text(&text);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        read_bytes(&bytes);
        read_text(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_damaged_file_makes_a_parser_panic(
        which in 0_usize..8,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        keep in any::<prop::sample::Index>(),
        tail in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = whole_files().swap_remove(which);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(keep.index(bytes.len() + 1));
        bytes.extend(tail);
        read_bytes(&bytes);
    }

    #[test]
    fn any_summary_is_read_back(
        families in prop::collection::btree_set("(ga|gb|tu|ad)[0-9]{2,3}[xy]?", 0..6),
        complete in any::<bool>(),
        fault in "\\PC{0,20}",
    ) {
        let mut summary = elf_gsp::GspSummary { complete, ..elf_gsp::GspSummary::default() };
        for family in &families {
            summary.add_section_name(&format!(".fwsignature_{family}"));
        }
        if !fault.trim().is_empty() {
            summary.faults.push(fault);
        }
        let summary = elf_summary::ElfSummary::Gsp(summary);
        let parsed = elf_summary::parse(&elf_summary::to_text(&summary));
        prop_assert_eq!(parsed.value, Some(summary));
    }
}
