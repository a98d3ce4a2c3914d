//! Real output of strace in its forms, about one program: each is read to the same driver calls.
//!
//! The program asks files that stand for the driver's nodes, in a /dev of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use facts::Facts;
use facts::parse::strace::{End, Strace, parse};
use facts::raw::{ItemName, RawItem, RawSet};
use libtest_mimic::{Failed, Trial};

use crate::common::{Outcome, is_root, skipped, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![test("strace_in_all_its_forms_gives_the_same_calls", forms)]
}

/// Options whose output shows every call of every thread.
const FORMS: [&str; 25] = [
    "-f",
    "-f -t",
    "-f -tt",
    "-f -ttt",
    "-f -r",
    "-f -tt -r",
    "-f -T",
    "-f -y",
    "-f -yy",
    "-f -X raw",
    "-f -X verbose",
    "-f -x",
    "-f -xx",
    "-f -e raw=ioctl",
    "-f -i",
    "-f -n",
    "-f -Y",
    "-f -v -s 128",
    "-f -a 1",
    "-f -C",
    "-f -q",
    "-f -k",
    "-f --absolute-timestamps=format:unix,precision:ns --syscall-times=ns",
    "-f --seccomp-bpf -e trace=%desc",
    "-f -tt -T -yy -Y -n -i",
];

/// Runs everything in one namespace; what strace writes is taken from files.
const SCRIPT: &str = "set -e; mkdir \"$F/dev\"; mount -t tmpfs none \"$F/dev\"; \
    cp -a /dev/null /dev/zero /dev/urandom \"$F/dev\"; \
    truncate -s 4096 \"$F/dev/nvidiactl\" \"$F/dev/nvidia-uvm\"; mount --rbind \"$F/dev\" /dev; \
    cd \"$F\"; while read -r name options; do \
    strace $options -o \"$name\" ./asking > /dev/null 2>&1 < /dev/null; done < options; \
    strace -f ./asking 2> terminal < /dev/null; strace ./asking 2> first < /dev/null; \
    strace -f -c ./asking 2> counted < /dev/null; \
    timeout -s KILL 5 strace -f -o hanging ./asking never > /dev/null 2>&1 < /dev/null || true";

fn forms() -> Outcome {
    if !is_root() {
        return skipped("not root");
    }
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return skipped("no strace");
    }
    let folder = tempfile::tempdir()?;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine/asking.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(folder.path().join("asking")).arg(source);
    if !compiler.status().is_ok_and(|status| status.success()) {
        return skipped("no C compiler");
    }
    let lines = FORMS.iter().enumerate().map(|(number, form)| format!("form{number} {form}"));
    let options = lines.chain([String::new()]).collect::<Vec<String>>().join("\n");
    std::fs::write(folder.path().join("options"), options)?;
    let mut stage = Command::new("unshare");
    stage.args(["-m", "sh", "-c", SCRIPT]).env("F", folder.path()).stdin(Stdio::null());
    let output = stage.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    same_calls(folder.path())?;
    first_thread_only(folder.path())?;
    hanging(folder.path())?;
    counted(folder.path())
}

fn text(folder: &Path, name: &str) -> Result<String, Failed> {
    Ok(String::from_utf8_lossy(&std::fs::read(folder.join(name))?).into_owned())
}

/// The opens and requests that a trace shows, without what differs from run to run.
fn calls(strace: &Strace) -> Vec<(String, String, End)> {
    let call = |call: &facts::parse::strace::Traced| {
        (call.node.path.clone(), call.words(), call.end.clone())
    };
    let asks = |call: &&facts::parse::strace::Traced| call.asked.is_some() || call.is_open();
    strace.calls.iter().filter(asks).map(call).collect()
}

