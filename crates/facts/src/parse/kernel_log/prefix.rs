//! What stands before the kernel's own text in a line: marks of quoting, stamps, host and tag.

use super::stamp::{self, Clock, Stamp};

/// Most layers of prefixes that are taken off: quoting, a syslog stamp, a boot stamp within it.
const LAYERS: usize = 4;

/// Splits a line into its stamp and the kernel's text. Of two stamps the one since boot counts,
/// since it is the kernel's own.
pub(super) fn split(line: &str) -> (Option<Stamp>, &str) {
    let mut rest = unquote(line);
    let mut found: Option<Stamp> = None;
    for _ in 0..LAYERS {
        let Some((stamp, after)) = one_layer(rest) else {
            break;
        };
        if let Some(stamp) = stamp.filter(|stamp| found.is_none() || stamp.clock == Clock::Boot) {
            found = Some(stamp);
        }
        rest = after.trim_start();
    }
    (found, rest.trim_end())
}

/// Takes off what mail, Markdown and issue trackers put in front: `> `, `- `, `* `, back-ticks.
fn unquote(line: &str) -> &str {
    let mut rest = line.trim_start();
    for _ in 0..8 {
        let marks = ["> ", "- ", "* ", "| ", "`", "\"", "'", ">"];
        let Some(stripped) = marks.iter().find_map(|mark| rest.strip_prefix(mark)) else {
            break;
        };
        rest = stripped.trim_start();
    }
    rest
}

/// Takes off one prefix. `Some((None, …))` for one that tells no time.
fn one_layer(text: &str) -> Option<(Option<Stamp>, &str)> {
    if let Some(rest) = text.strip_prefix('<') {
        return priority(rest);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (inner, after) = rest.split_once(']').filter(|(inner, _)| inner.len() < 48)?;
        let stamp = time_in_bracket(inner);
        let prefix = stamp.is_some() || is_other_bracket(inner);
        let after = after.strip_prefix(':').unwrap_or(after);
        return prefix.then(|| (stamp, host_and_tag(after.trim_start())));
    }
    kmsg(text)
        .or_else(|| facility(text))
        .or_else(|| stamp::iso(text).map(with_host))
        .or_else(|| weekday(text).and_then(stamp::iso).map(without_zone))
        .or_else(|| stamp::month_day(text).map(with_host))
        .or_else(|| unix(text))
        .or_else(|| logfmt(text))
}

fn with_host((stamp, after): (Stamp, &str)) -> (Option<Stamp>, &str) {
    (Some(stamp), host_and_tag(after.trim_start()))
}

/// `Mon 2026-11-30 08:36:01 UTC host kernel: …`
fn without_zone((stamp, after): (Stamp, &str)) -> (Option<Stamp>, &str) {
    let after = after.split_once(' ').map_or(after, |(_, after)| after);
    with_host((stamp, after))
}

/// `time="2026-11-30T08:36:01Z" level=info msg="[   67.48] pci …\n" source=agent`: a guest's log in
/// that of the runtime that started the guest.
fn logfmt(text: &str) -> Option<(Option<Stamp>, &str)> {
    const HEAD_BYTES: usize = 256;
    let begins = ["time=", "level=", "msg="].iter().any(|key| text.starts_with(key));
    let (_, message) = text.split_once("msg=\"").filter(|(head, _)| head.len() < HEAD_BYTES)?;
    let end = message.find("\\n\"").or_else(|| message.rfind('"')).unwrap_or(message.len());
    begins.then(|| (None, message.get(..end).unwrap_or(message)))
}

/// The time in a bracket: `   12.345678`, `Mon Nov 30 08:36:01 2026` or `2026-11-30T08:36:01.12Z`.
fn time_in_bracket(inner: &str) -> Option<Stamp> {
    let inner = inner.trim();
    let iso = || stamp::iso(inner).map(|(stamp, _)| stamp);
    stamp::boot(inner).or_else(|| stamp::ctime(inner)).or_else(iso)
}

/// A bracket in front of the text that tells no time to go by: a distance `+0.000012`, a minute
/// `Nov30 08:36`, a caller `T1234`.
fn is_other_bracket(inner: &str) -> bool {
    let inner = inner.trim();
    let number = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let marked = inner.strip_prefix(['+', 'T', 'C']).is_some_and(|rest| number(rest.trim_start()));
    let month = inner.get(..3).is_some_and(|month| stamp::month_number(month).is_some());
    marked || month
}

/// `<6>`, and RFC 5424's version behind it.
fn priority(rest: &str) -> Option<(Option<Stamp>, &str)> {
    let (number, after) = rest.split_once('>')?;
    number.parse::<u16>().ok()?;
    Some((None, after.strip_prefix("1 ").unwrap_or(after)))
}

/// `6,1234,5678901,-;text` of /dev/kmsg; the third number is microseconds since boot.
fn kmsg(text: &str) -> Option<(Option<Stamp>, &str)> {
    let (head, after) = text.split_once(';').filter(|(head, _)| head.len() < 80)?;
    let mut fields = head.split(',');
    fields.next()?.parse::<u16>().ok()?;
    fields.next()?.parse::<u64>().ok()?;
    let microseconds: u64 = fields.next()?.parse().ok()?;
    fields.next()?;
    let seconds = std::time::Duration::from_micros(microseconds).as_secs_f64();
    Some((Some(Stamp { seconds, clock: Clock::Boot }), after))
}

/// `kern  :err   : ` of `dmesg -x`, `kern: warning: ` of Talos.
fn facility(text: &str) -> Option<(Option<Stamp>, &str)> {
    let (name, rest) = text.split_once(':')?;
    let (level, after) = rest.split_once(':')?;
    let known = matches!(name.trim_end(), "kern" | "user" | "daemon" | "syslog");
    let levels = ["emerg", "alert", "crit", "err", "warn", "warning", "notice", "info", "debug"];
    (known && levels.contains(&level.trim())).then_some((None, after))
}

fn weekday(text: &str) -> Option<&str> {
    let (day, rest) = text.split_once(' ')?;
    matches!(day, "Mon" | "Tue" | "Wed" | "Thu" | "Fri" | "Sat" | "Sun").then_some(rest)
}

/// `1764491761.123456 host kernel: …`
fn unix(text: &str) -> Option<(Option<Stamp>, &str)> {
    let (number, after) = text.split_once(' ')?;
    let stamp = stamp::boot(number).filter(|stamp| stamp.seconds > 1e9)?;
    let (_, _) = after.split_once(" kernel")?;
    Some((Some(Stamp { clock: Clock::Epoch, ..stamp }), host_and_tag(after)))
}

/// Takes off `host kernel: ` and `host kernel - - - `, and the host before any other tag.
fn host_and_tag(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix("kernel: ") {
        return rest;
    }
    let Some((host, rest)) = text.split_once(' ') else {
        return text;
    };
    if host.ends_with(':') || host.is_empty() {
        return text;
    }
    if let Some(rest) = rest.strip_prefix("kernel: ") {
        return rest;
    }
    if let Some(rest) = rest.strip_prefix("kernel - ") {
        return rest.trim_start_matches("- ");
    }
    let tag = rest.split(' ').next().unwrap_or("");
    if tag.ends_with("]:") { rest } else { text }
}
