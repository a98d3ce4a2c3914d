//! Product names as nvidia-smi prints them and as people shorten them.

use nvabi::pci_id::by_product_name;

const ANY: &str = "different chips";

#[test]
fn names_and_their_chips() {
    for (name, chip, capability) in [
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "GB202", (12, 0)),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "GB202", (12, 0)),
        ("RTX PRO 6000 Blackwell", "GB202", (12, 0)),
        ("RTX PRO 6000", "GB202", (12, 0)),
        ("8 × RTX PRO 6000 Blackwell Server Edition", "GB202", (12, 0)),
        ("RTX PRO 5000 72GB Blackwell", "GB202", (12, 0)),
        ("RTX PRO 5000", ANY, (12, 0)),
        ("NVIDIA GeForce RTX 5090", "GB202", (12, 0)),
        ("RTX 5090", "GB202", (12, 0)),
        ("rtx5090", "GB202", (12, 0)),
        ("2x RTX 5090", "GB202", (12, 0)),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "GB203", (12, 0)),
        ("RTX 5070 Ti", "GB203", (12, 0)),
        ("NVIDIA GeForce RTX 4090", "AD102", (8, 9)),
        ("NVIDIA GeForce RTX 4090 D", "AD102", (8, 9)),
        ("RTX 4090 Laptop GPU", "AD103", (8, 9)),
        ("NVIDIA GeForce RTX 4060 Ti", ANY, (8, 9)),
        ("RTX 6000 Ada", "AD102", (8, 9)),
        ("NVIDIA RTX 6000 Ada Generation", "AD102", (8, 9)),
        ("RTX 4500 Ada", "AD104", (8, 9)),
        ("NVIDIA L40S", "AD102", (8, 9)),
        ("NVIDIA L40", "AD102", (8, 9)),
        ("NVIDIA L40S-48Q", "AD102", (8, 9)),
        ("NVIDIA L4", "AD104", (8, 9)),
        ("NVIDIA GeForce RTX 3080", "GA102", (8, 6)),
        ("NVIDIA GeForce RTX 3080 Ti", "GA102", (8, 6)),
        ("rtx 3080ti", "GA102", (8, 6)),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "GA104", (8, 6)),
        ("NVIDIA GeForce RTX 3050Ti Laptop GPU", ANY, (8, 6)),
        ("NVIDIA GeForce RTX 3060", ANY, (8, 6)),
        ("3090", "GA102", (8, 6)),
        ("NVIDIA RTX A6000", "GA102", (8, 6)),
        ("NVIDIA A10G", "GA102", (8, 6)),
        ("NVIDIA A10", "GA102", (8, 6)),
        ("A100-SXM4-40GB", "GA100", (8, 0)),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "GA100", (8, 0)),
        ("NVIDIA A100-PCIE-40GB", "GA100", (8, 0)),
        ("NVIDIA A100 80GB PCIe", "GA100", (8, 0)),
        ("A100", "GA100", (8, 0)),
        ("NVIDIA A30", "GA100", (8, 0)),
        ("H100 80GB HBM3", "GH100", (9, 0)),
        ("NVIDIA H100 PCIe", "GH100", (9, 0)),
        ("H100", "GH100", (9, 0)),
        ("NVIDIA H200", "GH100", (9, 0)),
        ("NVIDIA H200 NVL", "GH100", (9, 0)),
        ("NVIDIA GH200 480GB", "GH100", (9, 0)),
        ("NVIDIA B200", "GB100", (10, 0)),
        ("NVIDIA GB200", "GB100", (10, 0)),
        ("NVIDIA B300 SXM6 AC", "GB110", (10, 3)),
        ("NVIDIA GB10", "GB20B", (12, 1)),
        ("Quadro RTX 6000", "TU102", (7, 5)),
        ("Quadro RTX 8000", "TU102", (7, 5)),
        ("NVIDIA GeForce RTX 2080 Ti", "TU102", (7, 5)),
        ("NVIDIA GeForce RTX 2080 with Max-Q Design", "TU104", (7, 5)),
        ("NVIDIA GeForce RTX 2060", ANY, (7, 5)),
        ("NVIDIA GeForce GTX 1650", ANY, (7, 5)),
        ("Tesla T4", "TU104", (7, 5)),
        ("Tesla V100-SXM2-16GB", "GV100", (7, 0)),
        ("Tesla V100-PCIE-32GB", "GV100", (7, 0)),
        ("NVIDIA TITAN V", "GV100", (7, 0)),
        ("Tesla P100-PCIE-16GB", "GP100", (6, 0)),
        ("Tesla P40", "GP102", (6, 1)),
        ("NVIDIA GeForce GTX 1080 Ti", "GP102", (6, 1)),
        ("GTX 1080", "GP104", (6, 1)),
        ("NVIDIA GeForce GTX 1060 6GB", ANY, (6, 1)),
        ("NVIDIA TITAN X (Pascal)", "GP102", (6, 1)),
        ("Quadro M4000", "GM204", (5, 2)),
        ("GeForce GTX 750 Ti", "GM107", (5, 0)),
    ] {
        let product = by_product_name(name).unwrap_or_else(|| panic!("{name} is not found"));
        assert_eq!(product.chip.unwrap_or(ANY), chip, "{name}");
        assert_eq!(product.capability, capability, "{name}");
    }
}

#[test]
fn names_that_could_be_several_architectures_are_not_guessed() {
    for name in ["RTX 6000", "RTX 5000", "RTX 4000", "TITAN X", "RTX 3000", "RTX 500"] {
        assert_eq!(by_product_name(name), None, "{name}");
    }
}

#[test]
fn names_that_are_not_known_are_not_forced() {
    let long = "RTX 5090 ".repeat(1000);
    for name in [
        "",
        " ",
        "NVIDIA",
        "GeForce",
        "Blackwell",
        "Tesla K80",
        "Quadro K4000",
        "RTX 5090 Ti SUPER",
        "RTX 9999",
        "AMD Instinct MI300X",
        "GPU",
        "NVIDIA Graphics Device",
        "×",
        "8",
        "80GB",
        &long,
    ] {
        assert_eq!(by_product_name(name), None, "{name:.20}");
    }
}

#[test]
fn every_name_of_the_open_modules_readme_finds_its_own_architecture() {
    for device in nvabi::pci_id::all() {
        let Some(name) = device.product_name else {
            continue;
        };
        let product = by_product_name(name).unwrap_or_else(|| panic!("{name} is not found"));
        assert_eq!(product.capability, device.capability, "{name}");
        assert!(product.chip.is_none_or(|chip| chip == device.chip), "{name}");
    }
}
