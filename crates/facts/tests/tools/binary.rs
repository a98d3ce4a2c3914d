//! Firmware, libraries, modules, the loader's cache, mappings and the bus, up to the facts.

use std::cell::RefCell;

use crate::support::{command, file, gsp, kernel_module, library, loader_cache};
use facts::Facts;
use facts::extract::binary;
use facts::model::library::LibraryKind;
use facts::model::module::Flavour;
use facts::model::pci::PciAddress;
use facts::observed::Observed;
use facts::parse::elf::reader_of;
use facts::parse::elf_summary::{self, ElfSummary};
use facts::parse::{decompress, elf_gsp, elf_library, lspci, maps, modinfo, readelf_sections};
use facts::raw::{ItemName, RawItem, RawState};

const READELF: &str = include_str!("../data/readelf-gsp.580.159.04.txt");
const LSPCI: &str = include_str!("../data/lspci-nnvv.txt");
const GSP_PATH: &str = "/lib/firmware/nvidia/590.48.01/gsp_ga10x.bin";

fn facts_of(items: &[RawItem]) -> Facts {
    let mut facts = Facts::default();
    for item in items {
        assert!(binary::apply(item, &mut facts), "{}", item.name);
    }
    binary::conclude(&mut facts);
    facts
}

#[test]
fn a_gsp_file_is_judged_by_a_few_small_reads() {
    let bytes = gsp("590.48.01", &["gb20x", "cc_gb20x", "ad10x"]);
    let reads = RefCell::new(Vec::new());
    let read_at = |offset: u64, length: usize| {
        reads.borrow_mut().push(length);
        reader_of(&bytes)(offset, length)
    };
    let summary = elf_gsp::read(&read_at);
    assert_eq!(summary.version.as_ref().map(ToString::to_string).as_deref(), Some("590.48.01"));
    assert_eq!(summary.families, ["ad10x", "gb20x"]);
    assert_eq!(summary.confidential, ["gb20x"]);
    assert!(summary.complete && summary.faults.is_empty(), "{summary:?}");
    let reads = reads.into_inner();
    assert!(reads.len() <= 5 && reads.iter().all(|length| *length < 2048), "{reads:?}");
}

#[test]
fn a_cut_or_foreign_gsp_file_is_told() {
    let whole = gsp("590.48.01", &["gb20x"]);
    let faults = |bytes: &[u8]| elf_gsp::read(&reader_of(bytes)).faults.join("; ");
    assert!(faults(&whole[..whole.len() - 100]).contains("truncated"));
    assert!(faults(&whole[..40]).contains("too short"));
    assert!(faults(&[b'x'; 100]).contains("not an ELF file"));
    assert!(faults(&library("libcuda.so.1", 10, 1, b"")).contains("x86_64"));
    for length in 0..whole.len() {
        let summary = elf_gsp::read(&reader_of(&whole[..length]));
        assert!(!summary.complete && !summary.faults.is_empty(), "cut at {length}");
    }
}

#[test]
fn firmware_files_enter_by_what_they_are() {
    let missing = RawItem::with_state(
        ItemName::File("/lib/firmware/nvidia/590.48.01/gsp_tu10x.bin".to_owned()),
        RawState::Absent,
    );
    let facts = facts_of(&[file(GSP_PATH, gsp("590.48.01", &["gb20x"])), missing]);
    let files = facts.firmware.files.value().unwrap();
    assert_eq!(files[0].families.value().unwrap(), &["gb20x"]);
    assert!(files[0].families_complete);
    assert!(facts.firmware.missing[0].value.ends_with("gsp_tu10x.bin"));
}

#[test]
fn parts_of_the_strings_add_up_and_prove_no_absence() {
    let mut facts = Facts::default();
    let strings = "kernel_gb20y.elf\nkernel_gb20x.elf\nfwsignature_gb20y\n";
    let mut item = file(GSP_PATH, strings);
    item.partial = true;
    binary::apply_gsp_text(&item, GSP_PATH, "strings", &mut facts);
    let mut item = file(GSP_PATH, ".fwsignature_ad10x\n590.48.01\n");
    item.partial = true;
    binary::apply_gsp_text(&item, GSP_PATH, "strings", &mut facts);
    let files = facts.firmware.files.value().unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].families.value().unwrap(), &["ad10x", "gb20x", "gb20y"]);
    assert_eq!(files[0].version.as_ref().map(ToString::to_string).as_deref(), Some("590.48.01"));
    assert!(!files[0].families_complete);
}

