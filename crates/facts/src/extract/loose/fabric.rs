//! The fabric manager's log, its start script, the subnet manager beside it, and the states of
//! NVLinks.

use super::Line;
use super::pattern::{captures, group, matches, pattern};
use crate::model::Facts;
use crate::model::fabric::{ManagerLine, NvLink};
use crate::observed::{Observed, Seen, clean_excerpt};
use crate::version::DriverVersion;

pattern! {
    /// `fabric manager NVIDIA GPU driver interface version A don't match with driver version B`.
    MISMATCH = r"(?i)(?:fabric ?manager|interface) .{0,40}?version:? (?P<own>\d{3}\.\d+(?:\.\d+)?),? .{0,30}?\b(?:match|differ|mismatch)\w*.{0,40}?version:? (?P<driver>\d{3}\.\d+(?:\.\d+)?)"
}
pattern! { NOTHING = r"NV_WARN_NOTHING_TO_DO" }
pattern! {
    /// The start script prints its usage, or the daemon refuses an argument.
    USAGE = r"(?i)\bUnknown option: ?(?P<option>\S+)|\bUsage: \S*nvidia-fabricmanager-start\.sh|\bnv-fabricmanager: (?:invalid|unrecognized) option(?P<other>.*)"
}
pattern! { NEEDS_MODULE = r#"(?i)\bKernel module ["'`]?(?P<name>ib_umad|mlx5_ib|mlx5_core|ib_core)["'`]? has not been loaded|\bmodprobe: FATAL: Module (?P<missing>ib_umad|mlx5_ib) not found"# }
pattern! { MODULE_TOLD = r"(?i)\b(?P<name>mlx5_ib|ib_umad)\b[^.\n]{0,30}\b(?:not loaded|isn['’]t loaded|aren['’]t loaded|missing|not found|not available)\b" }
pattern! { DETECTED = r"(?i)\bDetected (?P<kind>Pre-NVL5|NVL5\+) system" }
pattern! { BAD_CONFIGURATION = r"(?i)\bfabric ?manager\b.{0,80}\b(?:failed to (?:parse|open|read).{0,30}(?:config|topology)|invalid (?:config|topology)|topology file.{0,30}(?:not found|invalid|missing))|\bfailed to (?:parse|find|open) .{0,40}fabricmanager\.cfg" }
pattern! { LINK_FAULT = r"(?i)\b(?:nv-?fabric ?manager|fabric ?manager)\b.{0,120}\b(?:NVLink|NVSwitch|link|GPU)\b.{0,60}\b(?:fatal error|failed to train|training failed|went down|is down|non-fatal error|failure)\b" }
pattern! { CONFIGURED = r"Successfully configured all the available (?:GPUs and )?NVSwitches" }
pattern! {
    /// The version of the package or of the daemon.
    VERSION = r"(?i)\b(?:nv-?|nvidia-)?fabric[- _]?manager(?:-(?:dev-)?\d{3})?(?:[ :=/|-]|\bversion\b|\bis\b|\bamd64\b|\bpackage\b|\bat\b){1,10}v?(?P<version>\d{3}\.\d{2,3}(?:\.\d{2})?)\b"
}
pattern! { LINK = r"^\s*Link (?P<link>\d{1,2}): (?:(?P<off><?inactive>?|Inactive|Disabled|Off)|(?P<speed>[\d.]+ GB/s))" }
pattern! { LINK_GPU = r"^GPU (?P<gpu>\d{1,3}): " }
pattern! {
    LINKS_LACK = r"(?i)\bonly (?:some|one|two|\d+)(?: of (?:the|its|\d+))*\b[^.\n]{0,30}\b(?:NV)?links?\b[^.\n]{0,30}\b(?:detected|active|up|seen|found|work\w*|come up|shown?)\b|\b(?:NV)?links?\b[^.\n]{0,20}\b(?:is|are|goes|went|stays?) (?:down|inactive)\b|\bNVLink\b[^.\n]{0,40}\b(?:quer(?:y|ies)|status)\b[^.\n]{0,40}\b(?:very long|slow|seconds|minutes|hang\w*|freez\w*)\b|\btopo -m\b[^.\n]{0,40}\b(?:\d{2,} ?s(?:econds)?|minutes?|very long)\b"
}
pattern! { ELSEWHERE = r"(?i)\bNVSwitch(?:es)?\b[^.\n]{0,60}\b(?:passed(?: through)?|given|assigned|attached|belong\w*|stay\w*|in|on|into)\b[^.\n]{0,30}\b(?:one|another|other|single|service|first|the host|hypervisor)\b[^.\n]{0,12}|\b(?:without|no|none of the) NVSwitch(?:es)?\b[^.\n]{0,30}\b(?:VM|guest|pass\w*)\b|\b(?:VMs?|guests?)\b[^.\n]{0,40}\b(?:without|got no(?:ne)?|no) (?:the )?(?:NVSwitch|switch)(?:es)?\b" }
pattern! { NO_INFINIBAND = r"(?i)\b(?:no (?:devices?|entr\w+)|empty|nothing)\b[^.\n]{0,30}/sys/class/infiniband|/sys/class/infiniband\b[^.\n]{0,20}\b(?:is |was )?(?:empty|missing|absent|not there|does not exist)" }

/// Most entries of one kind.
const LIMIT: usize = 1024;

pub(super) fn read(line: &Line<'_>, prose: bool, facts: &mut Facts) {
    const MARKS: [&str; 14] = [
        "abric",
        "NV_WARN",
        "Link",
        "link",
        "NVL5",
        "Usage",
        "option",
        "ib_",
        "_ib",
        "infiniband",
        "Switch",
        "switch",
        "topo",
        "GPU ",
    ];
    if !MARKS.iter().any(|mark| line.text.contains(mark)) {
        return;
    }
    links(line, facts);
    if let Some(found) = manager(line, prose) {
        facts.mentions_gpu = true;
        if facts.fabric.manager_lines.len() < LIMIT {
            facts.fabric.manager_lines.push(Seen::new(found, line.origin()));
        }
    }
    if let Some(version) = group(&VERSION, line.text, "version").and_then(DriverVersion::parse) {
        facts.fabric.manager_version.or_better(Observed::seen(version, line.origin()));
    }
    if matches(&NO_INFINIBAND, line.text) {
        facts.fabric.infiniband.or_better(Observed::Absent(line.origin()));
    }
    if prose && matches(&LINKS_LACK, line.text) {
        let said = Seen::new(clean_excerpt(line.text), line.origin());
        facts.fabric.link_statements.push(said);
    }
    if prose && matches(&ELSEWHERE, line.text) {
        let said = Seen::new(clean_excerpt(line.text), line.origin());
        facts.fabric.switches_elsewhere.push(said);
    }
}

fn manager(line: &Line<'_>, prose: bool) -> Option<ManagerLine> {
    let text = line.text;
    if let Some(found) = captures(&MISMATCH, text) {
        let own = DriverVersion::parse(found.name("own")?.as_str())?;
        let driver = DriverVersion::parse(found.name("driver")?.as_str())?;
        return (own != driver).then_some(ManagerLine::VersionMismatch(own, driver));
    }
    if matches(&NOTHING, text) {
        return Some(ManagerLine::NothingToDo);
    }
    if let Some(found) = captures(&USAGE, text) {
        let option = found.name("option").or(found.name("other"));
        let about = option.is_none_or(|_| text.contains("fabric") || text.contains("nvswitch"));
        let option = option.map_or("", |option| option.as_str()).trim().to_owned();
        return about.then_some(ManagerLine::Usage(option));
    }
    if let Some(found) = captures(&NEEDS_MODULE, text) {
        let name = found.name("name").or(found.name("missing"))?;
        return Some(ManagerLine::ModuleMissing(name.as_str().to_owned()));
    }
    if let Some(name) = group(&MODULE_TOLD, text, "name").filter(|_| prose) {
        return Some(ManagerLine::ModuleTold(name.to_owned()));
    }
    if let Some(kind) = group(&DETECTED, text, "kind") {
        return Some(ManagerLine::DetectedFifth(!kind.eq_ignore_ascii_case("Pre-NVL5")));
    }
    if matches(&CONFIGURED, text) {
        return Some(ManagerLine::Configured);
    }
    if matches(&BAD_CONFIGURATION, text) {
        return Some(ManagerLine::BadConfiguration(clean_excerpt(text)));
    }
    matches(&LINK_FAULT, text).then(|| ManagerLine::LinkFault(clean_excerpt(text)))
}

/// `nvidia-smi nvlink --status`: a heading for each GPU, a line for each link.
fn links(line: &Line<'_>, facts: &mut Facts) {
    if let Some(gpu) = group(&LINK_GPU, line.text, "gpu").and_then(|gpu| gpu.parse().ok()) {
        facts.fabric.link_gpu = Some(gpu);
        return;
    }
    let Some(found) = captures(&LINK, line.text) else { return };
    let Some(link) = found.name("link").and_then(|link| link.as_str().parse().ok()) else { return };
    if facts.fabric.links.len() >= LIMIT {
        return;
    }
    let value = NvLink { gpu: facts.fabric.link_gpu, link, active: found.name("off").is_none() };
    let known = facts
        .fabric
        .links
        .iter_mut()
        .find(|seen| seen.value.gpu == value.gpu && seen.value.link == value.link);
    facts.mentions_gpu = true;
    match known {
        Some(known) => known.value = value,
        None => facts.fabric.links.push(Seen::new(value, line.origin())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines_of;
    use super::*;

    fn line_of(text: &str) -> Option<ManagerLine> {
        lines_of(text).fabric.manager_lines.into_iter().next().map(|seen| seen.value)
    }

    #[test]
    fn the_managers_own_words() {
        let version = |text| DriverVersion::parse(text).unwrap();
        for (text, wanted) in [
            (
                "nv-fabricmanager[1]: fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver version 550.120. Please update",
                ManagerLine::VersionMismatch(version("550.127.05"), version("550.120")),
            ),
            (
                "request failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
                ManagerLine::NothingToDo,
            ),
            (
                "Unknown option: /usr/share/nvidia/nvswitch/fabricmanager.cfg",
                ManagerLine::Usage("/usr/share/nvidia/nvswitch/fabricmanager.cfg".into()),
            ),
            (
                "Usage: /usr/bin/nvidia-fabricmanager-start.sh [script options]",
                ManagerLine::Usage(String::new()),
            ),
            (
                "Kernel module \"ib_umad\" has not been loaded, fabric manager cannot be started",
                ManagerLine::ModuleMissing("ib_umad".into()),
            ),
            ("mlx5_ib is not loaded on these nodes", ManagerLine::ModuleTold("mlx5_ib".into())),
            (
                "nvidia-fabricmanager-start.sh[4]: Detected Pre-NVL5 system",
                ManagerLine::DetectedFifth(false),
            ),
            (
                "Successfully configured all the available NVSwitches to route",
                ManagerLine::Configured,
            ),
        ] {
            assert_eq!(line_of(text), Some(wanted), "{text}");
        }
        let said = line_of("fabric manager failed to parse the config file");
        assert!(matches!(said, Some(ManagerLine::BadConfiguration(_))));
        let said = line_of("nv-fabricmanager: NVLink 3 of GPU 2 went down");
        assert!(matches!(said, Some(ManagerLine::LinkFault(_))));
        assert_eq!(line_of("Unknown option: --foo"), None);
    }

    #[test]
    fn versions_links_and_statements() {
        for text in [
            "ii  nvidia-fabricmanager-590   590.48.01-1  amd64  Fabric Manager",
            "nvidia-fabric-manager-590.48.01-1.x86_64",
            "Fabric Manager version is : 590.48.01",
        ] {
            let found = lines_of(text).fabric.manager_version;
            assert_eq!(
                found.value().map(ToString::to_string).as_deref(),
                Some("590.48.01"),
                "{text}"
            );
        }
        let facts =
            lines_of("GPU 1: X (UUID: GPU-1)\n\t Link 0: 25.781 GB/s\n\t Link 1: <inactive>\n");
        let links: Vec<_> = facts.fabric.links.iter().map(|seen| &seen.value).collect();
        assert_eq!((links[0].gpu, links[0].active, links[1].active), (Some(1), true, false));
        assert!(
            lines_of("no devices under /sys/class/infiniband").fabric.infiniband.absent().is_some()
        );
        assert_eq!(lines_of("only some of the links are detected").fabric.link_statements.len(), 1);
        assert_eq!(lines_of("NVSwitches passed to one VM only").fabric.switches_elsewhere.len(), 1);
    }
}
