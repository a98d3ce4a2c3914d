//! The kernel as a report tells of it: settings of its configuration, Secure Boot, time since boot,
//! suspend and resume.

use super::Line;
use super::pattern::{captures, group, matches, pattern};
use crate::model::Facts;
use crate::model::host::ConfigValue;
use crate::observed::{Observed, Seen};
use crate::parse::kernel_config::SETTINGS_OF_INTEREST;

pattern! {
    /// `CONFIG_HMM_MIRROR=y`, `# CONFIG_ARM_SMMU_V3_SVA is not set`, also within a sentence.
    SETTING = r"\bCONFIG_(?P<name>[A-Z0-9_]+)(?:=(?P<value>[ymn])\b| (?P<unset>is not set\b))"
}
pattern! {
    /// `SecureBoot enabled` (mokutil), `Secure Boot: enabled (user)` (bootctl), `Secure boot
    /// enabled` (kernel log).
    SECURE_BOOT = r"(?i)\bsecure ?boot(?: state| is)?:? (?P<state>enabled|disabled|on|off|active|inactive)\b"
}
pattern! {
    /// `10:12:33 up 67 days,  6:12,  3 users,  load average: …`
    UPTIME = r"\bup (?P<days>\d{1,5}) days?,[^\n]*\bload average"
}
pattern! {
    /// `uptime -p`: `up 9 weeks, 4 days, 2 hours`.
    PRETTY = r"^\s*up (?:(?P<years>\d+) years?,? ?)?(?:(?P<weeks>\d+) weeks?,? ?)?(?:(?P<days>\d+) days?,? ?)?(?:\d+ hours?,? ?)?(?:\d+ minutes?)?\s*$"
}
pattern! {
    /// `uptime of 66 days`, `after about 66 days of uptime`, `up for 67 days`, `66 days 12 hours
    /// uptime`, `uptime: 67 days`.
    PROSE_UPTIME = r"(?i)\buptime\b[^.\n\d]{0,24}(?P<a>\d{1,4}) ?(?:days?|d)\b|\b(?P<b>\d{1,4}) ?(?:days?|d)\b(?:[^.\n]{0,24}\b(?:of )?uptime\b|[^.\n]{0,12}\bsince (?:the last )?(?:re)?boot\b)|\b(?:been )?(?:up|running) for (?:about |around |over |more than |~ ?)?(?P<c>\d{1,4}) ?(?:days?|d)\b"
}
pattern! {
    SUSPEND = r"(?i)\b(?:after|from|on|following|since|through|over|every|across)\b[^.\n]{0,40}\b(?:suspend(?:ing|ed)?|resum(?:e|ing|ed)|hibernat\w+|standby|sleep mode|waking(?: up)?|wake[- ]?up|s2idle|suspend-to-ram|sleep)\b"
}
pattern! {
    /// `PM: suspend exit`, also of a log that was cut from its stamps; journal lines of systemd.
    RESUME_LINE = r"\bPM: (?:suspend (?:entry|exit)|hibernation: hibernation (?:entry|exit)|resume from hibernation)|\bACPI: PM: Waking up from system sleep state S\d|\bsystemd-sleep\[\d+\]: (?:System returned from sleep|Entering sleep state|Performing sleep operation)"
}

/// Words of which a line on Secure Boot or on the time since boot holds one.
const MARKS: [&str; 7] = ["ecure", "SECURE", "day", "week", "year", "uptime", " d "];

const SECONDS_A_DAY: u64 = 86_400;

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    if !line.has("CONFIG_") && !MARKS.iter().any(|word| line.has(word)) {
        return;
    }
    for found in SETTING.iter().flat_map(|regex| regex.captures_iter(line.text)) {
        let name = found.name("name").map_or("", |name| name.as_str());
        if SETTINGS_OF_INTEREST.contains(&name) {
            let value = match found.name("value").map(|value| value.as_str()) {
                Some("y") => ConfigValue::Yes,
                Some("m") => ConfigValue::Module,
                _ => ConfigValue::No,
            };
            let entry = facts.host.config.entry(name.to_owned()).or_default();
            entry.or_better(Observed::seen(value, line.origin()));
        }
    }
    if let Some(state) = group(&SECURE_BOOT, line.text, "state") {
        let on = matches!(state.to_ascii_lowercase().as_str(), "enabled" | "on" | "active");
        facts.host.secure_boot.or_better(Observed::seen(on, line.origin()));
    }
    if let Some(days) = days_up(line.text) {
        let seconds = days.saturating_mul(SECONDS_A_DAY);
        facts.host.uptime_s.or_better(Observed::seen(seconds, line.origin()));
    }
}

