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
        let gpus = (0..count).map(|number| SmiGpu::new(number, name, driver)).collect();
        Self { driver: driver.to_owned(), cuda: cuda.to_owned(), gpus }
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
        let mut text = "Mon Jun  1 12:00:00 2026       \n".to_owned();
        let (driver, cuda) = (&self.driver, &self.cuda);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            text,
            "+{:-<89}+\n| NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8} |",
            ""
        );
        text += HEADINGS;
        for (index, gpu) in self.gpus.iter().enumerate() {
            let (name, bus, memory) = (short(&gpu.name), &gpu.bus, gpu.memory_mib);
            let _ = write!(
                text,
                "| {index:>3}  {name:<27}    On  |   00000000:{bus:>7} Off |                    0 |\n\
                 | N/A   30C    P8             15W /  600W |       0MiB / {memory:>6}MiB |      0%      Default |\n\
                 |                                         |                        |             Disabled |\n\
                 {RULE}",
            );
        }
        text + "\n" + PROCESSES
    }

    /// `nvidia-smi -q`, cut to the fields that a diagnosis asks for.
    pub fn query(&self) -> String {
        let mut text = "\n==============NVSMI LOG==============\n\n".to_owned();
        field(&mut text, 0, "Timestamp", "Mon Jun  1 12:00:00 2026");
        field(&mut text, 0, "Driver Version", &self.driver);
        field(&mut text, 0, "CUDA Version", &self.cuda);
        field(&mut text, 0, "Attached GPUs", &self.gpus.len().to_string());
        for (index, gpu) in self.gpus.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "GPU 00000000:{}", gpu.bus);
            field(&mut text, 4, "Product Name", &gpu.name);
            field(&mut text, 4, "Persistence Mode", "Enabled");
            field(&mut text, 4, "Addressing Mode", &gpu.addressing);
            field(&mut text, 4, "GPU UUID", &gpu.uuid);
            field(&mut text, 4, "Minor Number", &index.to_string());
            field(&mut text, 4, "GSP Firmware Version", &gpu.gsp);
            field(&mut text, 4, "Compute Mode", "Default");
        }
        text
    }
}

/// One line of a query: the colons stand below each other.
fn field(text: &mut String, indent: usize, name: &str, value: &str) {
    let width = 55 - indent;
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{:indent$}{name:<width$}: {value}", "");
}

/// A name as the table has room for it.
fn short(name: &str) -> String {
    const ROOM: usize = 27;
    if name.len() <= ROOM {
        return name.to_owned();
    }
    name.chars().take(ROOM - 3).chain("...".chars()).collect()
}

const RULE: &str = "\
+-----------------------------------------+------------------------+----------------------+
";

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

#[cfg(test)]
mod tests {
    use super::Smi;

    #[test]
    fn the_tables_lines_are_of_one_width() {
        let table = Smi::new("590.48.01", "13.1", 2, "NVIDIA RTX PRO 6000 Blackwell").table();
        let lines: Vec<_> = table.lines().skip(1).filter(|line| !line.is_empty()).collect();
        assert!(lines.len() > 15, "{table}");
        for line in lines {
            assert_eq!(line.len(), 91, "{line}");
        }
    }

    #[test]
    fn the_queries_colons_stand_below_each_other() {
        let query = Smi::new("590.48.01", "13.1", 1, "NVIDIA H200").query();
        let fields: Vec<_> = query.lines().filter(|line| line.contains(": ")).collect();
        assert!(fields.iter().all(|line| line.find(": ") == Some(55)), "{query}");
        assert!(
            fields.contains(&"    GSP Firmware Version                               : 590.48.01")
        );
    }
}