#[test]
fn readelf_shows_whole_tables() {
    let tables = readelf_sections::parse(READELF).value;
    assert_eq!(tables.len(), 2);
    assert!(tables.iter().all(|table| table.complete));
    assert_eq!(tables[0].confidential, ["gb10x", "gb20x", "gh100"]);
    assert_eq!(tables[1].families, ["ga100", "tu10x", "tu11x"]);
    let part: String = READELF.lines().filter(|line| line.contains("fwsig")).collect();
    assert!(readelf_sections::parse(&part).value.iter().all(|table| !table.complete));
}

#[test]
fn libraries_are_told_from_stubs_and_broken_files() {
    let path = "/usr/lib/x86_64-linux-gnu/libcuda.so.590.48.01";
    let driver = library("libcuda.so.1", 200_000, 600, b"");
    let read = |bytes: &[u8], path: &str| elf_library::read(&reader_of(bytes), path);
    let summary = read(&driver, path);
    assert_eq!(summary.kind, Some(LibraryKind::Driver));
    assert_eq!(summary.soname.as_deref(), Some("libcuda.so.1"));
    assert_eq!(summary.version.as_ref().map(ToString::to_string).as_deref(), Some("590.48.01"));

    let stub = library("libcuda.so.1", 9_600, 600, b"");
    assert_eq!(read(&stub, "/opt/x/libcuda.so").kind, Some(LibraryKind::Stub));
    let small = library("libcuda.so.1", 300, 12, b"");
    assert_eq!(read(&small, "/opt/x/libcuda.so.1").kind, Some(LibraryKind::Driver));
    assert_eq!(
        read(&driver, "/usr/local/cuda/lib64/stubs/libcuda.so").kind,
        Some(LibraryKind::Stub)
    );
    assert_eq!(
        read(&driver, "/usr/local/cuda/compat/libcuda.so.1").kind,
        Some(LibraryKind::Compat)
    );
    assert_eq!(read(&driver, "/usr/lib/wsl/lib/libcuda.so.1").kind, Some(LibraryKind::Wsl));

    let mut narrow = driver.clone();
    narrow[18] = 3;
    assert_eq!(read(&narrow, path).kind, Some(LibraryKind::Broken));
    assert_eq!(read(&driver[..driver.len() / 2], path).kind, Some(LibraryKind::Broken));
    assert_eq!(read(b"", path).kind, Some(LibraryKind::Broken));
}

#[test]
fn without_a_suffix_the_version_is_found_in_the_strings() {
    let mut strings = vec![0_u8; (1 << 20) - 5];
    for text in ["550.163.01", "535.54.02", "text 999.1.1 x", "450.36.05"] {
        strings.extend_from_slice(b"\x96\xa3");
        strings.extend_from_slice(text.as_bytes());
        strings.push(0);
    }
    let bytes = library("libcuda.so.1", 200_000, 600, &strings);
    let summary = elf_library::read(&reader_of(&bytes), "/x/libcuda.so.1");
    assert_eq!(summary.version.as_ref().map(ToString::to_string).as_deref(), Some("550.163.01"));
}

