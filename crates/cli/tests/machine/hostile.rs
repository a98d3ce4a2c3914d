//! Input of every kind: bounded, and told for what it is.

use std::io::Write as _;
use std::process::Stdio;

use libtest_mimic::Trial;

use crate::common::{Outcome, gpudx, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("empty_and_random_input_is_told_for_what_it_is", nothing_in_it),
        test("a_line_without_an_end_is_bounded", endless_line),
        test("nested_archives_are_bounded", nested),
        test("a_closed_pipe_is_a_quiet_success", closed_pipe),
    ]
}

fn read(bytes: &[u8]) -> Result<(Option<i32>, String, String), libtest_mimic::Failed> {
    let mut child = gpudx(&["read", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no pipe")?;
    // The program may stop reading early; that is its right.
    let _ = input.write_all(bytes);
    drop(input);
    let output = child.wait_with_output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
}

fn nothing_in_it() -> Outcome {
    let mut random = Vec::new();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..200_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        random.push(state.to_le_bytes()[3]);
    }
    for bytes in [&b""[..], b"\n\n", b"hello, world\n", &random] {
        let (status, stdout, stderr) = read(bytes)?;
        let told = format!("{stdout}{stderr}").contains("nothing about a GPU in this input");
        if status != Some(2) || !told {
            return Err(format!("{status:?}\n{stdout}\n{stderr}").into());
        }
    }
    Ok(())
}

/// A gigabyte in one line, under a limit of address space.
fn endless_line() -> Outcome {
    let script =
        "ulimit -v 700000; head -c 1073741824 /dev/zero | tr '\\0' 'x' | \"$GPUDX\" read -";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .env("GPUDX", env!("CARGO_BIN_EXE_gpudx"))
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = stderr.contains("nothing about a GPU in this input")
        || String::from_utf8_lossy(&output.stdout).contains("nothing about a GPU in this input");
    if output.status.code() == Some(2) && told {
        return Ok(());
    }
    Err(format!("{:?} {stderr}", output.status).into())
}

/// Gzip in gzip in gzip, ten deep, and one that unpacks to a gigabyte.
fn nested() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().display();
    let script = format!(
        "cd {path} && printf 'NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\\n' > a && \
         for i in 1 2 3 4 5 6 7 8 9 10; do gzip -c a > b; mv b a; done && \
         head -c 1073741824 /dev/zero | gzip -1 > bomb.gz"
    );
    let made = std::process::Command::new("sh").args(["-c", &script]).status()?;
    if !made.success() {
        return Err("gzip is missing".into());
    }
    for name in ["a", "bomb.gz"] {
        let file = folder.path().join(name);
        let output = std::process::Command::new("sh")
            .args(["-c", "ulimit -v 700000; exec \"$GPUDX\" read \"$FILE\""])
            .env("GPUDX", env!("CARGO_BIN_EXE_gpudx"))
            .env("FILE", &file)
            .output()?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if !matches!(output.status.code(), Some(1 | 2)) || stderr.contains("panicked") {
            return Err(format!("{name}: {:?} {stderr}", output.status).into());
        }
    }
    Ok(())
}

fn closed_pipe() -> Outcome {
    let script =
        "\"$GPUDX\" explain 803 | head -c 1 >/dev/null; \"$GPUDX\" demo | head -1 >/dev/null";
    let output = std::process::Command::new("bash")
        .args(["-c", &format!("set -o pipefail; {script}")])
        .env("GPUDX", env!("CARGO_BIN_EXE_gpudx"))
        .output()?;
    if output.status.success() && output.stderr.is_empty() {
        return Ok(());
    }
    Err(format!("{:?} {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
