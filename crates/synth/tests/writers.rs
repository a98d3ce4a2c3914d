//! The writers against readers that this project did not write.
#![expect(clippy::unwrap_used, reason = "functions of tests fail as tests do, by panicking")]

use std::process::Command;

use object::{Object, ObjectSection};
use synth::driver_packages::{Branch, gsp_firmware};
use synth::firmware::GspFirmware;
use synth::kernel_log::{self, KernelLog};
use synth::kernel_module::KernelModule;
use synth::ld_cache::LdCache;
use synth::root::{FakeRoot, ListedNode, PciGpu, listing};
use synth::shared_library::SharedLibrary;
use tempfile::TempDir;

fn section_names(file: &[u8]) -> Vec<String> {
    let elf = object::File::parse(file).unwrap();
    elf.sections().map(|section| section.name().unwrap().to_owned()).collect()
}

#[test]
fn firmware_has_the_sections_of_the_real_files() {
    let file = GspFirmware::blackwell("590.48.01").image_bytes(10_000).build();
    let names = section_names(&file);
    assert_eq!(names.first().map(String::as_str), Some(".fwimage"));
    assert!(names.contains(&".fwsignature_gb20x".to_owned()), "{names:?}");
    let elf = object::File::parse(&*file).unwrap();
    assert_eq!(elf.architecture(), object::Architecture::Riscv64);
    let data = |name| elf.section_by_name(name).unwrap().data().unwrap().to_vec();
    assert_eq!(data(".fwversion"), b"590.48.01\0");
    assert_eq!(data(".fwimage").len(), 10_000);
    assert_eq!(data(".fwsignature_ga10x").len(), 4096);
}

/// The writer against a real file, where Debian's package can be had.
#[test]
fn firmware_is_laid_out_as_the_real_file() {
    let folder = match gsp_firmware(Branch::B550) {
        Ok(folder) => folder,
        Err(skipped) => {
            println!("{skipped}");
            return;
        }
    };
    let names = |file: &[u8]| {
        let mut names = section_names(file);
        names.retain(|name| name.starts_with(".fw"));
        names
    };
    for (file, written) in [
        ("gsp_ga10x.bin", GspFirmware::hopper("550.163.01")),
        ("gsp_tu10x.bin", GspFirmware::turing("550.163.01")),
    ] {
        let real = std::fs::read(folder.join(file)).unwrap();
        assert_eq!(names(&real), names(&written.build()), "{file}");
    }
}

#[test]
fn truncated_firmware_lacks_its_end() {
    let firmware = GspFirmware::hopper("550.163.01");
    assert_eq!(firmware.truncated(3000).len(), 3000);
    let elf = object::File::parse(&*firmware.truncated(3000)).is_ok();
    assert!(!elf, "the section table lies behind the cut");
}

#[test]
fn modules_carry_their_information() {
    let file = KernelModule::nvidia("590.48.01", true, "6.8.12-9-pve").build();
    let elf = object::File::parse(&*file).unwrap();
    let modinfo = elf.section_by_name(".modinfo").unwrap().data().unwrap().to_vec();
    let fields: Vec<_> = modinfo.split(|byte| *byte == 0).collect();
    assert!(fields.contains(&b"version=590.48.01".as_slice()));
    assert!(fields.contains(&b"license=Dual MIT/GPL".as_slice()));
}

#[test]
fn libraries_tell_their_soname() {
    use object::read::elf::{Dyn, ElfFile64, FileHeader};
    let file = SharedLibrary::new("libcuda.so.1").needs("libc.so.6").text("590.48.01").build();
    let elf = ElfFile64::<object::LittleEndian>::parse(&*file).unwrap();
    let sections = elf.elf_header().sections(object::LittleEndian, &*file).unwrap();
    let (entries, link) = sections.dynamic(object::LittleEndian, &*file).unwrap().unwrap();
    let strings = sections.strings(object::LittleEndian, &*file, link).unwrap();
    let of = |tag: object::elf::DynamicTag| {
        let entry = entries.iter().find(|entry| entry.tag(object::LittleEndian) == tag).unwrap();
        entry.string(object::LittleEndian, strings).unwrap()
    };
    assert_eq!(of(object::elf::DT_SONAME), b"libcuda.so.1");
    assert_eq!(of(object::elf::DT_NEEDED), b"libc.so.6");
}

#[test]
fn ldconfig_reads_the_cache() {
    let folder = TempDir::new().unwrap();
    for (name, cache) in [("new", LdCache::new()), ("old", LdCache::new().with_legacy_part())] {
        let file = folder.path().join(name);
        let cache = cache
            .entry("libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1")
            .entry("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6");
        std::fs::write(&file, cache.build()).unwrap();
        let Ok(output) = Command::new("/sbin/ldconfig").arg("-p").arg("-C").arg(&file).output()
        else {
            println!("skipped: no ldconfig here");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("=> /usr/local/cuda/compat/libcuda.so.1"), "{name}: {output:?}");
        assert!(said.contains("2 libs found"), "{name}: {said}");
    }
}

#[test]
fn kernel_logs_have_the_known_forms() {
    let log = KernelLog::new().line(12_345, "NVRM: Xid (PCI:0000:01:00): 79, pid=1");
    assert_eq!(log.dmesg(), "[   12.345000] NVRM: Xid (PCI:0000:01:00): 79, pid=1\n");
    assert_eq!(log.kmsg(), "4,1000,12345000,-;NVRM: Xid (PCI:0000:01:00): 79, pid=1\n");
    assert!(log.journal("pve").starts_with("Jun 01 00:00:12 pve kernel: NVRM: Xid"));
    assert!(log.dmesg_with_dates().starts_with("[Mon Jun  1 00:00:12 2026] NVRM"));
    assert_eq!(kernel_log::with_crlf("a\nb\n"), "a\r\nb\r\n");
    assert_eq!(kernel_log::as_utf16("a"), [0xff, 0xfe, b'a', 0]);
}

#[test]
fn a_root_is_consistent() {
    let folder = TempDir::new().unwrap();
    let root = FakeRoot::new(folder.path());
    let gpu = PciGpu::rtx_pro_6000(0, "590.48.01");
    root.machine("6.8.12-9-pve").unwrap();
    root.driver("590.48.01", true, 511).unwrap().gpu(0, &gpu).unwrap();
    let device = root.at("/sys/bus/pci/devices/0000:01:00.0");
    assert_eq!(std::fs::read_to_string(device.join("device")).unwrap(), "0x2bb5\n");
    let driver = std::fs::canonicalize(device.join("driver")).unwrap();
    assert!(driver.ends_with("sys/bus/pci/drivers/nvidia"), "{}", driver.display());
    assert!(std::fs::canonicalize(device.join("iommu_group")).is_ok());
    let resource = std::fs::read_to_string(device.join("resource")).unwrap();
    assert_eq!(resource.lines().count(), 7, "{resource}");
}

#[test]
fn listings_look_like_ls() {
    let text = listing(&ListedNode::driver(1, 511));
    assert!(text.starts_with("crw-rw-rw- 1 root root 195,   0 Jun  1 12:00 /dev/nvidia0\n"));
    assert!(text.contains("511,   1 Jun  1 12:00 /dev/nvidia-uvm-tools\n"), "{text}");
}
