//! nvidia-smi in its forms and generations, up to the facts.

use crate::support::command;
use facts::Facts;
use facts::extract::smi;
use facts::model::nvml::NvmlResult;
use facts::model::pci::PciAddress;
use facts::observed::Observed;
use facts::parse::{smi_csv, smi_list, smi_query, smi_table, smi_topo};
use facts::raw::{ItemName, RawItem, RawState};
use facts::version::{CudaVersion, DriverVersion};

const TABLE_390: &str = include_str!("../data/nvidia-smi.390.txt");
const TABLE_470_MIG: &str = include_str!("../data/nvidia-smi.470-mig.txt");
const TABLE_535_LOST: &str = include_str!("../data/nvidia-smi.535-lost.txt");
const TABLE_590: &str = include_str!("../data/nvidia-smi.590.txt");
const QUERY: &str = include_str!("../data/nvidia-smi-q.h200-x2.txt");
const TOPO: &str = include_str!("../data/nvidia-smi-topo-m.txt");

fn facts_of(item: &RawItem) -> Facts {
    let mut facts = Facts::default();
    smi::apply(item, &mut facts);
    facts
}

fn driver(text: &str) -> Option<DriverVersion> {
    DriverVersion::parse(text)
}

#[test]
fn the_classic_table_without_cuda_version() {
    let table = smi_table::parse(TABLE_390);
    assert_eq!(table.complaints, []);
    let table = table.value;
    let header = table.header.unwrap();
    assert_eq!((header.line, header.value.smi.as_deref()), (3, Some("390.87")));
    assert_eq!(header.value.driver.as_deref(), Some("390.87"));
    assert_eq!(header.value.cuda, None);
    let [first, second] = table.gpus.as_slice() else { panic!("{:?}", table.gpus) };
    assert_eq!(first.line, 8);
    assert_eq!(first.value.name.as_deref(), Some("GeForce GTX 108..."));
    assert_eq!(first.value.persistence, Some(false));
    assert_eq!(first.value.memory_mib, Some((345, 11176)));
    assert_eq!(first.value.compute_mode.as_deref(), Some("Default"));
    assert_eq!(second.value.address, PciAddress::parse("0000:02:00.0"));
    assert_eq!(second.value.persistence, Some(true));
    assert_eq!(second.value.compute_mode.as_deref(), Some("Exclusive_Process"));
    assert_eq!(table.processes[0].value.pid, 1234);
    assert_eq!(table.processes[0].value.name, "/usr/lib/xorg/Xorg");
}

#[test]
fn mig_rows_modes_and_devices() {
    let table = smi_table::parse(TABLE_470_MIG).value;
    let modes: Vec<_> =
        table.gpus.iter().map(|gpu| (gpu.value.mig, gpu.value.compute_mode.as_deref())).collect();
    assert_eq!(modes, [(Some(true), Some("Default")), (Some(false), Some("Prohibited"))]);
    let devices: Vec<_> = table.mig_devices.iter().map(|row| row.value.gpu_instance).collect();
    assert_eq!(devices, [7, 8]);
    assert_eq!(table.mig_devices[1].value.device, 1);
    assert_eq!(table.processes[0].value.pid, 4321);
    assert!(!table.no_processes);
}

#[test]
fn a_gpu_that_answers_with_errors_is_told_from_one_that_does_not() {
    let table = smi_table::parse(TABLE_535_LOST);
    assert_eq!(table.complaints, []);
    assert_eq!(table.value.gpus[1].value.name, None);
    assert_eq!(table.value.errors.iter().map(|error| error.value).collect::<Vec<_>>(), [1]);
    assert!(table.value.no_processes);

    let facts = facts_of(&command("nvidia-smi", TABLE_535_LOST));
    let failed: Vec<_> = facts.nvml.queries.iter().filter_map(|query| query.device).collect();
    assert_eq!(failed, [1]);
    // nvidia-smi found no libcuda.
    assert!(facts.nvml.cuda_version.absent().is_some());
}