#[test]
fn the_compact_form_round_trips_and_cannot_be_forged() {
    let gsp = elf_gsp::read(&reader_of(&gsp("590.48.01", &["gb20x", "cc_gb20x"])));
    let mut library =
        elf_library::read(&reader_of(&library("libcuda.so.1", 9, 9, b"")), "/x/libcuda.so.1");
    library.soname = Some("x\nlibrary-kind stub".to_owned());
    let module = modinfo::read(&kernel_module(&["version=590.48.01", "license=Dual MIT/GPL"]));
    for summary in [ElfSummary::Gsp(gsp), ElfSummary::Module(module)] {
        let text = elf_summary::to_text(&summary);
        let parsed = elf_summary::parse(&text);
        assert_eq!(parsed.value, Some(summary));
        assert_eq!(parsed.complaints, []);
    }
    let real_path = Some("/x/libcuda.so.590.48.01".to_owned());
    let text = elf_summary::to_text(&ElfSummary::Library { library, real_path });
    let Some(ElfSummary::Library { library, .. }) = elf_summary::parse(&text).value else {
        panic!("{text}")
    };
    assert_eq!(library.kind, Some(LibraryKind::Driver));
    assert!(elf_summary::parse("gpudx-elf 2\nkind gsp\n").value.is_none());
}

#[test]
fn modules_are_read_plain_and_compressed() {
    use std::io::Write as _;
    let bytes = kernel_module(&[
        "license=NVIDIA",
        "version=535.183.01",
        "firmware=nvidia/535.183.01/gsp_ga10x.bin",
        "parm=NVreg_x:=1",
        "vermagic=6.8.0-45-generic SMP preempt mod_unload modversions ",
    ]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).unwrap();
    let gzip = gzip.finish().unwrap();
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(&bytes).unwrap();
    let xz = xz.finish().unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(&bytes[..], level);
    for (end, content) in [("", bytes), (".gz", gzip), (".xz", xz), (".zst", zstd)] {
        let path = format!("/lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko{end}");
        let facts = facts_of(&[file(&path, &content)]);
        let module = &facts.module.on_disk.value().unwrap()[0];
        assert_eq!(module.flavour, Some(Flavour::Proprietary), "{end}");
        assert_eq!(module.version.as_ref().map(ToString::to_string).as_deref(), Some("535.183.01"));
        assert_eq!(module.vermagic.as_deref(), Some("6.8.0-45-generic"));
        assert_eq!(module.kernel.as_deref(), Some("6.8.0-45-generic"));
        let cut = modinfo::read(&content[..content.len() / 2]);
        assert!(!cut.faults.is_empty(), "{end}");
    }
}

#[test]
fn what_unfolds_without_end_is_refused() {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&vec![0; 1 << 20]).unwrap();
    let bomb = gzip.finish().unwrap();
    let fault = decompress::decompress_within(&bomb, 1000).unwrap_err();
    assert!(matches!(fault, decompress::DecompressFault::TooLarge(_)));
    assert_eq!(decompress::decompress_within(&bomb, 1 << 20).unwrap().len(), 1 << 20);
    assert_eq!(&*decompress::decompress(b"plain").unwrap(), b"plain");
}

#[test]
fn the_modinfo_command() {
    let text = "filename:       /lib/modules/6.8.12-9-pve/updates/dkms/nvidia.ko\n\
                firmware:       nvidia/590.48.01/gsp_tu10x.bin\n\
                version:        590.48.01\n\
                license:        Dual MIT/GPL\n\
                srcversion:     3F2A9D5B1C\n\
                vermagic:       6.8.12-9-pve SMP preempt mod_unload modversions \n\
                signer:         DKMS module signing key\n\
                parm:           NvSwitchRegDwords:NvSwitch regkey (charp)\n";
    let mut facts = Facts::default();
    binary::apply_modinfo(&command("modinfo nvidia", text), &mut facts);
    let module = &facts.module.on_disk.value().unwrap()[0];
    assert_eq!(module.name, "nvidia");
    assert_eq!(module.flavour, Some(Flavour::Open));
    assert_eq!(module.kernel.as_deref(), Some("6.8.12-9-pve"));
    let parsed = modinfo::parse("modinfo: ERROR: Module nvidia not found.\n");
    assert!(parsed.value.is_empty());
    assert_eq!(parsed.complaints.len(), 1);
}

