//! What one request to a driver's node asks and answers, from its number and its parameters.
//!
//! The tracer and the reader of strace's text share this, so that a live call and a pasted one
//! have the same name. Names and layouts are those of [`nvabi`]; offsets of RM_CONTROL, RM_ALLOC
//! and CHECK_VERSION_STR never changed from branch 535 to 620.

use nvabi::number::MEASURED_BRANCHES;

/// Longest parameter block of an escape: what NV_ESC_IOCTL_XFER_CMD allows.
pub const LONGEST_PARAMETERS: usize = 16_384;
/// Most bytes of a parameter block that naming a call needs.
const HEAD: usize = 80;

const RM_FREE: u32 = 0x29;
const RM_CONTROL: u32 = 0x2a;
const RM_ALLOC: u32 = 0x2b;
const CHECK_VERSION_STR: u32 = 0xd2;
const XFER_CMD: u32 = 0xd3;
const UVM_REGISTER_GPU: u32 = 0x25;
const UVM_UNREGISTER_GPU: u32 = 0x26;

/// A node of the driver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Its path below /dev, such as `/dev/nvidia-uvm`.
    pub path: String,
    /// True when the descriptor is not the node but a memory file of that name, as a preloaded
    /// stand-in for the driver hands out. Such a call is answered within the process, and what
    /// the kernel says to it means nothing.
    pub stands_in: bool,
}

/// What speaks behind a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speaks {
    /// The escapes of /dev/nvidiactl and /dev/nvidiaN.
    Escapes,
    /// The plain numbers of /dev/nvidia-uvm and -uvm-tools.
    Uvm,
    /// Something that the tables do not cover: modesetting, capabilities, NVSwitch.
    Other,
}

impl Node {
    /// The node that a path or the link of a descriptor leads to; `None` when it is not one.
    pub fn of(link: &str) -> Option<Node> {
        let memory_file =
            link.strip_prefix("/memfd:").map(|name| name.trim_end_matches(" (deleted)"));
        let path = memory_file.unwrap_or(link);
        let rest = path.strip_prefix("/dev/nvidia")?;
        let is_one =
            rest.is_empty() || rest.starts_with(|ch: char| ch.is_ascii_alphanumeric() || ch == '-');
        is_one.then(|| Node { path: path.to_owned(), stands_in: memory_file.is_some() })
    }

    /// What speaks behind it.
    pub fn speaks(&self) -> Speaks {
        match self.short() {
            "nvidia-uvm" | "nvidia-uvm-tools" => Speaks::Uvm,
            "nvidiactl" => Speaks::Escapes,
            name => match name.strip_prefix("nvidia") {
                Some(minor) if minor.parse::<u32>().is_ok() => Speaks::Escapes,
                _ => Speaks::Other,
            },
        }
    }

    /// The path without `/dev/`.
    pub fn short(&self) -> &str {
        self.path.strip_prefix("/dev/").unwrap_or(&self.path)
    }
}

/// What a request asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// The request as a name: `NV_ESC_RM_CONTROL`, `UVM_REGISTER_GPU`, or its number as
    /// `0xc00446ff` when the tables do not have it.
    pub request: String,
    /// False when the number is in no table.
    pub known: bool,
    /// The number that the tables go by: an escape's low byte, or UVM's whole number.
    pub number: u32,
    /// What RM_CONTROL and RM_ALLOC are about, when the parameters could be read.
    pub object: Option<Object>,
    /// The client handle (hClient or hRoot) and the object or its parent.
    pub handles: Option<(u32, u32)>,
    /// The GPU that a UVM request registers, as its UUID.
    pub gpu: Option<String>,
    /// Where the parameters proper lie when NV_ESC_IOCTL_XFER_CMD carries them.
    pub carried: Option<Carried>,
}

/// The parameters that NV_ESC_IOCTL_XFER_CMD points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Their address in the process.
    pub address: u64,
    /// Their length in bytes.
    pub size: u32,
}

/// What RM_CONTROL or RM_ALLOC is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// A control command.
    Control(u32),
    /// A class.
    Class(u32),
}

impl Object {
    /// Its name; where the tables have none, its number in hexadecimal, after what a command is
    /// known to belong to: `NV2081_BINAPI 0x20810108`.
    pub fn name(self) -> String {
        match self {
            Object::Control(command) => nvabi::control::by_command(command)
                .map_or_else(|| nameless(command), |control| control.name.to_owned()),
            Object::Class(class) => nvabi::class::by_id(class)
                .map_or_else(|| format!("{class:#06x}"), |class| class.name.to_owned()),
        }
    }

    /// True when the tables have a name for it.
    pub fn known(self) -> bool {
        match self {
            Object::Control(command) => nvabi::control::by_command(command).is_some(),
            Object::Class(class) => nvabi::class::by_id(class).is_some(),
        }
    }
}

fn nameless(command: u32) -> String {
    let group = nvabi::control::group(command).map(|group| group + " ").unwrap_or_default();
    format!("{group}{command:#010x}")
}

