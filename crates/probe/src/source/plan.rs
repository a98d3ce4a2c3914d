//! Which probes run, and when, as functions of what is known so far.

use std::time::Duration;

use facts::Layer;
use facts::raw::{ItemName, RawItem};
use facts::wire::{Outcome, Record};

use crate::supervise::Finished;

/// Probes whose results decide whether the driver is asked at all.
pub(super) const GATES: [&str; 3] = ["passive", "libraries", "pci"];
/// The other probes that ask no driver library.
pub(super) const BESIDE: [&str; 6] =
    ["proc-driver", "process", "sandbox", "kernel-log", "module-files", "frameworks"];
/// The probes that ask the driver, beside the trials of cuInit.
pub(super) const ACTIVE: [&str; 3] = ["nodes", "module", "nvml"];
/// The probe that is repeated when it does not succeed.
pub(super) const CUINIT: &str = "cuinit";

/// The probe that looks for tasks of the machine that do not get on.
pub(super) const STUCK: &str = "stuck";

/// Time that a probe which asks no library may take.
pub(super) const CALM_LIMIT: Duration = Duration::from_secs(5);
/// Time that a probe which asks the driver may take. A healthy cuInit takes 0.2 s a GPU; RM waits
/// 6 s for an answer of the GSP, so a shorter limit would take a slow failure for a hang.
pub(super) const ACTIVE_LIMIT: Duration = Duration::from_secs(10);
/// Shortest time in which a further trial after a hang is worth starting: the first one has shown
/// that it is no slow start.
const SHORTEST_TRIAL: Duration = Duration::from_secs(1);
/// The same after a trial that returned, which the next one will do as quickly.
const SHORTEST_QUICK_TRIAL: Duration = Duration::from_millis(500);

/// Whether a probe tells of one of the layers that were asked for; none means all.
pub(super) fn is_asked_for(probe: &str, layers: &[Layer]) -> bool {
    use Layer::{
        Cuda, Fabric, Firmware, Framework, Gpu, Kernel, Library, Module, Node, Nvml, P2p, Pci,
        Platform, Process, Sandbox, Share, Uvm,
    };
    let tells: &[Layer] = match probe {
        "pci" => &[Pci, Gpu, Platform, P2p],
        "libraries" => &[Library, Firmware],
        "proc-driver" => &[Module, Gpu, Firmware],
        "process" => &[Process],
        "sandbox" => &[Sandbox],
        "kernel-log" => &[Kernel, Module, Uvm, Firmware, Gpu, Fabric],
        "module-files" => &[Module, Firmware],
        "frameworks" => &[Framework],
        "nodes" => &[Node, Sandbox],
        "module" => &[Module],
        "nvml" => &[Nvml, Gpu, Share, Fabric],
        "cuinit" => &[Cuda, Uvm, P2p, Framework],
        // What everything else is read in the light of.
        _ => return true,
    };
    layers.is_empty() || tells.iter().any(|layer| layers.contains(layer))
}

/// Whether anything of NVIDIA's was found: a device, a node, the module, a library.
pub(super) fn shows_nvidia(item: &RawItem) -> bool {
    match &item.name {
        ItemName::File(path) => {
            let Some(bytes) = item.bytes().filter(|bytes| !bytes.is_empty()) else { return false };
            let is_device = path.starts_with("/sys/bus/pci/devices/")
                && path.ends_with("/vendor")
                && bytes.trim_ascii() == b"0x10de";
            let is_node = path.starts_with("/dev/nvidia") || path == "/dev/dxg";
            let is_module =
                path.starts_with("/sys/module/nvidia/") || path == "/proc/driver/nvidia/version";
            let is_library = path.contains("/libcuda.so") || path.contains("/libnvidia-ml.so");
            is_device || is_node || is_module || is_library
        }
        ItemName::Command(_) | ItemName::Probe { .. } | ItemName::Text(_) => false,
    }
}

