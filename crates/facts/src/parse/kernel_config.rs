//! The kernel's build configuration, as text: /proc/config.gz unpacked, /boot/config-*.

use std::collections::BTreeMap;

use super::{At, Parsed, numbered};
use crate::model::host::ConfigValue;

/// The settings that a cause asks about, without `CONFIG_`.
pub const SETTINGS_OF_INTEREST: [&str; 20] = [
    "ARM_SMMU_V3_SVA",
    "CGROUP_BPF",
    "DEVICE_PRIVATE",
    "DRM_NOUVEAU",
    "FW_LOADER_COMPRESS",
    "FW_LOADER_COMPRESS_XZ",
    "FW_LOADER_COMPRESS_ZSTD",
    "HMM_MIRROR",
    "IOMMU_DEFAULT_DMA_LAZY",
    "IOMMU_DEFAULT_DMA_STRICT",
    "IOMMU_DEFAULT_PASSTHROUGH",
    "IOMMU_SVA",
    "MEMORY_HOTPLUG",
    "MIGRATION",
    "MODULE_SIG",
    "MODULE_SIG_FORCE",
    "PCI_P2PDMA",
    "RANDOMIZE_BASE",
    "RANDOMIZE_MEMORY",
    "ZONE_DEVICE",
];

/// What a configuration says about the settings that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelConfig {
    /// The settings of interest that stand in the text, without `CONFIG_`.
    pub settings: BTreeMap<String, At<ConfigValue>>,
    /// True when the text begins as every generated configuration does. Without that it may be an
    /// excerpt, and a setting that is not in it may still be on.
    pub has_heading: bool,
}

/// Reads a configuration. A line may carry the file's name before it, as `grep` on several files
/// prints it.
pub fn kernel_config(text: &str) -> Parsed<KernelConfig> {
    let mut parsed = Parsed::<KernelConfig>::default();
    for (line, content) in numbered(text) {
        let content = without_file_name(content.trim());
        if content.starts_with("# Automatically generated file") {
            parsed.value.has_heading = true;
        }
        match setting(content) {
            Some((name, value)) if SETTINGS_OF_INTEREST.binary_search(&name).is_ok() => {
                parsed.value.settings.insert(name.to_owned(), At::new(line, value));
            }
            Some(_) => {}
            None if content.is_empty() || content.starts_with('#') => {}
            None => parsed.complain(line, "not a line of a kernel configuration"),
        }
    }
    parsed
}

fn without_file_name(content: &str) -> &str {
    let starts = [":CONFIG_", ":# CONFIG_"];
    starts.iter().find_map(|start| content.find(start)).map_or(content, |at| &content[at + 1..])
}

fn setting(content: &str) -> Option<(&str, ConfigValue)> {
    if let Some(rest) = content.strip_prefix("# CONFIG_") {
        return Some((rest.strip_suffix(" is not set")?, ConfigValue::No));
    }
    let (name, value) = content.strip_prefix("CONFIG_")?.split_once('=')?;
    let value = match value {
        "y" => ConfigValue::Yes,
        "m" => ConfigValue::Module,
        "n" => ConfigValue::No,
        other => ConfigValue::Text(other.trim_matches('"').to_owned()),
    };
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_settings_can_be_searched() {
        assert!(SETTINGS_OF_INTEREST.is_sorted());
    }

    #[test]
    fn settings_in_all_forms() {
        let parsed = kernel_config(
            "#\n# Automatically generated file; DO NOT EDIT.\n\
             # Linux/x86 6.8.12-9-pve Kernel Configuration\n#\n\
             CONFIG_CC_VERSION_TEXT=\"gcc (Debian 12.2.0-14) 12.2.0\"\nCONFIG_HMM_MIRROR=y\n\
             CONFIG_DRM_NOUVEAU=m\n# CONFIG_MODULE_SIG_FORCE is not set\n",
        );
        assert_eq!(parsed.complaints, []);
        assert!(parsed.value.has_heading);
        let value = |name: &str| parsed.value.settings.get(name).map(|at| at.value.clone());
        assert_eq!(value("HMM_MIRROR"), Some(ConfigValue::Yes));
        assert_eq!(value("DRM_NOUVEAU"), Some(ConfigValue::Module));
        assert_eq!(value("MODULE_SIG_FORCE"), Some(ConfigValue::No));
        assert_eq!(value("CC_VERSION_TEXT"), None, "settings that do not matter are not kept");
    }

    #[test]
    fn output_of_grep_over_several_files() {
        let parsed = kernel_config(
            "/boot/config-6.8.12-9-pve:CONFIG_HMM_MIRROR=y\n\
             /boot/config-6.8.12-9-pve:# CONFIG_DEVICE_PRIVATE is not set\n\
             grep: /boot/config-x: No such file or directory\n",
        );
        assert_eq!(parsed.value.settings.len(), 2);
        assert!(!parsed.value.has_heading);
        assert_eq!(parsed.complaints.len(), 1);
    }
}