fn same_calls(folder: &Path) -> Outcome {
    let first = calls(&parse(&text(folder, "form0")?).value);
    let words: Vec<&str> = first.iter().map(|(_, words, _)| words.as_str()).collect();
    let expected = [
        "open",
        "open",
        "NV_ESC_RM_CONTROL",
        "NV_ESC_RM_FREE",
        "0xc00446ff",
        "open",
        "UVM_INITIALIZE",
        "UVM_REGISTER_GPU",
        "NV_ESC_RM_ALLOC",
        "NV_ESC_CHECK_VERSION_STR",
    ];
    must(words == expected, "the calls of the program", &first)?;
    for (number, form) in FORMS.iter().enumerate() {
        let strace = parse(&text(folder, &format!("form{number}"))?).value;
        must(calls(&strace) == first, form, &calls(&strace))?;
        must(strace.follows, form, &strace.follows)?;
    }
    let terminal = parse(&text(folder, "terminal")?).value;
    must(calls(&terminal) == first, "as it comes to a terminal", &calls(&terminal))?;
    must(terminal.begins, "its start", &terminal.begins)?;
    // Cut off at either end, what is left has its names still.
    let whole = text(folder, "form7")?;
    let lines: Vec<&str> = whole.lines().collect();
    for cut in 0..lines.len() {
        let tail = calls(&parse(&lines[cut..].join("\n")).value);
        must(first.ends_with(&tail), "the tail of it", &tail)?;
        let head = calls(&parse(&lines[..cut].join("\n")).value);
        must(head.len() <= first.len(), "the head of it", &head)?;
    }
    let at = lines.iter().position(|line| line.contains("0x2a")).unwrap_or(0);
    let tail = RawItem::new(ItemName::Text("tail".to_owned()), lines[at..].join("\n").as_bytes());
    let facts = facts::extract(&RawSet::from_iter([tail]));
    must(has_note(&facts, "how the nodes were opened"), "the end of a trace", &facts.notes)
}

fn facts_of(folder: &Path, name: &str) -> Result<Facts, Failed> {
    let text = text(folder, name)?;
    let item = RawItem::new(ItemName::Text(name.to_owned()), text.as_bytes());
    Ok(facts::extract(&RawSet::from_iter([item])))
}

fn has_note(facts: &Facts, words: &str) -> bool {
    facts.notes.iter().any(|note| note.text.contains(words))
}

/// Without `-f`, what threads and children ask is not there, and that is said.
fn first_thread_only(folder: &Path) -> Outcome {
    let strace = parse(&text(folder, "first")?).value;
    must(calls(&strace).len() == 8, "those of the first thread", &calls(&strace))?;
    let facts = facts_of(folder, "first")?;
    must(has_note(&facts, "does not follow"), "what it cannot show", &facts.notes)?;
    must(has_note(&facts, "not what cuInit returned"), "what the status is not", &facts.notes)?;
    let followed = facts_of(folder, "form0")?;
    must(!has_note(&followed, "does not follow"), "-f does follow", &followed.notes)
}

/// One thread's call never returns, while another goes on.
fn hanging(folder: &Path) -> Outcome {
    let strace = parse(&text(folder, "hanging")?).value;
    let open: Vec<String> = strace
        .calls
        .iter()
        .filter(|call| call.end == End::InFlight)
        .map(facts::parse::strace::Traced::words)
        .collect();
    must(open == ["UVM_RELEASE_VA"], "the call in flight", &calls(&strace))?;
    let facts = facts_of(folder, "hanging")?;
    let stuck = facts.probes.first().and_then(|run| run.stuck.clone());
    let call = stuck.and_then(|stuck| stuck.call);
    must(
        call.as_deref() == Some("ioctl UVM_RELEASE_VA on /dev/nvidia-uvm"),
        "where it hangs",
        &call,
    )
}

fn counted(folder: &Path) -> Outcome {
    let facts = facts_of(folder, "counted")?;
    must(has_note(&facts, "counts calls and shows none: 7 ioctls"), "a table", &facts.notes)
}

fn must(holds: bool, what: &str, shown: &impl std::fmt::Debug) -> Outcome {
    if holds { Ok(()) } else { Err(format!("{what}: {shown:#?}").into()) }
}