/// What a trial of cuInit means for further ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trial {
    /// Everything that was tried worked, or could not be tried: another trial tells nothing.
    Settled,
    /// It failed and is gone.
    Failed,
    /// It hung and is gone.
    Hung,
    /// It cannot be killed. Another one would only become the next.
    LeftBehind,
}

/// Judges a trial by its end and its calls.
pub(super) fn judge(trial: &Finished) -> Trial {
    match trial.end.outcome {
        Outcome::Unkillable => Trial::LeftBehind,
        Outcome::TimedOut => Trial::Hung,
        Outcome::NotStarted => Trial::Settled,
        Outcome::Crashed | Outcome::Malformed => Trial::Failed,
        Outcome::Returned => {
            let failed = calls(trial).any(|(call, code)| {
                // Without a library, and for a function that it lacks, the answer stays the same.
                code != 0 && call != "load" && code != crate::sys::cuda::NOT_FOUND
            });
            if failed { Trial::Failed } else { Trial::Settled }
        }
    }
}

fn calls(trial: &Finished) -> impl Iterator<Item = (String, i64)> {
    let own = |item: &&RawItem| matches!(item.name, ItemName::Probe { .. });
    let lines = trial.items.iter().filter(own).filter_map(RawItem::bytes);
    let lines = lines.flat_map(|bytes| bytes.split(|byte| *byte == b'\n'));
    lines.filter_map(|line| match serde_json::from_slice(line).ok()? {
        Record::Call { call, code, .. } => Some((call, code)),
        Record::Enter { .. } | Record::Item { .. } | Record::Note { .. } | Record::End(_) => None,
    })
}

/// Shortest time in which an experiment is worth starting, when the run that it is held against
/// hung. A working cuInit takes 0.2 s a GPU.
const SHORTEST_EXPERIMENT: Duration = Duration::from_millis(800);

/// Time for the next experiment when so many are to come, itself among them: an equal share of what
/// is left, so that one that hangs takes little from the others, but enough to tell a hang from a
/// slow start; where there is not enough for all, the last ones go without. `usual` is how long a
/// run without the change takes to fail; `None` when it hangs.
pub(super) fn experiment(
    left: Duration,
    to_come: u32,
    usual: Option<Duration>,
) -> Option<Duration> {
    let share = left.checked_div(to_come.max(1))?;
    let shortest = usual.map_or(SHORTEST_EXPERIMENT, |usual| usual * 2 + SHORTEST_QUICK_TRIAL / 2);
    (left >= shortest).then_some(share.max(shortest).min(ACTIVE_LIMIT))
}

/// What a further trial after a hang leaves to experiments, which tell more than the same once more:
/// half, where the shares of the trials stay long enough.
pub(super) fn kept_for_experiments(
    last: Trial,
    done: u32,
    wanted: u32,
    left: Duration,
) -> Duration {
    let to_come = wanted.saturating_sub(done);
    let half = left / 2;
    let enough = half.checked_div(to_come).is_some_and(|share| share >= SHORTEST_TRIAL);
    if last == Trial::Hung && enough { half } else { Duration::ZERO }
}

/// Time for the first trial: half of what is left when others may follow.
pub(super) fn first_trial(wanted: u32, left: Duration) -> Duration {
    let share = if wanted > 1 { left / 2 } else { left };
    share.min(ACTIVE_LIMIT)
}