#[test]
fn the_loader_finds_what_its_cache_says() {
    const WIDE: u32 = 0x0303;
    const NARROW: u32 = 0x0003;
    let cache = loader_cache(&[
        ("libcuda.so.1", "/lib/i386-linux-gnu/libcuda.so.1", NARROW),
        ("libcuda.so.1", "/lib/x86_64-linux-gnu/libcuda.so.1", WIDE),
        ("libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1", WIDE),
    ]);
    let summary = "gpudx-elf 1\nkind library\nsoname libcuda.so.1\n\
                   real-path /usr/lib/x86_64-linux-gnu/libcuda.so.590.48.01\nversion 590.48.01\n\
                   library-kind driver\n";
    let facts = facts_of(&[
        file("/etc/ld.so.cache", &cache),
        file("/lib/x86_64-linux-gnu/libcuda.so.1", summary),
    ]);
    let cuda = facts.library.cuda.value().unwrap();
    assert_eq!(cuda.path, "/lib/x86_64-linux-gnu/libcuda.so.1");
    assert_eq!(cuda.real_path, "/usr/lib/x86_64-linux-gnu/libcuda.so.590.48.01");
    assert_eq!(cuda.version.as_ref().map(ToString::to_string).as_deref(), Some("590.48.01"));
    let others: Vec<_> = facts.library.others.iter().map(|file| file.kind).collect();
    assert_eq!(others, [LibraryKind::Compat]);
    assert!(facts.library.nvml.absent().is_some(), "a whole cache without it shows its absence");

    let cut = facts_of(&[file("/etc/ld.so.cache", &cache[..60])]);
    assert!(cut.library.nvml.is_unknown(), "half a cache shows nothing");
}

#[test]
fn both_forms_of_the_cache_in_one_file() {
    let new = loader_cache(&[("libcuda.so.1", "/lib/libcuda.so.1", 0x0303)]);
    let mut both = b"ld.so-1.7.0\0".to_vec();
    both.extend_from_slice(&1_u32.to_le_bytes());
    both.extend_from_slice(&[0; 12]);
    both.resize(both.len().div_ceil(8) * 8, 0);
    both.extend_from_slice(&new);
    let facts = facts_of(&[file("/etc/ld.so.cache", &both)]);
    assert_eq!(
        facts.library.cuda.value().map(|file| file.path.as_str()),
        Some("/lib/libcuda.so.1")
    );
}

#[test]
fn ldconfig_filtered_for_a_name_shows_its_absence() {
    let mut item = command("ldconfig -p", "");
    item.partial = true;
    item.filter = Some("libcuda".to_owned());
    let mut facts = Facts::default();
    binary::apply_ldconfig(&item, &mut facts);
    assert!(facts.library.cuda.absent().is_some());
    assert!(facts.library.nvml.is_unknown());
    let line = "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1\n";
    binary::apply_ldconfig(&command("ldconfig -p", line), &mut facts);
    assert!(facts.library.cuda.is_seen());
}

#[test]
fn mappings_tell_what_is_really_used() {
    let text = "7f0a00000000-7f0a01000000 r-xp 00000000 08:01 131 /usr/local/cuda/compat/libcuda.so.575.57.08\n\
                7f0a01000000-7f0a02000000 r--p 01000000 08:01 131 /usr/local/cuda/compat/libcuda.so.575.57.08\n\
                7f0b00000000-7f0b00010000 r-xp 00000000 08:01 132 /usr/lib/libnvidia-ml.so.550.54.15 (deleted)\n\
                7f0c00000000-7f0c00010000 r-xp 00000000 08:01 133 /usr/local/vgpu/libvgpu.so\n\
                7f0d00000000-7f0d00010000 rw-s 00000000 00:06 134 /dev/nvidiactl\n\
                7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]\n";
    let parsed = maps::parse(text);
    assert_eq!(parsed.complaints, []);
    assert_eq!(parsed.value.driver_libraries.len(), 2);
    assert!(parsed.value.driver_libraries[1].value.deleted);
    assert_eq!(parsed.value.nodes[0].value, "/dev/nvidiactl");
    let facts = facts_of(&[file("/proc/self/maps", text)]);
    let cuda = facts.library.cuda.value().unwrap();
    assert_eq!(cuda.kind, LibraryKind::Compat);
    assert_eq!(cuda.version.as_ref().map(ToString::to_string).as_deref(), Some("575.57.08"));
    assert_eq!(facts.library.interposers[0].0, "/usr/local/vgpu/libvgpu.so");
    assert_eq!(facts.library.interposers[0].1.line, 4);
}