#[test]
fn the_wide_table_fills_the_facts() {
    let facts = facts_of(&command("nvidia-smi", TABLE_590));
    assert!(facts.nvml.answers().is_some());
    assert_eq!(facts.nvml.count.value(), Some(&2));
    assert_eq!(facts.nvml.driver_version.value().cloned(), driver("590.48.01"));
    assert_eq!(facts.library.reported.value().cloned(), driver("590.48.01"));
    assert_eq!(facts.nvml.cuda_version.value().copied(), CudaVersion::parse("13.1"));
    let origin = facts.nvml.driver_version.origin().unwrap();
    assert_eq!((&*origin.item, origin.line), ("$ nvidia-smi", 3));
    assert!(origin.excerpt.contains("Driver Version: 590.48.01"));
    assert!(facts.complaints.is_empty());
    assert!(facts.mentions_gpu);
}

#[test]
fn one_line_of_the_table_is_enough_for_the_versions() {
    let line = TABLE_590.lines().nth(2).unwrap();
    let mut item = command("nvidia-smi", line);
    item.partial = true;
    let facts = facts_of(&item);
    assert!(facts.nvml.answers().is_some());
    assert_eq!(facts.nvml.driver_version.value().cloned(), driver("590.48.01"));
    assert!(facts.nvml.count.is_unknown());
}

#[test]
fn newer_words_of_the_header() {
    let row = "| NVIDIA-SMI 595.45.04   KMD Version: 595.45.04   CUDA UMD Version: 13.2 |";
    let header = smi_table::parse(row).value.header.unwrap().value;
    assert_eq!(header.driver.as_deref(), Some("595.45.04"));
    assert_eq!(header.cuda.as_deref(), Some("13.2"));
}

#[test]
fn a_quoted_table_is_a_table() {
    let quoted = TABLE_590.replace('\n', "\n> ");
    assert_eq!(smi_table::parse(&quoted).value, smi_table::parse(TABLE_590).value);
}

#[test]
fn the_list_with_mig_devices() {
    let text = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n  \
                MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\n\
                GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-0000-0000-000000000001)\n";
    let list = smi_list::parse(text).value;
    assert_eq!(list.gpus.len(), 2);
    assert_eq!(list.gpus[0].value.mig, Some(true));
    assert_eq!(list.mig_devices[0].value.profile, "1g.5gb");
    assert_eq!(list.mig_devices[0].value.gpu, Some(0));
    assert_eq!(list.mig_devices[0].line, 2);
}

#[test]
fn the_whole_report() {
    let query = smi_query::parse(QUERY).value;
    assert_eq!(query.attached.as_ref().map(|at| at.value), Some(2));
    let [first, second] = query.gpus.as_slice() else { panic!("{}", query.gpus.len()) };
    let gpu = &second.value.gpu;
    assert_eq!((first.value.gpu.index, gpu.index), (Some(0), Some(1)));
    assert_eq!(gpu.address, PciAddress::parse("0000:00:07.0"));
    assert_eq!((gpu.device_id, gpu.minor), (Some(0x2335), Some(1)));
    assert_eq!(gpu.architecture.as_deref(), Some("Hopper"));
    assert_eq!(gpu.memory_mib, Some((0, 143_771)));
    assert_eq!(gpu.fabric_state.as_deref(), Some("Completed"));
    assert_eq!(gpu.fabric_status.as_deref(), Some("Success"));
    assert_eq!(gpu.virtualization.as_deref(), Some("Pass-Through"));
    assert_eq!(gpu.recovery_action.as_deref(), Some("None"));
    assert_eq!(second.value.get("PCI/GPU Link Info/Link Width/Max"), Some("16x"));
    assert_eq!(second.value.get("Remapped Rows/Pending"), Some("No"));

    let facts = facts_of(&command("nvidia-smi -q", QUERY));
    assert_eq!(facts.nvml.gpus.len(), 2, "equal (masked) UUIDs do not make two GPUs one");
    assert_eq!(facts.firmware.running.len(), 2);
    assert_eq!(facts.firmware.running[0].value.to_string(), "580.159.04");
    assert!(facts.firmware.running[0].origin.excerpt.contains("GSP Firmware Version"));
    assert_eq!(facts.nvml.cuda_version.value().copied(), CudaVersion::parse("13.0"));
}

#[test]
fn what_grep_left_of_the_report() {
    let text = "    Product Name                                       : NVIDIA L4\n    \
                GSP Firmware Version                               : 590.48.01\n    \
                Product Name                                       : Quadro P2000\n    \
                GSP Firmware Version                               : N/A\n";
    let mut item = command("nvidia-smi -q", text);
    item.partial = true;
    let facts = facts_of(&item);
    let names: Vec<_> = facts.nvml.gpus.iter().filter_map(|gpu| gpu.value.name.clone()).collect();
    assert_eq!(names, ["NVIDIA L4", "Quadro P2000"]);
    assert_eq!(facts.firmware.running.len(), 1);
    assert_eq!(facts.firmware.not_running.len(), 1);
    assert!(facts.nvml.answers().is_some());
    assert!(facts.nvml.count.is_unknown(), "a part tells no count");
}

