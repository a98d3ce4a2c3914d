//! A library between the program and the driver that never answers: the stand-in itself, which
//! sleeps before the kernel sees the call, as a hanging preloaded library does.

use libtest_mimic::Trial;

use crate::libraries::{each_branch, trace};
use crate::support::{Outcome, must, of, summary};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_request_that_a_library_holds_is_named", held),
        Trial::test("a_program_that_just_waits_has_no_call_in_flight", waits),
    ]
}

fn held() -> Outcome {
    each_branch(|driver| {
        for (settings, call, node) in [
            (",uvm:UVM_INITIALIZE=hang", "UVM_INITIALIZE", "/dev/nvidia-uvm"),
            (
                ",control:0x214=hang",
                "RM_CONTROL NV0000_CTRL_CMD_GPU_GET_PROBED_IDS",
                "/dev/nvidiactl",
            ),
        ] {
            let records = trace(driver, settings, &["--deadline", "1500ms"])?;
            let in_flight = &summary(&records)?["in_flight"];
            let one = in_flight.as_array().is_some_and(|calls| calls.len() == 1);
            let named = in_flight[0]["call"] == call && in_flight[0]["node"] == node;
            let library = in_flight[0]["interposer"].as_str().unwrap_or("");
            let right = one && named && library.ends_with("libfakerm.so");
            must(right, settings, &records[records.len().saturating_sub(4)..])?;
            let why = of(&records, "unreturned").next().map(|record| &record["why"]);
            must(why.is_some_and(|why| why == "interposed"), "why", &records)?;
        }
        Ok(())
    })
}

/// The program sleeps after it has loaded the library: nobody stands between.
fn waits() -> Outcome {
    each_branch(|driver| {
        let library = driver.folder.join("libcuda.so.1");
        let script = format!("true < {}; exec sleep 60", library.display());
        let records = crate::support::Trace::new()?.run(&[
            "--deadline",
            "500ms",
            "--",
            "sh",
            "-c",
            &script,
        ])?;
        must(of(&records, "library").next().is_some(), "the library", &records)?;
        must(
            summary(&records)?["in_flight"].as_array().is_some_and(Vec::is_empty),
            "none",
            &records,
        )
    })
}
