//! The call that the GSP left unanswered, by name.

use facts::Facts;
use facts::model::log::LogEvent;
use nvabi::{class, control, gsp_rpc};

use crate::readings;

/// Function numbers of the two calls whose first data word names what was asked.
const RM_CONTROL: u32 = 76;
const RM_ALLOC: u32 = 103;

/// Whether the line names the unanswered call.
pub(super) fn tells_call(event: &LogEvent) -> bool {
    matches!(event.signature, "GSP_RPC_TIMEOUT" | "GSP_RPC_TIMEOUT_OLD")
        && event.get("fn").is_some()
}

/// What the line says, in words.
pub(super) fn silence(facts: &Facts, event: &LogEvent) -> String {
    let xid = facts.log.events.iter().find(|other| {
        other.origin == event.origin && matches!(other.get("xid"), Some("119" | "120"))
    });
    let head = xid.and_then(|xid| xid.get("xid")).map_or(String::new(), |n| format!("Xid {n}: "));
    match call(facts, event) {
        Some(call) => {
            let after = event.get("s").map_or(String::new(), |s| format!(" for {s} s"));
            format!("{head}the GSP did not answer {call}{after}")
        }
        None => format!("{head}{}", without_call(event)),
    }
}

fn without_call(event: &LogEvent) -> &'static str {
    match event.signature {
        "GSP_HEARTBEAT" | "GSP_HEARTBEAT_RM" | "GSP_HEARTBEAT_LIBOS" => {
            "the GSP's heartbeat stopped"
        }
        "GSP_CRASHCAT" | "GSP_CRASHCAT_ANY" => "the GSP reported a crash of its own",
        "XID" if event.get("xid") == Some("120") => "the GSP reported an error of its own",
        _ => "the GSP did not answer in time",
    }
}

/// The call: function, and for a control or an allocation what it was about.
fn call(facts: &Facts, event: &LogEvent) -> Option<String> {
    let number: u32 = event.get("fn")?.parse().ok()?;
    let branch = readings::driver_version(facts).map(|seen| seen.value.branch());
    let function = branch
        .and_then(|branch| gsp_rpc::function_in(number, branch))
        .or_else(|| gsp_rpc::function(number));
    let name = function.map_or_else(|| format!("function {number}"), |rpc| rpc.name.to_owned());
    let word = event
        .get("d0")
        .and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    let Some(word) = word.and_then(|word| u32::try_from(word).ok()) else {
        return Some(name);
    };
    let about = match number {
        RM_CONTROL => control::by_command(word).map(|control| control.name),
        RM_ALLOC => class::names(word).next().map(|class| class.name),
        _ => None,
    };
    Some(match about {
        Some(about) => format!("{name} {word:#010x} ({about})"),
        None if matches!(number, RM_CONTROL | RM_ALLOC) => format!("{name} {word:#010x}"),
        None => name,
    })
}