#[test]
fn a_link_tells_what_it_leads_to() {
    let facts = facts_of(&[file("/usr/lib/libcuda.so.1", "libcuda.so.535.183.01")]);
    let file = &facts.library.others[0];
    assert_eq!(file.real_path, "/usr/lib/libcuda.so.535.183.01");
    assert_eq!(file.version.as_ref().map(ToString::to_string).as_deref(), Some("535.183.01"));
}

#[test]
fn the_bus_by_lspci() {
    let mut facts = Facts::default();
    binary::apply_lspci(&command("lspci -nnvv", LSPCI), &mut facts);
    let devices = facts.pci.devices.value().unwrap();
    assert_eq!(devices.len(), 2);
    let gpu = &devices[0];
    assert!(gpu.is_gpu());
    assert_eq!((gpu.vendor, gpu.device), (0x10de, Some(0x2bb5)));
    assert_eq!(gpu.subsystem, Some((0x10de, 0x204e)));
    assert_eq!(gpu.driver.value().map(String::as_str), Some("vfio-pci"));
    let origin = gpu.driver.origin().unwrap();
    assert_eq!((&*origin.item, origin.line), ("$ lspci -nnvv", 18));
    let link = gpu.link.value().unwrap();
    assert!((link.current_gts - 2.5).abs() < 0.01 && (link.max_gts - 32.0).abs() < 0.01);
    assert_eq!((link.current_width, link.max_width), (8, 16));
    let bars: Vec<_> =
        gpu.bars.value().unwrap().iter().map(|bar| (bar.start, bar.size_bytes)).collect();
    assert_eq!(bars, [(0xb000_0000, 64 << 20), (0x380_0000_0000, 128 << 30), (0, 32 << 20)]);
    assert_eq!((gpu.numa_node.value(), gpu.iommu_group.value()), (Some(&0), Some(&14)));
    assert_eq!(facts.pci.lost[0].value, PciAddress::parse("02:00.0"));
    let (bridge, flags) = &facts.pci.access_control[0].value;
    assert_eq!(Some(*bridge), PciAddress::parse("00:01.1"));
    assert!(flags.contains("ReqRedir+"));
}

#[test]
fn shorter_listings_of_the_bus() {
    let plain = "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n\
                 01:00.1 Audio device: NVIDIA Corporation GA102 High Definition Audio Controller (rev a1)\n\
                 41:00.0 3D controller: NVIDIA Corporation Device 2bb5 (rev a1)\n";
    let listing = lspci::parse(plain).value;
    let ids: Vec<_> = listing
        .devices
        .iter()
        .map(|found| (found.value.device.is_gpu(), found.value.device.device))
        .collect();
    assert_eq!(ids, [(true, None), (false, None), (true, Some(0x2bb5))]);
    let numeric = lspci::parse("0000:01:00.0 0302: 10de:2335 (rev a1)\n").value;
    assert_eq!(numeric.devices[0].value.device.class, Some(0x03_02_00));

    let mut facts = Facts::default();
    let other = "00:00.0 Host bridge: Intel Corporation 440FX (rev 02)\n";
    binary::apply_lspci(&command("lspci", other), &mut facts);
    assert!(matches!(facts.pci.devices, Observed::Absent(_)));
    let mut item = command("lspci", other);
    item.partial = true;
    let mut facts = Facts::default();
    binary::apply_lspci(&item, &mut facts);
    assert!(facts.pci.devices.is_unknown(), "a part shows no absence");
}

#[test]
fn other_files_are_left_to_others() {
    for path in [
        "/proc/modules",
        "/etc/os-release",
        "/usr/lib/libcudart.so.12",
        "/lib/firmware/nvidia/ad102/gsp/gsp-570.144.bin",
    ] {
        assert!(!binary::apply(&file(path, b"x"), &mut Facts::default()), "{path}");
    }
}
