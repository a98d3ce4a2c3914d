//! The ladder of experiments: each rung once as the one that changes the outcome, and once as one
//! that changes nothing. The stand-in's usual failure is 600 (CUDA_ERROR_NOT_READY), of which no cause
//! makes anything by itself.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::common::{Outcome, Report, check_with, gpudx, is_root, skipped, stand_in, test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("a_preloaded_library_that_breaks_cuinit_is_confirmed", preloaded),
        test("a_library_of_the_preload_file_is_hidden_and_confirmed", preload_file),
        test("an_injected_library_that_hangs_is_confirmed", injected),
        test("a_variable_that_hides_gpus_is_confirmed", visible),
        test("a_pipe_of_mps_that_hangs_is_confirmed", mps),
        test("a_compat_library_found_first_is_confirmed", library),
        test("open_files_that_are_too_few_are_confirmed", open_files),
        test("one_gpu_of_two_is_named", one_gpu),
        test("a_race_that_the_tracer_ends_is_told", traced),
        test("loading_of_modules_is_told", module_loading),
        test("another_user_is_told", another_user),
        test("a_rung_that_hangs_takes_no_time_from_the_others", hanging_rung),
        test("an_accident_is_not_put_down_to_a_change", accident),
        test("what_no_time_is_left_for_is_listed", no_time),
        test("a_report_for_programs_is_all_they_get", quiet),
        test("a_healthy_machine_pays_for_no_experiment", healthy),
    ]
}

/// The experiments of a report.
pub(crate) fn experiments(report: &Report) -> Vec<&Value> {
    report.json["experiments"].as_array().into_iter().flatten().collect()
}

/// Kind and effect of each experiment, in order.
fn effects(report: &Report) -> Vec<(&str, &str)> {
    let made = experiments(report).into_iter();
    made.map(|made| (made["change"].as_str().unwrap_or(""), made["effect"].as_str().unwrap_or("")))
        .collect()
}

fn verdict<'a>(report: &'a Report, id: &str) -> &'a str {
    let causes = report.json["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = causes.iter().find(|cause| cause["id"] == id);
    found.and_then(|cause| cause["verdict"].as_str()).unwrap_or("")
}

