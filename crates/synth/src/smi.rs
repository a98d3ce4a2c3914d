//! What `nvidia-smi` prints, in its three usual forms, with the fields that matter for a diagnosis.

use std::fmt::Write as _;

/// One GPU.
#[derive(Debug, Clone)]
pub struct SmiGpu {
    /// Product name.
    pub name: String,
    /// UUID with its `GPU-`.
    pub uuid: String,
    /// PCI address without domain, such as `41:00.0`.
    pub bus: String,
    /// GSP firmware version, or `N/A`.
    pub gsp: String,
    /// `HMM`, `ATS` or `None`.
    pub addressing: String,
    /// Memory in MiB.
    pub memory_mib: u32,
}

impl SmiGpu {
    /// A GPU of this name; UUID and address follow from its number.
    pub fn new(number: u32, name: &str, gsp: &str) -> Self {
        Self {
            name: name.to_owned(),
            uuid: format!("GPU-5a5a0000-0000-4000-8000-{number:012x}"),
            bus: format!("{:02X}:00.0", 0x01 + number * 0x20),
            gsp: gsp.to_owned(),
            addressing: "HMM".to_owned(),
            memory_mib: 97_887,
        }
    }
}

/// The report.
#[derive(Debug, Clone)]
pub struct Smi {
    /// Driver version.
    pub driver: String,
    /// CUDA version of the driver, such as `13.1`.
    pub cuda: String,
    /// GPUs in order.
    pub gpus: Vec<SmiGpu>,
}

impl Smi {
    /// `count` GPUs of the same name whose GSP runs the driver's version.
    pub fn new(driver: &str, cuda: &str, count: u32, name: &str) -> Self {
        let gpus = (0..count)
            .map(|number| SmiGpu::new(number, name, driver))
            .collect();
        Self {
            driver: driver.to_owned(),
            cuda: cuda.to_owned(),
            gpus,
        }
    }

    /// `nvidia-smi -L`.
    pub fn list(&self) -> String {
        let line = |(index, gpu): (usize, &SmiGpu)| {
            format!("GPU {index}: {} (UUID: {})\n", gpu.name, gpu.uuid)
        };
        self.gpus.iter().enumerate().map(line).collect()
    }

    /// `nvidia-smi`: the table.
    pub fn table(&self) -> String {
        let rule = |fill: &str| format!("+{}+\n", fill.repeat(89));
        let mut text = "Mon Jun  1 12:00:00 2026       \n".to_owned() + &rule("-");
        let (driver, cuda) = (&self.driver, &self.cuda);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            text,
            "| NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8} |"
        );
        text += HEADINGS;
        for (index, gpu) in self.gpus.iter().enumerate() {
            let _ = writeln!(
                text,
                "| {index:3}  {:<25}  On | 00000000:{:<14} Off | {:>20} |",
                gpu.name, gpu.bus, 0
            );
            let _ = writeln!(
                text,
                "| N/A   30C    P8             15W /  600W | {:>10}MiB / {:>6}MiB | {:>6}%      Default |",
                0, gpu.memory_mib, 0
            );
            text += &rule("-");
        }
        text + "\n" + PROCESSES
    }

    /// `nvidia-smi -q`, cut to the fields that a diagnosis asks for.
    pub fn query(&self) -> String {
        let mut text = "\n==============NVSMI LOG==============\n\n".to_owned();
        let mut field = |indent: usize, name: &str, value: &str| {
            let _ = writeln!(
                text,
                "{:indent$}{name:<width$} : {value}",
                "",
                width = 54 - indent
            );
        };
        field(0, "Timestamp", "Mon Jun  1 12:00:00 2026");
        field(0, "Driver Version", &self.driver);
        field(0, "CUDA Version", &self.cuda);
        field(0, "Attached GPUs", &self.gpus.len().to_string());
        for (index, gpu) in self.gpus.iter().enumerate() {
            let _ = writeln!(text, "GPU 00000000:{}", gpu.bus);
            let mut field = |indent: usize, name: &str, value: &str| {
                let width = 54 - indent;
                let _ = writeln!(text, "{:indent$}{name:<width$} : {value}", "");
            };
            field(4, "Product Name", &gpu.name);
            field(4, "Persistence Mode", "Enabled");
            field(4, "Addressing Mode", &gpu.addressing);
            field(4, "GPU UUID", &gpu.uuid);
            field(4, "Minor Number", &index.to_string());
            field(4, "GSP Firmware Version", &gpu.gsp);
            field(4, "Compute Mode", "Default");
        }
        text
    }
}

const HEADINGS: &str = "\
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
";

const PROCESSES: &str = "\
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
";