/// Time for the next of `wanted` trials when `done` are done, the last of which went so; `None`
/// when there is to be none. The time that is left is shared among those to come, unless the
/// shares would be too short to tell a hang from a slow start.
pub(super) fn next_trial(last: Trial, done: u32, wanted: u32, left: Duration) -> Option<Duration> {
    let shortest = match last {
        Trial::Settled | Trial::LeftBehind => return None,
        Trial::Failed => SHORTEST_QUICK_TRIAL,
        Trial::Hung => SHORTEST_TRIAL,
    };
    let to_come = wanted.saturating_sub(done);
    let share = left.checked_div(to_come)?;
    let limit = if share >= shortest { share } else { left };
    (limit >= shortest).then_some(limit.min(ACTIVE_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_shared_among_the_trials_to_come() {
        let seconds = Duration::from_secs;
        assert_eq!(next_trial(Trial::Hung, 1, 3, seconds(9)), Some(Duration::from_millis(4500)));
        assert_eq!(next_trial(Trial::Hung, 1, 5, seconds(3)), Some(seconds(3)));
        assert_eq!(next_trial(Trial::Hung, 1, 3, Duration::from_millis(900)), None);
        assert_eq!(first_trial(3, seconds(12)), seconds(6));
        assert_eq!(first_trial(1, seconds(5)), seconds(5));
        assert_eq!(first_trial(3, seconds(60)), ACTIVE_LIMIT);
        assert_eq!(next_trial(Trial::Failed, 1, 3, seconds(2)), Some(seconds(1)));
        assert_eq!(next_trial(Trial::Failed, 1, 2, seconds(60)), Some(ACTIVE_LIMIT));
        assert_eq!(next_trial(Trial::Failed, 3, 3, seconds(60)), None);
        assert_eq!(next_trial(Trial::LeftBehind, 1, 3, seconds(60)), None);
        assert_eq!(next_trial(Trial::Settled, 1, 3, seconds(60)), None);
    }

    #[test]
    fn experiments_share_what_is_left_and_trials_leave_them_half() {
        let seconds = Duration::from_secs;
        assert_eq!(experiment(seconds(6), 3, None), Some(seconds(2)));
        assert_eq!(experiment(seconds(2), 3, None), Some(SHORTEST_EXPERIMENT));
        assert_eq!(experiment(Duration::from_millis(700), 3, None), None);
        assert_eq!(
            experiment(seconds(2), 3, Some(Duration::from_millis(100))),
            Some(seconds(2) / 3)
        );
        assert_eq!(experiment(seconds(60), 3, None), Some(ACTIVE_LIMIT));
        let slow = seconds(4) + SHORTEST_QUICK_TRIAL / 2;
        assert_eq!(experiment(seconds(6), 3, Some(seconds(2))), Some(slow));
        assert_eq!(experiment(seconds(3), 3, Some(seconds(2))), None);
        assert_eq!(kept_for_experiments(Trial::Hung, 1, 3, seconds(10)), seconds(5));
        assert_eq!(kept_for_experiments(Trial::Hung, 1, 5, seconds(6)), Duration::ZERO);
        assert_eq!(kept_for_experiments(Trial::Failed, 1, 3, seconds(10)), Duration::ZERO);
        assert_eq!(kept_for_experiments(Trial::Hung, 3, 3, seconds(10)), Duration::ZERO);
    }

    #[test]
    fn every_probe_tells_of_some_layer() {
        for probe in GATES.iter().chain(&BESIDE).chain(&ACTIVE).chain(&[CUINIT, STUCK]) {
            assert!(crate::probes::by_name(probe).is_some(), "{probe}");
            assert!(is_asked_for(probe, &[]));
            assert!(Layer::ALL.iter().any(|layer| is_asked_for(probe, &[*layer])));
        }
        assert!(is_asked_for("passive", &[Layer::Cuda]) && !is_asked_for("nvml", &[Layer::Cuda]));
    }

    #[test]
    fn a_device_of_another_vendor_and_an_absent_node_show_nothing() {
        let file = |path: &str, text: &'static [u8]| {
            shows_nvidia(&RawItem::new(ItemName::File(path.to_owned()), text))
        };
        assert!(file("/sys/bus/pci/devices/0000:01:00.0/vendor", b"0x10de\n"));
        assert!(!file("/sys/bus/pci/devices/0000:01:00.0/vendor", b"0x8086\n"));
        assert!(file("/dev/nvidiactl", b"char 195:255 mode 0666 owner 0:0\n"));
        assert!(!file("/etc/modprobe.d/nvidia.conf", b"options nvidia\n"));
        let absent = facts::raw::RawState::Absent;
        let name = ItemName::File("/dev/nvidiactl".to_owned());
        assert!(!shows_nvidia(&RawItem::with_state(name, absent)));
    }
}
