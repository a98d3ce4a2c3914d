//! Programs that fork their workers: where the parent has used CUDA, no worker can.

use super::super::Line;
use super::super::pattern::{Lazy, matches, pattern};
use super::push;
use crate::model::Facts;
use crate::model::cuda::{Stage, Trial, TrialResult};

pattern! { CELERY = r"(?i)\bForkPoolWorker-\d|\bcelery/(?:app|worker|concurrency)/|\bbilliard/|\bcelery\b[^.\n]{0,24}\b(?:workers?|tasks?)\b" }
pattern! { GUNICORN = r"(?i)\bgunicorn/(?:arbiter|workers)|\bgunicorn\b[^.\n]{0,24}--preload\b" }
pattern! { UWSGI = r"\buWSGI\b|\buwsgi\b" }
pattern! { RQ = r"\bfork_work_horse\b|\bperform_job\b[^\n]{0,40}\brq/" }
pattern! { LOADER = r"\btorch/utils/data/_utils/worker\.py\b|\bDataLoader worker process \d" }
pattern! { PYTHON = r"\bmultiprocessing/popen_fork\.py\b|\bset_start_method\(\W?fork\b|\bmultiprocessing\b|多进程|\bProcessPoolExecutor\b" }
pattern! {
    /// CUDA's word for 3 as the whole message of an exception, in which no word tells of CUDA:
    /// `ValueError(b'initialization error',)`.
    RAISED = r#"\b\w+(?:Error|Exception)(?:\(b?|: b?)["']?initialization error["']?,?(?:\)|\s*$)"#
}

pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    let table: [(&Lazy, &'static str); 6] = [
        (&CELERY, "a worker of Celery's"),
        (&GUNICORN, "a worker of gunicorn's"),
        (&UWSGI, "a worker of uWSGI's"),
        (&RQ, "a work horse of RQ's"),
        (&LOADER, "a worker of PyTorch's DataLoader"),
        (&PYTHON, "a process of multiprocessing's"),
    ];
    for (pattern, name) in table {
        if matches(pattern, line.text) {
            push(&mut facts.process.forking_workers, name, line);
        }
    }
    let known = facts.cuda.trials.iter().any(|trial| trial.failure_code() == Some(3));
    if matches(&RAISED, line.text) && !known {
        let result = TrialResult::Code(3);
        facts.cuda.trials.push(Trial::new(Stage::Init, result, "a CUDA call", line.origin()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn workers_and_their_error() {
        let all = [&CELERY, &GUNICORN, &UWSGI, &RQ, &LOADER, &PYTHON, &RAISED];
        assert!(all.iter().all(|pattern| pattern.is_some()));
        for text in [
            "[2026-11-01 10:00:00,1: ERROR/ForkPoolWorker-2] Task a.b raised unexpected",
            "  File \"/v/lib/python3.12/site-packages/celery/app/trace.py\", line 453, in trace_task",
            "  File \"/usr/lib/python3.12/multiprocessing/popen_fork.py\", line 71, in _launch",
            "Caught RuntimeError in DataLoader worker process 0.",
            "It fails only in a Celery worker",
        ] {
            assert_eq!(lines_of(text).process.forking_workers.len(), 1, "{text}");
        }
        for text in ["ValueError(b'initialization error',)", "RuntimeError: initialization error"] {
            assert_eq!(lines_of(text).cuda.trials.len(), 1, "{text}");
        }
        for text in ["celery is a vegetable", "JSONError: initialization error of the parser"] {
            let facts = lines_of(text);
            assert!(facts.process.forking_workers.is_empty() && facts.cuda.trials.is_empty());
        }
    }
}