/// Whether a cause's evidence has an experiment as its origin.
fn by_experiment(report: &Report, id: &str) -> bool {
    let causes = report.json["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = causes.iter().find(|cause| cause["id"] == id);
    let pieces = found.and_then(|cause| cause["for"].as_array()).map(Vec::as_slice);
    pieces.unwrap_or_default().iter().any(|piece| {
        piece["origin"]["item"].as_str().is_some_and(|item| item.starts_with("probe:experiment#"))
    })
}

/// The rung changes the outcome: the cause is confirmed by it, and the control fails as before.
fn decides(report: &Report, change: &str, cause: &str) -> Outcome {
    report.must(
        effects(report) == [(change, "works"), ("nothing", "same")],
        &format!("{change} decides and the control agrees: {:?}", effects(report)),
    )?;
    report.must(verdict(report, cause) == "confirmed", &format!("{cause} is confirmed"))?;
    report.must(by_experiment(report, cause), "by the experiment")?;
    report.must(report.status == Some(1), "a fault was found")
}

/// Nothing changes: it stays undetermined, and the report says what was tried.
fn tells_nothing(report: &Report, change: &str, cause: &str) -> Outcome {
    report.must(
        effects(report) == [(change, "same")],
        &format!("{change} was made and changes nothing: {:?}", effects(report)),
    )?;
    report.must(verdict(report, cause) != "confirmed", &format!("{cause} is not confirmed"))?;
    report.must(report.state() == "undetermined", "it stays undetermined")
}

fn preloaded() -> Outcome {
    let folder = stand_in()?;
    let run = |settings: &str| {
        Report::of(check_with(folder.path(), settings, &[]).env("LD_PRELOAD", "libm.so.6"))
    };
    decides(&run("cuinit=set:LD_PRELOAD?600")?, "without-hooks", "library.interposer")?;
    let same = run("cuinit=600")?;
    tells_nothing(&same, "without-hooks", "library.interposer")?;
    same.must(same.ids("ruled_out").contains(&"library.interposer"), "and it is ruled out")
}

/// A copy of /etc with a file that preloads a library, in a mount namespace of its own.
const PRELOADED: &str = r#"
set -e
mount --make-rprivate /
cp -a /etc "$FOLDER/etc"; echo "$FOLDER/libshim.so" > "$FOLDER/etc/ld.so.preload"
mount --bind "$FOLDER/etc" /etc
exec "$GPUDX" check --format json
"#;

fn preload_file() -> Outcome {
    if !is_root() {
        return skipped("not root");
    }
    let folder = stand_in()?;
    let library = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6"];
    let Some(library) = library.into_iter().find(|path| Path::new(path).exists()) else {
        return skipped("no library to preload");
    };
    std::fs::copy(library, folder.path().join("libshim.so"))?;
    let run = |settings: &str| {
        let output = Command::new("unshare")
            .args(["-m", "sh", "-c", PRELOADED])
            .env("FOLDER", folder.path())
            .env("GPUDX", env!("CARGO_BIN_EXE_gpudx"))
            .env("LD_LIBRARY_PATH", folder.path().join("lib"))
            .env("GPUDX_FAKE", settings)
            .output()?;
        std::fs::remove_dir_all(folder.path().join("etc"))?;
        Report::from(&output)
    };
    decides(&run("cuinit=mapped:libshim?600")?, "without-hooks", "library.interposer")?;
    tells_nothing(&run("cuinit=600")?, "without-hooks", "library.interposer")
}

fn injected() -> Outcome {
    let folder = stand_in()?;
    let run = |settings: &str| {
        let more = ["--deadline", "8s", "--trials", "2"];
        let mut check = check_with(folder.path(), settings, &more);
        Report::of(check.env("CUDA_INJECTION64_PATH", "/opt/tool/libinjection.so"))
    };
    let report = run("cuinit=set:CUDA_INJECTION64_PATH?hang")?;
    let first = effects(&report).into_iter().next();
    report.must(first == Some(("without-hooks", "works")), "it works without the library")?;
    report
        .must(verdict(&report, "library.interposer") == "confirmed", "the library is what hangs")?;
    let report = run("cuinit=hang")?;
    report.must(
        effects(&report).iter().all(|(_, effect)| matches!(*effect, "same" | "none")),
        "it hangs all the same",
    )?;
    report.must(verdict(&report, "library.interposer") != "confirmed", "and is not confirmed")
}

fn visible() -> Outcome {
    let folder = stand_in()?;
    let run = |settings: &str| {
        Report::of(check_with(folder.path(), settings, &[]).env("CUDA_VISIBLE_DEVICES", "0"))
    };
    let hides = "cuinit=set:CUDA_VISIBLE_DEVICES?600";
    decides(&run(hides)?, "all-gpus", "process.visible-devices")?;
    tells_nothing(&run("cuinit=600")?, "all-gpus", "process.visible-devices")
}

fn mps() -> Outcome {
    let folder = stand_in()?;
    let run = |settings: &str| {
        let more = ["--deadline", "8s", "--trials", "2"];
        let mut check = check_with(folder.path(), settings, &more);
        Report::of(check.env("CUDA_MPS_PIPE_DIRECTORY", folder.path().join("pipe")))
    };
    let report = run("cuinit=set:CUDA_MPS_PIPE_DIRECTORY?hang")?;
    let first = effects(&report).into_iter().next();
    report.must(first == Some(("without-mps", "works")), "it works without the pipe folder")?;
    report.must(verdict(&report, "share.mps-unreachable") == "confirmed", "MPS is out of reach")?;
    let report = run("cuinit=set:CUDA_MPS_PIPE_DIRECTORY?600,cuinit=600")?;
    report
        .must(effects(&report) == [("without-mps", "same")], "the pipe folder changes nothing")?;
    report.must(report.ids("ruled_out").contains(&"share.mps-unreachable"), "MPS is ruled out")
}

fn library() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (compat, own) = (folder.path().join("compat"), folder.path().join("lib"));
    synth::artifacts::fake_driver_folder(&compat, "580.65.06")?;
    synth::artifacts::fake_driver_folder(&own, "590.48.01")?;
    let path = format!("{}:{}", compat.display(), own.display());
    let run = |settings: &str| {
        Report::of(check_with(folder.path(), settings, &[]).env("LD_LIBRARY_PATH", &path))
    };
    decides(&run("cuinit=path:/compat/?600")?, "library", "library.compat-shadows")?;
    let same = run("cuinit=600")?;
    tells_nothing(&same, "library", "library.compat-shadows")?;
    same.must(same.ids("ruled_out").contains(&"library.compat-shadows"), "and it is ruled out")
}

