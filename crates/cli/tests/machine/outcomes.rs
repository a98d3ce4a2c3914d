//! Every way in which cuInit can end is told for what it is.

use libtest_mimic::Trial;

use crate::common::{Outcome, Report, check_with, stand_in, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("a_working_cuinit_is_tried_once", works),
        test("each_code_of_cuinit_is_told", each_code),
        test("a_crash_is_told_with_its_signal", crashes),
        test("a_hang_is_a_hang", hangs),
        test("two_of_five_trials_is_a_finding", flaky),
        test("a_failure_after_cuinit_is_told_at_its_stage", after_init),
        test("a_sign_of_trouble_calls_for_a_context", experiment),
        test("one_hanging_query_of_nvml_hides_no_other", nvml_query_hangs),
        test("a_gpu_in_bad_condition_is_told_by_nvml", condition),
    ]
}

fn works() -> Outcome {
    let folder = stand_in()?;
    let report = Report::of(&mut check_with(folder.path(), "count=1", &[]))?;
    report.must(report.outcomes() == ["returned"], "one trial is enough")?;
    report.must(report.ids("symptoms").is_empty(), "there is no symptom")?;
    report.must(report.state() == "healthy" && report.status == Some(0), "it is healthy")
}

fn each_code() -> Outcome {
    let folder = stand_in()?;
    let codes = [1, 2, 3, 34, 100, 101, 304, 401, 600, 800, 801, 802, 803, 804, 805, 806, 999];
    for code in codes {
        let settings = format!("cuinit={code}");
        let report = Report::of(&mut check_with(folder.path(), &settings, &["--trials", "1"]))?;
        let symptom = report.json["symptoms"].as_array().into_iter().flatten().any(|symptom| {
            symptom["id"] == "cuda.init-fails"
                && symptom["summary"]
                    .as_str()
                    .is_some_and(|text| text.contains(&format!("answers {code} ")))
        });
        report.must(symptom, &format!("cuInit answers {code}"))?;
        report.must(report.status != Some(0), "a failure is not healthy")?;
    }
    Ok(())
}

fn crashes() -> Outcome {
    let folder = stand_in()?;
    let report = Report::of(&mut check_with(folder.path(), "cuinit=crash", &["--trials", "2"]))?;
    report.must(report.outcomes() == ["crashed", "crashed"], "both trials crash")?;
    report.must(report.trials()[0]["code"] == 11, "by SIGSEGV")?;
    report.must(report.ids("symptoms").contains(&"cuda.init-crashes"), "the symptom is named")
}

fn hangs() -> Outcome {
    let folder = stand_in()?;
    for act in ["hang", "hang-deaf", "spin", "stop"] {
        let more = ["--deadline", "2s", "--trials", "1"];
        let settings = format!("cuinit={act}");
        let report = Report::of(&mut check_with(folder.path(), &settings, &more))?;
        report
            .must(report.outcomes() == ["timed-out"], &format!("{act}: killed at the deadline"))?;
        report.must(report.ids("symptoms").contains(&"cuda.init-hangs"), act)?;
    }
    Ok(())
}

fn flaky() -> Outcome {
    let folder = stand_in()?;
    let counter = folder.path().join("counter");
    let settings = format!("cuinit=flaky:{}:hang:2/5", counter.display());
    let more = ["--trials", "5", "--deadline", "12s"];
    let report = Report::of(&mut check_with(folder.path(), &settings, &more))?;
    let outcomes = report.outcomes();
    let count = |wanted: &str| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    report.must(outcomes.len() == 5, "all five trials are made")?;
    report.must(count("returned") == 2 && count("timed-out") == 3, "each keeps its outcome")?;
    report
        .must(report.ids("symptoms").contains(&"cuda.init-hangs"), "hanging sometimes is a symptom")
}

fn after_init() -> Outcome {
    let folder = stand_in()?;
    for (settings, words) in [
        ("context=46", "46"),
        ("alloc=2", "2 (CUDA_ERROR_OUT_OF_MEMORY)"),
        ("copy=wrong", "wrong data"),
        ("kernel=wrong", "wrong data"),
    ] {
        let more = ["--context", "--trials", "1"];
        let report = Report::of(&mut check_with(folder.path(), settings, &more))?;
        let told = report.json["symptoms"].as_array().into_iter().flatten().any(|symptom| {
            symptom["id"] == "cuda.context-fails"
                && symptom["summary"].as_str().is_some_and(|text| text.contains(words))
        });
        report.must(told, settings)?;
    }
    Ok(())
}

fn nvml_query_hangs() -> Outcome {
    let folder = stand_in()?;
    let settings = "nvml.nvmlDeviceGetAddressingMode=hang";
    let report = Report::of(&mut check_with(folder.path(), settings, &["--deadline", "3s"]))?;
    report
        .must(report.ids("symptoms").contains(&"nvml.hangs"), "the hanging query is a symptom")?;
    let nvml = report.json["layers"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|layer| layer["layer"] == "nvml");
    let told = nvml.and_then(|layer| layer["summary"].as_str()).unwrap_or("");
    report.must(told.contains("AddressingMode"), "and is named")
}

/// cuInit answers 0 and the compute mode is not the usual one: only a context tells.
fn experiment() -> Outcome {
    let folder = stand_in()?;
    let report = Report::of(&mut check_with(folder.path(), "computemode=3,context=46", &[]))?;
    report.must(report.outcomes() == ["returned", "returned"], "a second trial with a context")?;
    report.must(report.ids("symptoms").contains(&"cuda.context-fails"), "the context fails")?;
    let report = Report::of(&mut check_with(folder.path(), "computemode=3", &[]))?;
    report.must(report.ids("symptoms").is_empty(), "the mode alone is no symptom")
}

/// What NVML is asked about a GPU's condition reaches the causes that need it.
fn condition() -> Outcome {
    let folder = stand_in()?;
    for (settings, cause, verdict) in [
        ("rows=0/0/1", "gpu.memory-fault", "confirmed"),
        ("rows=2/1/0,field=230:1", "gpu.memory-fault", "likely"),
        ("field=230:2", "gpu.needs-reset", "confirmed"),
        ("link=3/5/8/16,utilization=97", "pci.link-degraded", ""),
        ("confidential=1/0,cuinit=802", "platform.cc-not-ready", "confirmed"),
    ] {
        let report = Report::of(&mut check_with(folder.path(), settings, &["--trials", "1"]))?;
        let causes = report.json["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let found = causes.iter().find(|found| found["id"] == cause);
        let told = found.and_then(|found| found["verdict"].as_str());
        report.must(
            told.is_some_and(|told| told == verdict || verdict.is_empty()),
            &format!("{settings}: {cause} is {verdict}, not {told:?}"),
        )?;
    }
    for settings in ["", "link=1/5/16/16", "field=230:0,ecc=0", "confidential=1/1"] {
        let report = Report::of(&mut check_with(folder.path(), settings, &["--trials", "1"]))?;
        report.must(report.state() == "healthy", &format!("{settings:?} is healthy"))?;
    }
    Ok(())
}