impl Asked {
    /// The call in the words of a trace: `RM_CONTROL NV0000_CTRL_CMD_GPU_ATTACH_IDS`,
    /// `UVM_REGISTER_GPU`.
    pub fn words(&self) -> String {
        match self.object {
            Some(object) => {
                let request = self.request.strip_prefix("NV_ESC_").unwrap_or(&self.request);
                format!("{request} {}", object.name())
            }
            None => self.request.clone(),
        }
    }
}

/// How many bytes of the parameters `asked` and `status` may look at; 0 when the request
/// carries none.
pub fn parameter_bytes(node: &Node, request: u32) -> usize {
    let size = match node.speaks() {
        Speaks::Escapes => size_of_request(request),
        Speaks::Uvm => nvabi::uvm::by_request(request).map_or(0, |known| {
            let sizes = MEASURED_BRANCHES.into_iter().filter_map(|branch| known.size_in(branch));
            sizes.max().unwrap_or(0) as usize
        }),
        Speaks::Other => 0,
    };
    size.min(LONGEST_PARAMETERS)
}

/// How many of those bytes are enough to name the call.
pub fn naming_bytes(node: &Node, request: u32) -> usize {
    parameter_bytes(node, request).min(HEAD)
}

fn size_of_request(request: u32) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// Names a request. `parameters` are the bytes at its argument, as many as could be read; `read`
/// fetches more of the process's memory, for NV_ESC_IOCTL_XFER_CMD.
pub fn asked(
    node: &Node,
    request: u32,
    parameters: &[u8],
    read: &mut dyn FnMut(u64, usize) -> Option<Vec<u8>>,
) -> Asked {
    match node.speaks() {
        Speaks::Escapes => escape(request, parameters, read),
        Speaks::Uvm => uvm(request, parameters),
        Speaks::Other => unknown(request),
    }
}

fn unknown(request: u32) -> Asked {
    Asked { request: format!("{request:#x}"), number: request, ..Asked::default() }
}

fn uvm(request: u32, parameters: &[u8]) -> Asked {
    let Some(known) = nvabi::uvm::by_request(request) else { return unknown(request) };
    let has_uuid = matches!(request, UVM_REGISTER_GPU | UVM_UNREGISTER_GPU);
    Asked {
        request: known.name.to_owned(),
        known: true,
        number: request,
        gpu: if has_uuid { uuid(parameters) } else { None },
        ..Asked::default()
    }
}

fn uuid(parameters: &[u8]) -> Option<String> {
    let bytes: &[u8; 16] = parameters.first_chunk()?;
    let hex = format!("{:032x}", u128::from_be_bytes(*bytes));
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    Some(format!("GPU-{}", parts.join("-")))
}

fn escape(
    request: u32,
    parameters: &[u8],
    read: &mut dyn FnMut(u64, usize) -> Option<Vec<u8>>,
) -> Asked {
    let Some(call) = nvabi::ioctl::decode_request(request) else { return unknown(request) };
    if call.nr == XFER_CMD
        && let Some(carried) = carried(parameters)
        && let Some(number) = word(parameters, 0)
    {
        let inner = read(carried.address, (carried.size as usize).min(HEAD)).unwrap_or_default();
        let name = nvabi::ioctl::escape_by_nr(number).map(|escape| escape.name);
        return Asked { carried: Some(carried), ..named(name, number, &inner) };
    }
    named(Some(call.name), call.nr, parameters)
}

fn carried(parameters: &[u8]) -> Option<Carried> {
    let address = parameters.get(8..16)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))?;
    Some(Carried { address, size: word(parameters, 4)? })
}

fn named(name: Option<&str>, number: u32, parameters: &[u8]) -> Asked {
    let object = match number {
        RM_CONTROL => word(parameters, 8).map(Object::Control),
        RM_ALLOC => word(parameters, 12).map(Object::Class),
        _ => None,
    };
    let has_handles = matches!(number, RM_FREE | RM_CONTROL | RM_ALLOC);
    let handles = word(parameters, 0).zip(word(parameters, 4)).filter(|_| has_handles);
    Asked {
        request: name.map_or_else(|| format!("{number:#x}"), str::to_owned),
        known: name.is_some(),
        number,
        object,
        handles,
        ..Asked::default()
    }
}

/// Where the NV_STATUS of an answered request stands, in bytes from the start of its parameters
/// (of the carried ones, if any). Where branches differ and the branch is not known there is none:
/// a wrong offset is worse than none.
pub fn status_offset(
    node: &Node,
    request: u32,
    asked: &Asked,
    branch: Option<u32>,
) -> Option<usize> {
    let in_branch = |branch: u32| match node.speaks() {
        Speaks::Escapes => {
            let call = nvabi::ioctl::decode_request(request)?;
            let escape = match asked.carried {
                Some(_) => nvabi::ioctl::escape_by_nr(asked.number)?,
                None => call.escape,
            };
            escape.status_offset_in(branch)
        }
        Speaks::Uvm => nvabi::uvm::by_request(request)?.status_offset(branch),
        Speaks::Other => None,
    };
    let offset = if let Some(branch) = branch {
        in_branch(branch)?
    } else {
        let mut offsets = MEASURED_BRANCHES.into_iter().filter_map(in_branch);
        let first = offsets.next()?;
        offsets.all(|offset| offset == first).then_some(first)?
    };
    usize::try_from(offset).ok()
}