/// Runs a check in a shell that does this first.
fn after(script: &str, folder: &Path, settings: &str, more: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let arguments = more.join(" ");
    command
        .args(["-c", &format!("{script}; exec \"$GPUDX\" check --format json {arguments}")])
        .env("GPUDX", env!("CARGO_BIN_EXE_gpudx"))
        .env("LD_LIBRARY_PATH", folder.join("lib"))
        .env("GPUDX_FAKE", settings);
    command
}

fn open_files() -> Outcome {
    let folder = stand_in()?;
    let run = |settings: &str| {
        Report::of(&mut after("ulimit -S -n 100", folder.path(), settings, &["--experiment"]))
    };
    decides(&run("cuinit=files:200?304")?, "limit", "process.open-files-low")?;
    let same = run("cuinit=304")?;
    same.must(effects(&same) == [("limit", "same")], "more files change nothing")?;
    same.must(same.ids("ruled_out").contains(&"process.open-files-low"), "and are ruled out")
}

fn one_gpu() -> Outcome {
    let folder = stand_in()?;
    let report = Report::of(&mut check_with(folder.path(), "count=2,cuinit=gpu:1?600", &[]))?;
    report.must(
        effects(&report) == [("one-gpu", "works"), ("one-gpu", "same"), ("nothing", "same")],
        &format!("one GPU works and the other fails: {:?}", effects(&report)),
    )?;
    let named = experiments(&report)[1]["description"].as_str().unwrap_or("").to_owned();
    report.must(named.contains("000000000001 alone"), "the second one is named")?;
    let report = Report::of(&mut check_with(folder.path(), "count=2,cuinit=600", &[]))?;
    report.must(
        effects(&report) == [("one-gpu", "same"), ("one-gpu", "same")],
        "both fail alone as well",
    )?;
    report.must(report.state() == "undetermined", "it stays undetermined")
}

fn traced() -> Outcome {
    let folder = stand_in()?;
    let more = ["--deadline", "8s", "--trials", "2"];
    let report = Report::of(&mut check_with(folder.path(), "cuinit=!traced?crash", &more))?;
    let first = experiments(&report).first().map(|made| made["result"].to_string());
    if first.is_some_and(|result| result.contains("cannot be traced")) {
        return skipped("nothing can be traced here");
    }
    report.must(
        effects(&report) == [("traced", "works"), ("nothing", "same")],
        &format!("it works under the tracer: {:?}", effects(&report)),
    )?;
    let probes = report.json["probes"].as_array().into_iter().flatten();
    let marked = probes.filter(|run| run["traced"] == true).count();
    report.must(marked == 1, "and the run is marked as traced")?;
    for act in ["crash", "hang"] {
        let settings = format!("cuinit={act}");
        let report = Report::of(&mut check_with(folder.path(), &settings, &more))?;
        report.must(
            effects(&report) == [("traced", "same")],
            &format!("{act} is the same under the tracer: {:?}", effects(&report)),
        )?;
    }
    Ok(())
}

fn module_loading() -> Outcome {
    let folder = stand_in()?;
    let more = ["--context", "--trials", "2"];
    let lazy = "context=!set:CUDA_MODULE_LOADING?700";
    let report = Report::of(&mut check_with(folder.path(), lazy, &more))?;
    report.must(
        effects(&report) == [("module-loading", "works"), ("nothing", "same")],
        &format!("it works when modules are loaded at once: {:?}", effects(&report)),
    )?;
    let report = Report::of(&mut check_with(folder.path(), "context=700", &more))?;
    report.must(effects(&report) == [("module-loading", "same")], "it is the same")
}

