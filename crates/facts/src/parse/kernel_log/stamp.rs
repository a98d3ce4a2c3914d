//! The stamps that stand in front of a kernel log's lines.

/// Where a stamp counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// From boot.
    Boot,
    /// From the Unix epoch. Stamps without a zone are taken as UTC.
    Epoch,
    /// From the beginning of a year that the stamp does not name.
    Year,
}

/// A time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stamp {
    /// Seconds.
    pub seconds: f64,
    /// Since when.
    pub clock: Clock,
}

/// Reads `12.345678` with any blanks before it.
pub(super) fn boot(text: &str) -> Option<Stamp> {
    let text = text.trim_start();
    let (whole, fraction) = text.split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(fraction) && text.len() < 32)
        .then(|| text.parse().ok())?
        .map(|seconds| Stamp { seconds, clock: Clock::Boot })
}

/// Reads `Nov 30 08:36:01` with or without a fraction, and gives what follows it.
pub(super) fn month_day(text: &str) -> Option<(Stamp, &str)> {
    let (month, rest) = text.split_once(' ')?;
    let month = month_number(month)?;
    let (day, rest) = rest.trim_start().split_once(' ')?;
    let day: u32 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let (time, rest) = rest.split_once(' ')?;
    // The days of a leap year, so that 29 February has its place.
    let seconds = f64::from(days_in_leap_year(month, day) * 86_400) + clock_time(time)?;
    Some((Stamp { seconds, clock: Clock::Year }, rest))
}

/// Reads `Mon Nov 30 08:36:01 2026`, as `dmesg -T` writes it.
pub(super) fn ctime(text: &str) -> Option<Stamp> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let month = month_number(words.next()?)?;
    let day: u32 = words.next()?.parse().ok()?;
    let time = clock_time(words.next()?)?;
    let year: i64 = words.next()?.parse().ok()?;
    epoch(year, month, day, time)
}

/// Reads `2026-11-30T08:36:01.123456+00:00` (also with a blank for the T, a comma for the point,
/// `+0000`, `Z` or no zone), and gives what follows it.
pub(super) fn iso(text: &str) -> Option<(Stamp, &str)> {
    let date = text.get(..10)?;
    let mut parts = date.split('-');
    let year: i64 = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let month: u32 = parts.next()?.parse().ok()?;
    let day: u32 = parts.next()?.parse().ok()?;
    let rest = text.get(10..)?.strip_prefix(['T', ' '])?;
    let end = rest.find(' ').unwrap_or(rest.len());
    let (time, after) = (rest.get(..end)?, rest.get(end..)?.trim_start());
    let (time, zone_seconds) = split_zone(time);
    let stamp = epoch(year, month, day, clock_time(time)? - zone_seconds)?;
    Some((stamp, after))
}

/// The time without its zone, and the zone's distance from UTC in seconds.
fn split_zone(time: &str) -> (&str, f64) {
    if let Some(time) = time.strip_suffix('Z') {
        return (time, 0.0);
    }
    let Some(at) = time.rfind(['+', '-']) else {
        return (time, 0.0);
    };
    let (clock, zone) = time.split_at(at);
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let part = |range: std::ops::Range<usize>| {
        digits.get(range).and_then(|part| part.parse::<u32>().ok()).unwrap_or(0)
    };
    let seconds = f64::from(part(0..2) * 3600 + part(2..4) * 60);
    (clock, if zone.starts_with('-') { -seconds } else { seconds })
}

/// Reads `08:36:01.123456` as seconds of the day.
fn clock_time(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let hours: u32 = parts.next()?.parse().ok().filter(|hours| *hours < 24)?;
    let minutes: u32 = parts.next()?.parse().ok().filter(|minutes| *minutes < 60)?;
    let seconds = parts.next().unwrap_or("0").replace(',', ".");
    let plain = seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = plain.then(|| seconds.parse().ok())??;
    let in_range = seconds < 61.0 && parts.next().is_none();
    in_range.then(|| f64::from(hours * 3600 + minutes * 60) + seconds)
}

pub(super) fn month_number(name: &str) -> Option<u32> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    (1..).zip(MONTHS).find(|(_, known)| *known == name).map(|(number, _)| number)
}

fn days_in_leap_year(month: u32, day: u32) -> u32 {
    const LENGTHS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before: u32 = (1..month).zip(LENGTHS).map(|(_, length)| length).sum();
    before + day.saturating_sub(1)
}

/// Days from the epoch by the usual count of a year that begins in March.
fn epoch(year: i64, month: u32, day: u32, seconds_of_day: f64) -> Option<Stamp> {
    let valid =
        (1970..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !valid {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era_year = year.rem_euclid(400);
    let shifted_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = era_year * 365 + era_year / 4 - era_year / 100 + day_of_year;
    let days = year.div_euclid(400) * 146_097 + day_of_era - 719_468;
    let days = u32::try_from(days).ok()?;
    Some(Stamp { seconds: f64::from(days) * 86_400.0 + seconds_of_day, clock: Clock::Epoch })
}