/// What only prose tells.
pub(super) fn read_prose(line: &Line<'_>, facts: &mut Facts) {
    const LIMIT: usize = 16;
    let lower = line.text.to_lowercase();
    if !["suspend", "resum", "hibern", "standby", "sleep", "wak", "s2idle"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return;
    }
    let denied =
        ["without", "no", "never"].iter().any(|word| lower.contains(&format!("{word} suspend")));
    let told = matches(&RESUME_LINE, line.text) || (matches(&SUSPEND, line.text) && !denied);
    if told && facts.host.suspend_told.len() < LIMIT {
        let text = crate::observed::clean_excerpt(line.text);
        facts.host.suspend_told.push(Seen::new(text, line.origin()));
    }
}

fn days_up(text: &str) -> Option<u64> {
    if let Some(days) = group(&UPTIME, text, "days") {
        return days.parse().ok();
    }
    if let Some(found) = captures(&PRETTY, text) {
        let number = |name: &str| found.name(name).and_then(|n| n.as_str().parse::<u64>().ok());
        let (years, weeks, days) = (number("years"), number("weeks"), number("days"));
        let any = years.is_some() || weeks.is_some() || days.is_some();
        let days = days.unwrap_or(0) + 7 * weeks.unwrap_or(0) + 365 * years.unwrap_or(0);
        return any.then_some(days);
    }
    let found = captures(&PROSE_UPTIME, text)?;
    let days = ["a", "b", "c"].iter().find_map(|name| found.name(name))?;
    days.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_pattern_compiles() {
        for pattern in
            [&SETTING, &SECURE_BOOT, &UPTIME, &PRETTY, &PROSE_UPTIME, &SUSPEND, &RESUME_LINE]
        {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn time_since_boot_in_all_forms() {
        for (text, days) in [
            (" 10:12:33 up 67 days,  6:12,  3 users,  load average: 0.10, 0.08, 0.02", Some(67)),
            ("up 9 weeks, 4 days, 2 hours, 1 minute", Some(67)),
            ("up 3 days, 2 hours", Some(3)),
            ("nvidia-smi hangs indefinitely after ~66 days 12 hours uptime", Some(66)),
            ("The node had an uptime of 70 days", Some(70)),
            ("the box has been up for about 80 days", Some(80)),
            ("up 2 hours, 3 minutes", None),
            ("we waited 66 days for the card", None),
        ] {
            assert_eq!(days_up(text), days, "{text}");
        }
    }

    #[test]
    fn settings_and_secure_boot() {
        let facts = lines_of(
            "- `# CONFIG_ARM_SMMU_V3_SVA is not set` (hence no CONFIG_IOMMU_SVA)\n\
             SecureBoot enabled\n",
        );
        assert_eq!(facts.host.config("ARM_SMMU_V3_SVA").value(), Some(&ConfigValue::No));
        assert!(facts.host.config("IOMMU_SVA").is_unknown());
        assert_eq!(facts.host.secure_boot.value(), Some(&true));
    }

    #[test]
    fn a_resume_as_people_tell_it() {
        let told = |text: &str| !lines_of(text).host.suspend_told.is_empty();
        assert!(told("After suspend CUDA is broken"));
        assert!(told("CUDA dies when the laptop wakes from sleep"));
        assert!(told("[  409.1] PM: suspend exit"));
        assert!(!told("this happens without suspend being involved"));
        assert!(!told("time.sleep(3)"));
    }
}
