//! The JSON form, `gpudx/trace/1`: one object a line, with its kind in `record`.
//!
//! | record | fields |
//! |---|---|
//! | `start` | `schema`, `gpudx` (version), `pid`, `launched` |
//! | `enter` | the call: `n` (from 1), `at_s` (seconds from the start), `pid`, `tid`, `process`, `call`, `node`, `known`, and where there are such: `fd`, `request`, `object` (RM control command or class), `client`, `handle`, `gpu`, `found_inside`, `interposer` (a library that holds the request; told by the stack), and of an mmap `length`, `offset`, `protection`, `flags` |
//! | `return` | the call, and `ms`, `returned` or `errno` (its name) or `interrupted`, `status` (name) and `status_code`, `version`, `injected` (gpudx gave the answer) |
//! | `unreturned` | the call, and `ms`, `why`: `process-ended`, `trace-ended`, `held` (by gpudx), `interposed` (by a library) |
//! | `library` | `pid`, `path`: a process opened one of the driver's libraries |
//! | `note` | `text` |
//! | `summary` | `ended` (`exited`, `killed`, `deadline`, `asked`, `gone`), `code` (exit status or signal), `elapsed_s`, `calls`, `by_name`, `by_node`, `by_gpu`, `unknown`, `in_flight`, `left_behind` |
//!
//! A reader ignores records and fields that it does not know.

use std::collections::BTreeMap;
use std::time::Duration;

use facts::parse::strace::driver_call::status_name;
use serde_json::{Map, Value, json};

use super::event::{Answer, Call, Event, Outcome, Unreturned};
use super::summary::{Ended, NodeTotal, Summary};

/// The name and version of this form.
pub const SCHEMA: &str = "gpudx/trace/1";

/// An event as one line, without its end.
pub fn line(event: &Event<'_>) -> String {
    let value = match event {
        Event::Started { pid, launched } => json!({
            "record": "start", "schema": SCHEMA, "gpudx": env!("CARGO_PKG_VERSION"),
            "pid": pid, "launched": launched,
        }),
        Event::Entered(call) => Value::Object(of_call("enter", call)),
        Event::Returned(call, answer) => returned(call, answer),
        Event::Unreturned(call, elapsed, why) => {
            let mut object = of_call("unreturned", call);
            object.insert("ms".into(), milliseconds(*elapsed));
            let why = match why {
                Unreturned::ProcessEnded => "process-ended",
                Unreturned::TraceEnded => "trace-ended",
                Unreturned::Held => "held",
                Unreturned::Interposed => "interposed",
            };
            object.insert("why".into(), why.into());
            Value::Object(object)
        }
        Event::Library { pid, path } => json!({"record": "library", "pid": pid, "path": path}),
        Event::Note(text) => json!({"record": "note", "text": text}),
        Event::Ended(summary) => of_summary(summary),
    };
    value.to_string()
}

fn milliseconds(time: Duration) -> Value {
    ((time.as_secs_f64() * 1e6).round() / 1e3).into()
}

fn seconds(time: Duration) -> Value {
    ((time.as_secs_f64() * 1e6).round() / 1e6).into()
}

fn of_call(record: &str, call: &Call) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("record", record.into());
    put("n", call.sequence.into());
    put("at_s", seconds(call.at));
    put("pid", call.pid.into());
    put("tid", call.tid.into());
    put("process", (*call.process).into());
    put("call", call.name.as_str().into());
    put("node", (*call.node).into());
    put("known", call.known.into());
    if let Some(descriptor) = call.descriptor {
        put("fd", descriptor.into());
    }
    if let Some(mapping) = call.mapping {
        put("length", mapping.length.into());
        put("offset", mapping.offset.into());
        put("protection", mapping.protection.into());
        put("flags", mapping.flags.into());
    }
    if let Some(request) = call.request {
        put("request", request.into());
    }
    if let Some(number) = call.object {
        put("object", number.into());
    }
    if let Some((client, handle)) = call.handles {
        put("client", client.into());
        put("handle", handle.into());
    }
    if let Some(gpu) = &call.gpu {
        put("gpu", gpu.as_str().into());
    }
    if let Some(library) = &call.interposer {
        put("interposer", (**library).into());
    }
    if call.found_inside {
        put("found_inside", true.into());
    }
    object
}

fn returned(call: &Call, answer: &Answer) -> Value {
    let mut object = of_call("return", call);
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("ms", milliseconds(answer.elapsed));
    match answer.outcome {
        Outcome::Returned(value) => put("returned", value.into()),
        Outcome::Failed(errno) => put("errno", errno.to_string().into()),
        Outcome::Interrupted => put("interrupted", true.into()),
    };
    if let Some(status) = answer.status {
        put("status", status_name(status).into());
        put("status_code", status.into());
    }
    if let Some(version) = &answer.version {
        put("version", version.as_str().into());
    }
    if answer.injected {
        put("injected", true.into());
    }
    Value::Object(object)
}

fn of_summary(summary: &Summary) -> Value {
    let (ended, code) = match summary.ended {
        Ended::Exited(status) => ("exited", Some(status)),
        Ended::Killed(signal) => ("killed", Some(signal)),
        Ended::Deadline => ("deadline", None),
        Ended::Asked => ("asked", None),
        Ended::Gone => ("gone", None),
    };
    let names: Vec<Value> = summary
        .names_by_time()
        .into_iter()
        .map(|(name, total)| {
            json!({
                "call": name, "count": total.count, "ms": milliseconds(total.time),
                "longest_ms": milliseconds(total.longest), "failures": total.failures,
            })
        })
        .collect();
    let in_flight: Vec<Value> = summary
        .in_flight
        .iter()
        .map(|entry| {
            let mut object = of_call("in-flight", &entry.call);
            object.insert("ms".into(), milliseconds(entry.elapsed));
            Value::Object(object)
        })
        .collect();
    json!({
        "record": "summary", "ended": ended, "code": code, "elapsed_s": seconds(summary.elapsed),
        "calls": summary.calls, "by_name": names, "by_node": of_nodes(&summary.by_node, "node"),
        "by_gpu": of_nodes(&summary.by_gpu, "gpu"), "unknown": summary.unknown,
        "in_flight": in_flight, "left_behind": summary.left_behind,
    })
}

fn of_nodes(totals: &BTreeMap<String, NodeTotal>, key: &str) -> Vec<Value> {
    let of = |(name, total): (&String, &NodeTotal)| {
        let slowest = total.slowest.as_ref();
        json!({
            key: name, "count": total.count, "ms": milliseconds(total.time),
            "slowest": slowest.map(|(call, _)| call),
            "slowest_ms": slowest.map(|(_, time)| milliseconds(*time)),
        })
    };
    totals.iter().map(of).collect()
}