/// The module's version in the parameters of an answered NV_ESC_CHECK_VERSION_STR.
pub fn version_told(asked: &Asked, parameters: &[u8]) -> Option<String> {
    if asked.number != CHECK_VERSION_STR || !asked.known {
        return None;
    }
    let text = parameters.get(8..72)?.split(|byte| *byte == 0).next()?;
    let text = std::str::from_utf8(text).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// A status as its name, or in hexadecimal where the table has none.
pub fn status_name(status: u32) -> String {
    nvabi::nv_status::by_code(status)
        .map_or_else(|| format!("{status:#x}"), |known| known.name.to_owned())
}

/// A 32-bit number at an offset.
pub fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(path: &str) -> Node {
        Node::of(path).unwrap()
    }

    fn nothing(_: u64, _: usize) -> Option<Vec<u8>> {
        None
    }

    #[test]
    fn nodes_are_told_from_other_files() {
        assert_eq!(node("/dev/nvidia3").speaks(), Speaks::Escapes);
        assert_eq!(node("/dev/nvidia-uvm-tools").speaks(), Speaks::Uvm);
        assert_eq!(node("/dev/nvidia-caps/nvidia-cap1").speaks(), Speaks::Other);
        let stand_in = node("/memfd:/dev/nvidiactl (deleted)");
        assert_eq!((stand_in.short(), stand_in.stands_in), ("nvidiactl", true));
        for other in ["/dev/null", "/dev/nvidia_x", "/memfd:x (deleted)", "socket:[1]", "/dev"] {
            assert_eq!(Node::of(other), None, "{other}");
        }
    }

    #[test]
    fn controls_and_classes_are_named_from_their_parameters() {
        let mut control = [0_u8; 32];
        control[8..12].copy_from_slice(&0x214_u32.to_ne_bytes());
        let asked_for = asked(&node("/dev/nvidiactl"), 0xc020_462a, &control, &mut nothing);
        assert_eq!(asked_for.words(), "RM_CONTROL NV0000_CTRL_CMD_GPU_GET_PROBED_IDS");
        let mut alloc = [0_u8; 48];
        alloc[12..16].copy_from_slice(&0x80_u32.to_ne_bytes());
        let asked_for = asked(&node("/dev/nvidiactl"), 0xc030_462b, &alloc, &mut nothing);
        assert_eq!(asked_for.words(), "RM_ALLOC NV01_DEVICE_0");
        let bare = asked(&node("/dev/nvidiactl"), 0xc020_462a, &[], &mut nothing);
        assert_eq!(bare.words(), "NV_ESC_RM_CONTROL");
    }

    #[test]
    fn carried_parameters_are_followed() {
        let mut outer = [0_u8; 16];
        outer[..4].copy_from_slice(&0x2a_u32.to_ne_bytes());
        outer[4..8].copy_from_slice(&32_u32.to_ne_bytes());
        outer[8..16].copy_from_slice(&0x7000_u64.to_ne_bytes());
        let mut read = |address: u64, length: usize| {
            assert_eq!((address, length), (0x7000, 32));
            let mut inner = vec![0_u8; 32];
            inner[8..12].copy_from_slice(&0x101_u32.to_ne_bytes());
            Some(inner)
        };
        let control = node("/dev/nvidiactl");
        let asked_for = asked(&control, 0xc010_46d3, &outer, &mut read);
        assert_eq!(asked_for.words(), "RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION");
        assert_eq!(status_offset(&control, 0xc010_46d3, &asked_for, None), Some(28));
    }

    #[test]
    fn a_status_is_looked_for_only_where_it_is_known_to_stand() {
        let uvm = node("/dev/nvidia-uvm");
        let register = asked(&uvm, 0x25, &[0xab; 40], &mut nothing);
        assert_eq!(register.gpu.as_deref(), Some("GPU-abababab-abab-abab-abab-abababababab"));
        assert_eq!(status_offset(&uvm, 0x25, &register, None), Some(36));
        let free = asked(&uvm, 0x22, &[], &mut nothing);
        assert_eq!(status_offset(&uvm, 0x22, &free, Some(580)), Some(16));
        assert_eq!(status_offset(&uvm, 0x22, &free, None), None, "branches differ");
        let odd = asked(&uvm, 0x5401, &[], &mut nothing);
        assert_eq!((odd.words().as_str(), odd.known), ("0x5401", false));
    }
}
