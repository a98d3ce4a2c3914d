//! The indented lines below a device.

use super::LspciDevice;
use super::head::id_pair;
use crate::model::pci::{Bar, Link};
use crate::observed::{Observed, Origin};
use crate::parse::At;

/// Reads one line. Readings get a bare origin here; the extractor replaces it by the real one.
pub(super) fn read(number: u32, content: &str, out: &mut LspciDevice) {
    let device = &mut out.device;
    if let Some(driver) = content.strip_prefix("Kernel driver in use:") {
        device.driver = seen(number, content, driver.trim().to_owned());
    } else if let Some(modules) = content.strip_prefix("Kernel modules:") {
        out.modules = modules.split(',').map(|name| name.trim().to_owned()).collect();
    } else if let Some(rest) = content.strip_prefix("Subsystem:") {
        let ids = rest.rsplit_once('[').map_or(rest, |(_, ids)| ids);
        device.subsystem = id_pair(ids.trim().trim_end_matches(']'));
    } else if let Some(rest) = content.strip_prefix("Region ") {
        add_bar(number, content, rest, &mut device.bars);
    } else if let Some(rest) = content.strip_prefix("LnkCap:") {
        update_link(number, content, &mut device.link, speed_and_width(rest), Which::Most);
    } else if let Some(rest) = content.strip_prefix("LnkSta:") {
        update_link(number, content, &mut device.link, speed_and_width(rest), Which::Now);
    } else if let Some(node) = content.strip_prefix("NUMA node:") {
        if let Ok(node) = node.trim().parse() {
            device.numa_node = seen(number, content, node);
        }
    } else if let Some(group) = content.strip_prefix("IOMMU group:") {
        if let Ok(group) = group.trim().parse() {
            device.iommu_group = seen(number, content, group);
        }
    } else if content.contains("Unknown header type 7f") {
        out.lost.get_or_insert(At::new(number, content.to_owned()));
    }
}

fn seen<T>(number: u32, content: &str, value: T) -> Observed<T> {
    let mut origin = Origin::item("").with_excerpt(content);
    origin.line = number;
    origin.end_line = number;
    Observed::seen(value, origin)
}

/// `0: Memory at f2000000 (64-bit, prefetchable) [size=16M]`; `<unassigned>` and `<ignored>` stand
/// for a region without an address.
fn add_bar(number: u32, content: &str, rest: &str, bars: &mut Observed<Vec<Bar>>) {
    let Some(bar) = bar(rest) else { return };
    match bars {
        Observed::Seen(known) if known.value.len() < 6 => known.value.push(bar),
        Observed::Seen(_) => {}
        other => *other = seen(number, content, vec![bar]),
    }
}

fn bar(rest: &str) -> Option<Bar> {
    let (index, rest) = rest.split_once(": Memory at ")?;
    let index = index.parse().ok().filter(|index: &u8| *index < 6)?;
    let start = u64::from_str_radix(rest.split_ascii_whitespace().next()?, 16).unwrap_or(0);
    let size = rest.split_once("[size=").and_then(|(_, size)| size_bytes(size));
    Some(Bar { index, start, size_bytes: size.unwrap_or(0) })
}

/// `16M]`.
fn size_bytes(text: &str) -> Option<u64> {
    let text = text.split(']').next()?;
    let digits = text.trim_end_matches(|ch: char| ch.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let shift = match text.get(digits.len()..)? {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

#[derive(Clone, Copy)]
enum Which {
    Now,
    Most,
}

/// `Speed 32GT/s (downgraded), Width x16 (ok)`.
fn speed_and_width(text: &str) -> Option<(f32, u8)> {
    let (_, speed) = text.split_once("Speed ")?;
    let speed = speed.split("GT/s").next()?.parse().ok()?;
    let (_, width) = text.split_once("Width x")?;
    let digits = width.split(|ch: char| !ch.is_ascii_digit()).next()?;
    Some((speed, digits.parse().ok()?))
}

/// Capability and state stand on lines of their own; what is not yet known stays 0.
fn update_link(
    number: u32,
    content: &str,
    link: &mut Observed<Link>,
    values: Option<(f32, u8)>,
    which: Which,
) {
    let Some((gts, width)) = values else { return };
    if !link.is_seen() {
        let none = Link { current_gts: 0.0, current_width: 0, max_gts: 0.0, max_width: 0 };
        *link = seen(number, content, none);
    }
    let Observed::Seen(known) = link else { return };
    match which {
        Which::Now => (known.value.current_gts, known.value.current_width) = (gts, width),
        Which::Most => (known.value.max_gts, known.value.max_width) = (gts, width),
    }
}