fn another_user() -> Outcome {
    if !is_root() {
        return skipped("not root");
    }
    let folder = stand_in()?;
    // The stand-in has to be within reach of the other user.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let run = |settings: &str| {
        let mut check = check_with(folder.path(), settings, &["--experiment"]);
        Report::of(check.env("SUDO_UID", "65534").env_remove("LD_PRELOAD"))
    };
    let report = run("cuinit=user:0?600")?;
    report.must(
        effects(&report) == [("user", "works"), ("nothing", "same")],
        &format!("it works as the other user: {:?}", effects(&report)),
    )?;
    let report = run("cuinit=600")?;
    report.must(effects(&report) == [("user", "same")], "it fails as the other user as well")?;
    let report = run("cuinit=user:65534?600")?;
    report.must(effects(&report) == [("user", "fails")], "it works as root alone")?;
    report.must(report.ids("symptoms") == ["cuda.init-fails"], "which is a symptom")?;
    report.must(report.status != Some(0), "and is not healthy")
}

fn hanging_rung() -> Outcome {
    let folder = stand_in()?;
    // As it is, 600; without what is preloaded it hangs; with every GPU visible it works.
    let settings = "cuinit=600,cuinit=!set:LD_PRELOAD?hang,cuinit=!set:CUDA_VISIBLE_DEVICES?0";
    let mut check = check_with(folder.path(), settings, &["--deadline", "6s"]);
    check.env("LD_PRELOAD", "libm.so.6").env("CUDA_VISIBLE_DEVICES", "0");
    let report = Report::of(&mut check)?;
    report.must(
        effects(&report)
            == [("without-hooks", "differs"), ("all-gpus", "works"), ("nothing", "same")],
        &format!("the next rung is made and decides: {:?}", effects(&report)),
    )
}

fn accident() -> Outcome {
    let folder = stand_in()?;
    let counter = folder.path().join("counter");
    let settings = format!("cuinit=flaky:{}:600:1/2", counter.display());
    let mut check = check_with(folder.path(), &settings, &["--trials", "1"]);
    let report = Report::of(check.env("LD_PRELOAD", "libm.so.6"))?;
    let made = experiments(&report);
    report.must(made.len() == 2, "once more, and without the library")?;
    report.must(made[0]["change"] == "nothing", "the same once more comes first")?;
    report.must(made[1]["effect"] == "none", "then no change can tell anything")?;
    report.must(verdict(&report, "library.interposer") != "confirmed", "nothing is confirmed")
}

fn no_time() -> Outcome {
    let folder = stand_in()?;
    let more = ["--deadline", "2s", "--trials", "1", "--experiment"];
    let mut check = check_with(folder.path(), "cuinit=hang", &more);
    let report = Report::of(check.env("LD_PRELOAD", "libm.so.6"))?;
    let reasons: Vec<&str> =
        experiments(&report).iter().filter_map(|made| made["result"].as_str()).collect();
    report.must(!reasons.is_empty(), "they are listed")?;
    report.must(
        reasons.iter().all(|reason| reason.contains("no time was left")),
        &format!("with the reason: {reasons:?}"),
    )
}

fn quiet() -> Outcome {
    let folder = stand_in()?;
    let mut json = check_with(folder.path(), "cuinit=600", &[]);
    let output = json.env("LD_PRELOAD", "libm.so.6").output()?;
    if !output.stderr.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = gpudx(&["check"])
        .env("LD_LIBRARY_PATH", folder.path().join("lib"))
        .env("GPUDX_FAKE", "cuinit=600")
        .env("LD_PRELOAD", "libm.so.6")
        .output()?;
    let (told, report) =
        (String::from_utf8_lossy(&text.stderr), String::from_utf8_lossy(&text.stdout));
    let listed = told.contains("without preloaded and injected libraries");
    if listed && report.contains("Experiments") && report.contains("the same") {
        return Ok(());
    }
    Err(format!("{told}\n{report}").into())
}

fn healthy() -> Outcome {
    let folder = stand_in()?;
    for more in [&[][..], &["--experiment"]] {
        let mut check = check_with(folder.path(), "", more);
        let report = Report::of(check.env("LD_PRELOAD", "libm.so.6").env_remove("SUDO_UID"))?;
        report.must(effects(&report).is_empty(), "nothing is to be found out")?;
    }
    let never = ["--experiment=never"];
    let mut check = check_with(folder.path(), "cuinit=600", &never);
    let report = Report::of(check.env("LD_PRELOAD", "libm.so.6"))?;
    report.must(effects(&report).is_empty(), "they can be switched off")
}
