//! `lookup` finds what a person may type after `explain`.

use nvabi::lookup;

fn titles(word: &str) -> Vec<String> {
    lookup(word).into_iter().map(|entry| entry.title).collect()
}

#[test]
fn one_word_one_entry() {
    for (word, title) in [
        ("xid 119", "GSP_RPC_TIMEOUT (Xid 119)"),
        ("Xid: 119", "GSP_RPC_TIMEOUT (Xid 119)"),
        ("xid119", "GSP_RPC_TIMEOUT (Xid 119)"),
        ("NV_ERR_GPU_IS_LOST", "NV_ERR_GPU_IS_LOST (NV_STATUS 0x0000000f)"),
        ("nv_status 0x65", "NV_ERR_TIMEOUT (NV_STATUS 0x00000065)"),
        ("CUDA_ERROR_NOT_INITIALIZED", "CUDA_ERROR_NOT_INITIALIZED (CUDA result 3)"),
        ("cuda_error_no_device", "CUDA_ERROR_NO_DEVICE (CUDA result 100)"),
        ("cuInit 3", "CUDA_ERROR_NOT_INITIALIZED (CUDA result 3)"),
        ("NVML_ERROR_UNINITIALIZED", "NVML_ERROR_UNINITIALIZED (NVML return 1)"),
        ("nvml 18", "NVML_ERROR_LIB_RM_VERSION_MISMATCH (NVML return 18)"),
        ("cudaErrorInsufficientDriver", "cudaErrorInsufficientDriver (CUDA runtime error 35)"),
        ("cudaErrorNoDevice", "cudaErrorNoDevice (CUDA runtime error)"),
        ("phb", "PHB (topology and peer-to-peer)"),
        ("NV4", "NV<n> (topology and peer-to-peer)"),
        ("UVM_REGISTER_GPU", "UVM_REGISTER_GPU (nvidia-uvm request 0x25)"),
        ("0x25 uvm", "UVM_REGISTER_GPU (nvidia-uvm request 0x25)"),
        ("uvm 37", "UVM_REGISTER_GPU (nvidia-uvm request 0x25)"),
        ("0x30000001", "UVM_INITIALIZE (nvidia-uvm request 0x30000001)"),
        ("GB202", "GB202 (chip)"),
        ("uvm_disable_hmm", "uvm_disable_hmm (kernel module parameter)"),
        ("NVreg_EnableGpuFirmware", "NVreg_EnableGpuFirmware (kernel module parameter)"),
        ("enablegpufirmware", "NVreg_EnableGpuFirmware (kernel module parameter)"),
        ("0xc020462a", "NV_ESC_RM_CONTROL (ioctl request 0xc020462a)"),
        ("ioctl 0xc020462a", "NV_ESC_RM_CONTROL (ioctl request 0xc020462a)"),
        ("escape 0x2a", "NV_ESC_RM_CONTROL (ioctl escape 0x2a)"),
        ("rpc 76", "GSP_RM_CONTROL (GSP function 76)"),
        ("branch 590", "driver branch 590"),
        ("torch 2.10.0", "2.10.0 (PyTorch release)"),
        ("RTX 5090", "RTX 5090 (GPU product)"),
        ("sm_120", "sm_120 (compute capability 12.0)"),
        ("compute_90a", "sm_90 (compute capability 9.0)"),
        ("SXid", "NVSWITCH_SXID (kernel-log signature)"),
        ("XID", "XID (kernel-log signature)"),
        ("/dev/nvidia-uvm", "/dev/nvidia-uvm (path)"),
        ("RuntimeError: No CUDA GPUs are available", "No CUDA GPUs are available (message)"),
    ] {
        assert_eq!(titles(word), [title], "{word}");
    }
}

#[test]
fn a_structure_with_the_request_that_carries_it() {
    let titles = titles("UVM_REGISTER_GPU_PARAMS");
    let structure = "UVM_REGISTER_GPU_PARAMS (structure of 40 bytes in branch 595)";
    assert_eq!(titles, ["UVM_REGISTER_GPU (nvidia-uvm request 0x25)", structure]);
}

#[test]
fn a_failed_rminitadapter() {
    for word in ["RmInitAdapter 0x62:0x65:1784", "0x62:0x65:1784", "(0x62:0x65:1784)"] {
        let entries = lookup(word);
        assert_eq!(entries.len(), 1, "{word}");
        let title =
            "RM_INIT_FIRMWARE_INIT_FAILED with NV_ERR_TIMEOUT (RmInitAdapter 0x62:0x65:1784)";
        assert_eq!(entries[0].title, title);
        assert!(entries[0].lines.iter().any(|(_, text)| text.contains("branches 515")));
    }
}

#[test]
fn a_pci_device_in_its_spellings() {
    for word in ["10de:2bb5", "[10DE:2BB5]", "0x2bb5", "2bb5", "pci 2bb5", "pci 0x2bb5"] {
        let entries = lookup(word);
        let board = entries.iter().find(|entry| entry.table == "gpu_pci_ids");
        let board = board.unwrap_or_else(|| panic!("{word}: {entries:?}"));
        assert!(board.lines.contains(&("chip", "GB202".to_owned())), "{word}");
    }
    assert!(lookup("10de:ffff").is_empty());
}

#[test]
fn a_control_command_and_its_other_names() {
    let command = lookup("0x2080012c");
    assert!(command.iter().all(|entry| entry.table == "rm_control_cmds"), "{command:?}");
    assert!(!command.is_empty() && command == lookup("2080012c"));
    let shared = titles("0x90cc0101");
    assert_eq!(shared.len(), 2, "an alias is shown too: {shared:?}");
}

#[test]
fn an_unqualified_number_gives_every_table_that_has_it() {
    let tables =
        |word: &str| -> Vec<&str> { lookup(word).into_iter().map(|entry| entry.table).collect() };
    assert_eq!(tables("803"), ["cuda_results"]);
    let eighteen = tables("18");
    for table in ["nvml_returns", "nv_status", "xid", "uvm_ioctls", "gsp_rpc_functions"] {
        assert!(eighteen.contains(&table), "{table}: {eighteen:?}");
    }
    assert!(tables("0x62").contains(&"rm_init_adapter_codes"));
    assert!(tables("535").contains(&"driver_branches"));
}

#[test]
fn a_name_without_its_prefix_is_found_in_each_table() {
    let titles = titles("gpu_is_lost");
    let expected =
        ["NVML_ERROR_GPU_IS_LOST (NVML return 15)", "NV_ERR_GPU_IS_LOST (NV_STATUS 0x0000000f)"];
    assert_eq!(titles, expected);
}

#[test]
fn entries_say_what_the_library_prints_and_where_it_is_from() {
    let entry = lookup("802").remove(0);
    assert_eq!(entry.key, "802");
    let printed = ("printed as", "system not yet initialized".to_owned());
    assert!(entry.lines.contains(&printed), "{entry:?}");
    assert!(entry.lines.iter().all(|(_, text)| !text.is_empty()));
    assert!(!entry.source.is_empty());
}

#[test]
fn hostile_words_give_nothing() {
    let long = "0".repeat(1_000_000);
    let words = [
        "",
        " ",
        ":",
        "::",
        "0x",
        "10de:",
        "10de:+1",
        "xid xid",
        "xid 99999",
        "-1",
        "\0",
        "é",
        "×",
        "xidé9",
        "18446744073709551616",
        "0xffffffffffffffff",
        "NV\u{e9}",
        "no such word",
        &long,
    ];
    for word in words {
        assert_eq!(titles(word), Vec::<String>::new(), "{word:.20}");
    }
}