#[test]
fn several_outputs_describe_the_same_gpus() {
    let mut facts = Facts::default();
    let list = "GPU 0: NVIDIA RTX PRO 6000 Blackwell Server Edition (UUID: GPU-a)\n\
                GPU 1: NVIDIA RTX PRO 6000 Blackwell Server Edition (UUID: GPU-b)\n";
    smi::apply(&command("nvidia-smi", TABLE_590), &mut facts);
    smi::apply(&command("nvidia-smi -L", list), &mut facts);
    smi::apply(&command("nvidia-smi", TABLE_590), &mut facts);
    assert_eq!(facts.nvml.gpus.len(), 2);
    let gpu = &facts.nvml.gpus[1].value;
    assert_eq!(gpu.name.as_deref(), Some("NVIDIA RTX PRO 6000 Blackwell Server Edition"));
    assert_eq!(gpu.uuid.as_deref(), Some("GPU-b"));
    assert_eq!(gpu.memory_mib, Some((1, 97_887)));
}

#[test]
fn matrices_of_links_and_of_peer_status() {
    let links = smi_topo::parse(TOPO);
    assert_eq!(links.complaints, []);
    let words: Vec<_> = links.value[0].cells.iter().map(|cell| cell.value.word.as_str()).collect();
    assert_eq!(words, ["NV18", "SYS", "NV18", "PXB", "SYS", "PXB"]);

    let peers = " \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n\nLegend:\n\n  X    = Self\n";
    let facts = facts_of(&command("nvidia-smi topo -p2p r", peers));
    assert_eq!(facts.nvml.topology.len(), 0);
    let cell = &facts.nvml.peer_status[0];
    assert_eq!(cell.value, ("GPU0".to_owned(), "GPU1".to_owned(), "CNS".to_owned()));
    assert_eq!(cell.origin.line, 2);
}

#[test]
fn chosen_columns_with_and_without_their_names() {
    let text =
        "index, name, pci.bus_id, driver_version\n0, Tesla T4, 00000000:00:1E.0, 535.183.01\n";
    let csv = smi_csv::parse(text, Some("nvidia-smi --query-gpu=index,name --format=csv")).value;
    assert_eq!(csv.gpus[0].value.address, PciAddress::parse("0000:00:1e.0"));
    let line = "nvidia-smi --query-gpu=driver_version,name --format=csv,noheader";
    let facts = facts_of(&command(line, "535.183.01, Tesla T4\n"));
    assert_eq!(facts.nvml.driver_version.value().cloned(), driver("535.183.01"));
    assert_eq!(facts.nvml.gpus[0].value.name.as_deref(), Some("Tesla T4"));
}

#[test]
fn failures_and_hangs_are_answers_too() {
    let mismatch = "Failed to initialize NVML: Driver/library version mismatch\n\
                    NVML library version: 565.57\n";
    let facts = facts_of(&command("nvidia-smi", mismatch));
    assert_eq!(facts.nvml.init.value(), Some(&NvmlResult::Code(18)));
    assert_eq!(facts.library.reported.value().cloned(), driver("565.57"));

    let facts = facts_of(&command("nvidia-smi", "No devices were found\n"));
    assert!(facts.nvml.answers().is_some(), "NVML came up and counts none");
    assert_eq!(facts.nvml.count.value(), Some(&0));

    let name = ItemName::Command("nvidia-smi -q".to_owned());
    let facts = facts_of(&RawItem::with_state(name.clone(), RawState::TimedOut));
    assert_eq!(facts.nvml.hung().count(), 1);
    let facts = facts_of(&RawItem::with_state(name, RawState::Absent));
    assert!(matches!(facts.library.smi, Observed::Absent(_)));
}

#[test]
fn other_text_says_nothing() {
    let facts = facts_of(&command("uptime", " 10:00:01 up 3 days, 2 users, load average: 0.0\n"));
    assert!(!facts.mentions_gpu);
    assert!(facts.nvml.init.is_unknown() && facts.nvml.queries.is_empty());
}
