//! From raw items to a diagnosis, such that a mistake in one place does not lose everything.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use facts::raw::RawSet;
use facts::{Facts, Layer};
use reason::Diagnosis;

/// Facts and what follows from them.
pub(crate) struct Judged {
    pub(crate) facts: Facts,
    pub(crate) diagnosis: Diagnosis,
}

/// Extracts and diagnoses. A panic in there is a defect of gpudx; it becomes one line.
pub(crate) fn judge(raw: &RawSet) -> Result<Judged, String> {
    guarded("reading the input", || facts::extract(raw)).and_then(judge_facts)
}

fn judge_facts(facts: Facts) -> Result<Judged, String> {
    let diagnosis = guarded("weighing the facts", || reason::diagnose(&facts))?;
    Ok(Judged { facts, diagnosis })
}

/// Where the last panic happened and what it said.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the message of a panic instead of printing it, so that what the user sees is one line.
pub(crate) fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|info| {
        let place =
            info.location().map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
        let message = info.payload_as_str().unwrap_or("no message");
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = Some(format!("{message} ({place})"));
        }
    }));
}

/// Runs one step; a panic within becomes a message that says which step it was.
pub(crate) fn guarded<T>(step: &str, run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
        let last = LAST_PANIC.lock().ok().and_then(|mut last| last.take());
        let what = last.unwrap_or_else(|| "no message".to_owned());
        format!("a defect of gpudx while {step}: {what}; please report it")
    })
}

/// Leaves only what concerns these layers. The state stays that of the whole machine.
pub(crate) fn keep_layers(diagnosis: &mut Diagnosis, layers: &[Layer]) {
    if layers.is_empty() {
        return;
    }
    let kept = |layer: &Layer| layers.contains(layer);
    diagnosis.layers.retain(|line| kept(&line.layer));
    diagnosis.causes.retain(|finding| kept(&finding.cause.layer));
    diagnosis.ruled_out.retain(|ruled_out| kept(&ruled_out.cause.layer));
    diagnosis.unknown.retain(|unknown| kept(&unknown.cause.layer));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_one_line_that_names_the_step() {
        keep_panics_quiet();
        let told = guarded("counting", || -> u8 { panic!("no fingers") }).unwrap_err();
        assert!(told.contains("while counting: no fingers"), "{told}");
        assert!(!told.contains('\n'));
        assert_eq!(guarded("counting", || 5), Ok(5));
    }
}
