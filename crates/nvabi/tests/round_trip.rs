//! Every row is found again by its key, by number and by name, and the typed look-ups read every
//! column they name.

use nvabi::{
    branch, chip, class, control, cuda_result, error_text, gsp_firmware, gsp_rpc, ioctl,
    module_param, nv_status, nvml_enum, nvml_return, pci_id, registry_key, rm_init, signature,
    table, toolkit, topology, torch_build, uvm, xid,
};

#[test]
fn codes() {
    for row in cuda_result::all() {
        assert_eq!(cuda_result::by_code(row.code), Some(row));
        assert_eq!(cuda_result::by_name(&row.name.to_lowercase()), Some(row));
    }
    for row in nvml_return::all() {
        assert_eq!(nvml_return::by_code(row.code), Some(row));
        assert_eq!(nvml_return::by_name(row.name), Some(row));
    }
    for row in nv_status::all() {
        assert_eq!(nv_status::by_code(row.code), Some(row));
        assert_eq!(nv_status::by_name(row.name), Some(row));
    }
    for row in xid::all() {
        assert_eq!(xid::by_number(row.number), Some(row));
    }
    for row in rm_init::all() {
        assert!(rm_init::meanings(row.code).any(|step| step == row));
        let branch = row.branches.split(',').next().unwrap().parse().unwrap();
        assert_eq!(rm_init::in_branch(row.code, branch), Some(row));
    }
    for row in nvml_enum::all() {
        assert_eq!(nvml_enum::by_value(row.enumeration, row.value), Some(row));
    }
    assert_eq!(cuda_result::by_code(-1), None);
    assert_eq!(nvml_return::by_code(i64::MAX), None);
    assert_eq!(nv_status::by_code(u32::MAX), None);
}

#[test]
fn requests() {
    for row in ioctl::all() {
        assert!(ioctl::escapes(row.nr).any(|escape| escape == row));
        assert_eq!(ioctl::escape_by_name(row.name).unwrap().nr, row.nr);
    }
    for row in uvm::all() {
        assert_eq!(uvm::by_request(row.request), Some(row));
        assert_eq!(uvm::by_name(row.name), Some(row));
    }
    for row in control::all() {
        assert!(control::names(row.command).any(|name| name == row));
        assert!(control::by_command(row.command).is_some());
        assert_eq!(row.class, format!("{:04x}", row.command >> 16), "{row:?}");
    }
    for row in class::all() {
        assert!(class::names(row.id).any(|name| name == row));
        assert!(class::by_id(row.id).unwrap().preferred, "{row:?}");
    }
    for row in table::by_name("gsp_rpc_functions").unwrap().rows() {
        let number = row.get("number").unwrap().parse().unwrap();
        let branch = row.get("branches_seen").unwrap().split(',').next().unwrap().parse().unwrap();
        let found = match row.get("kind") {
            Some("function") => gsp_rpc::function_in(number, branch),
            _ => gsp_rpc::event_in(number, branch),
        };
        assert_eq!(found.map(|rpc| rpc.name), row.get("name"));
    }
}

#[test]
fn chips_boards_and_firmware() {
    for row in chip::all() {
        assert_eq!(chip::by_name(&row.chip.to_lowercase()), Some(row));
    }
    for row in pci_id::all() {
        assert_eq!(pci_id::by_device(row.device), Some(row));
        let chip = chip::by_name(row.chip).unwrap();
        assert_eq!(chip.capability, row.capability, "{row:?}");
        for board in pci_id::open_boards(row.device) {
            assert_eq!(board.device, row.device);
        }
    }
    let boards = table::by_name("open_modules_supported_gpus").unwrap();
    let listed: usize = pci_id::all().map(|row| pci_id::open_boards(row.device).count()).sum();
    assert_eq!(listed, boards.len(), "every board is of a known device");
    for row in gsp_firmware::all() {
        assert_eq!(gsp_firmware::file_for(row.branch, row.family), Some(row));
    }
}

#[test]
fn versions_names_and_words() {
    for row in branch::all() {
        assert_eq!(branch::by_number(row.number), Some(row));
    }
    for row in toolkit::all() {
        assert!(toolkit::minimum_driver(row.version.0, row.version.1).is_some(), "{row:?}");
        assert!(row.version >= (8, 0));
    }
    for row in torch_build::all() {
        assert_eq!(torch_build::by_version(row.version), Some(row));
        assert!(!row.minimum_driver.starts_with('>'));
    }
    for row in module_param::all() {
        assert_eq!(module_param::by_name(row.name), Some(row));
    }
    assert_eq!(
        module_param::by_name("EnableGpuFirmware").map(|param| param.name),
        Some("NVreg_EnableGpuFirmware")
    );
    for row in registry_key::all() {
        assert_eq!(registry_key::by_name(row.key), Some(row));
    }
    for row in topology::all() {
        assert_eq!(topology::by_word(row.name).map(|word| word.name), Some(row.name));
    }
    for row in signature::all() {
        assert_eq!(signature::by_id(row.id), Some(row));
    }
}

#[test]
fn messages_name_codes_that_exist() {
    assert!(error_text::all().len() >= 60);
    for message in error_text::all() {
        let Some(code) = message.code else { continue };
        match message.api {
            "cuda-driver" => assert_eq!(
                cuda_result::by_code(code).map(|result| result.name),
                Some(message.name),
                "{message:?}"
            ),
            "nvml" | "nvidia-smi" => assert_eq!(
                nvml_return::by_code(code).map(|result| result.name),
                Some(message.name),
                "{message:?}"
            ),
            _ => {
                let runtime = error_text::all()
                    .iter()
                    .find(|other| other.api == "cuda-runtime" && other.name == message.name);
                assert_eq!(runtime.and_then(|runtime| runtime.code), Some(code), "{message:?}");
            }
        }
    }
}

#[test]
fn a_text_alone_in_a_line_is_found() {
    for message in error_text::all() {
        let found = error_text::in_line(message.text).unwrap();
        assert!(found.text.eq_ignore_ascii_case(message.text), "{message:?} found {found:?}");
    }
}

#[test]
fn remaining_tables_are_read_to_the_end() {
    assert_eq!(nvabi::abi_change::all().count(), 109);
    assert_eq!(nvabi::hang_state::all().count(), 17);
    assert_eq!(nvabi::proc_path::all().count(), 55);
    assert_eq!(nvabi::pid_readable::all().count(), 16);
    assert_eq!(nvabi::driver_version_seen::all().count(), 232);
    assert_eq!(nvabi::fault_matrix::cuinit().count(), 176);
    assert_eq!(nvabi::fault_matrix::nvmlinit().count(), 46);
    assert_eq!(nvabi::init_sequence::all().count(), 312);
    assert!(nvabi::abi_change::of("NV0000_CTRL_CMD_GPU_GET_ACTIVE_DEVICE_IDS").next().is_some());
    assert_eq!(nvabi::driver_version_seen::by_version("535.129.03").count(), 2);
    let sections = nvabi::gsp_measured::sections("gsp_ga10x.bin");
    assert!(sections.filter(|section| section.section == ".fwimage").all(|image| image.size > 0));
}

#[test]
fn application_faults_are_told_from_faults_of_the_gpu() {
    let faults: Vec<u32> =
        xid::all().filter(|xid| xid.application_fault).map(|xid| xid.number).collect();
    assert_eq!(faults, [13, 31, 43, 45]);
}
