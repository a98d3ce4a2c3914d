//! The list of the tables. Each is a file of `data/`, embedded as text and parsed on first use.

use std::sync::LazyLock;

use crate::table::Table;

macro_rules! tables {
    ($($table:ident = $name:literal;)*) => {
        $(pub(crate) static $table: LazyLock<Table> = LazyLock::new(|| {
            Table::parse($name, include_str!(concat!("../data/", $name, ".tsv")))
        });)*

        /// Every table with its name.
        pub(crate) static ALL: &[(&str, &LazyLock<Table>)] = &[$(($name, &$table)),*];
    };
}

tables! {
    ABI_CHANGES_BY_VERSION = "abi_changes_by_version";
    CHIPS = "chips";
    CUDA_ARCH_SUPPORT = "cuda_arch_support";
    CUDA_RESULTS = "cuda_results";
    CUDA_TOOLKIT_DRIVER = "cuda_toolkit_driver";
    CUINIT_FAULT_MATRIX = "cuinit_fault_matrix";
    DRIVER_BRANCHES = "driver_branches";
    DRIVER_VERSIONS_SEEN = "driver_versions_seen";
    ERROR_TEXTS = "error_texts";
    GPU_PCI_IDS = "gpu_pci_ids";
    GSP_FIRMWARE = "gsp_firmware";
    GSP_RPC_FUNCTIONS = "gsp_rpc_functions";
    GSP_SECTIONS_MEASURED = "gsp_sections_measured";
    HANG_STATES = "hang_states";
    INIT_SEQUENCES = "init_sequences";
    KERNEL_LOG_SIGNATURES = "kernel_log_signatures";
    MODULE_PARAMS = "module_params";
    NV_IOCTLS = "nv_ioctls";
    NV_STATUS = "nv_status";
    NV_STRUCT_LAYOUTS = "nv_struct_layouts";
    NV_STRUCT_LAYOUTS_BRANCH_DIFFS = "nv_struct_layouts_branch_diffs";
    NVML_ENUMS = "nvml_enums";
    NVML_RETURNS = "nvml_returns";
    NVMLINIT_FAULT_MATRIX = "nvmlinit_fault_matrix";
    OPEN_MODULES_SUPPORTED_GPUS = "open_modules_supported_gpus";
    PROC_PID_READABLES = "proc_pid_readables";
    PROC_SYS_DEV = "proc_sys_dev";
    PYTORCH_CUDA = "pytorch_cuda";
    RM_CLASSES = "rm_classes";
    RM_CONTROL_CMDS = "rm_control_cmds";
    RM_INIT_ADAPTER_CODES = "rm_init_adapter_codes";
    RM_REGISTRY_KEYS = "rm_registry_keys";
    SOURCES = "sources";
    TOPOLOGY_P2P = "topology_p2p";
    UVM_IOCTLS = "uvm_ioctls";
    UVM_STRUCT_LAYOUTS = "uvm_struct_layouts";
    XID = "xid";
}
