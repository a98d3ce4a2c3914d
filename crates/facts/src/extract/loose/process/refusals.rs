//! What programs print when the system refuses them something that a limit holds down.

use super::super::Line;
use super::super::pattern::{Lazy, matches, pattern};
use super::push;
use crate::model::Facts;
use crate::model::process::Refusal;
use crate::observed::{Errno, Observed, clean_excerpt};

pattern! { OPEN_FILE = r"(?i)\bToo many open files\b|\bEMFILE\b" }
pattern! {
    THREAD = r"(?i)\bpthread_create\b[^\n]{0,80}(?:Resource temporarily unavailable|EAGAIN|failed|error)|can(?:'|no)t start new thread|\bfork\b[^\n]{0,24}Resource temporarily unavailable|Thread creation failed|fork rejected by pids controller|\bclone3?\([^\n]*= -1 EAGAIN|unable to create (?:new )?native thread|what\(\):\s+(?:thread[^\n]{0,20})?Resource temporarily unavailable|\[Errno 11\] Resource temporarily unavailable|failed to create (?:a )?(?:new )?(?:OS )?thread\b"
}
pattern! {
    ADDRESS_SPACE = r"(?i)\bm(?:map|remap)\([^\n]*= -1 ENOMEM|failed to map segment from shared object(?:: cannot allocate memory|\s*$|[^:\w])"
}
pattern! {
    LOCKED_MEMORY = r"(?i)\bibv_(?:reg|create|alloc|exp_reg)\w*\b[^\n]{0,120}(?:Cannot allocate memory|errno[ =:]+12\b|ENOMEM|error 12\b)|\bRLIMIT_MEMLOCK is \d+ bytes|(?:allocat|regist)\w*[^\n]{0,24}\blocked memory\b|\bplease set max locked memory\b|\bmlock2?\b[^\n]{0,60}(?:Cannot allocate memory|ENOMEM)|\bincrease (?:your |the )?(?:max )?(?:memlock|locked[- ]memory)\b|\bfailed to register memory\b[^\n]{0,80}Cannot allocate memory"
}
pattern! {
    SHARED_MEMORY = r"(?i)(?:\bnccl-[\w\-]*|/dev/shm|\bshm(?:_open|em|\.h|utils\.cc)?\b|posix_fallocate|ftruncate|shared memory|\bpsm_\w+|torch_\d+_\d+)[^\n]{0,160}No space left on device|No space left on device[^\n]{0,80}(?:/dev/shm|\bnccl-|shared memory)|Error while creating shared memory segment|failed to extend /dev/shm/\S+|unable to (?:allocate|write|resize|create)[^\n]{0,24}shared memory\b|workers? (?:are|is) out of shared memory|insufficient shared memory \(shm\)"
}
pattern! { BUS_ERROR = r"(?i)\bkilled by signal: Bus error\b|\bBus error\b[^\n]{0,24}(?:core dumped|encountered in worker)|\bbus error\b[^\n]{0,40}\b(?:nccl|shm|worker)\b|\bsignal 7 \(?(?:SIGBUS|Bus error)|\bSIGBUS\b" }
pattern! {
    ORDINAL = r"(?i)\binvalid device ordinal\b|\bAttempting to deserialize object on CUDA device \d+ but torch\.cuda\.device_count\(\) is \d+|\bInvalid device id\b"
}
pattern! {
    /// The kernel answers EAGAIN to a thread too many; EPERM is a filter's answer to clone3, which a
    /// newer C library calls and an older filter does not know.
    FILTERED = r"(?i)\bpthread_create\b[^\n]{0,60}\bOperation not permitted\b"
}
pattern! { LOADING = r"libcuda\.so[.\d]*: failed to map segment" }

/// Enters each refusal that the line reports.
pub(super) fn read(line: &Line<'_>, facts: &mut Facts) {
    let table: [(&Lazy, Refusal); 7] = [
        (&OPEN_FILE, Refusal::OpenFile),
        (&THREAD, Refusal::Thread),
        (&ADDRESS_SPACE, Refusal::AddressSpace),
        (&LOCKED_MEMORY, Refusal::LockedMemory),
        (&SHARED_MEMORY, Refusal::SharedMemory),
        (&BUS_ERROR, Refusal::BusError),
        (&ORDINAL, Refusal::Ordinal),
    ];
    let filtered = matches(&FILTERED, line.text);
    if filtered {
        let clone3 = facts.sandbox.micro.entry("clone3".to_owned());
        clone3.or_insert((Some(Errno::EPERM), line.origin()));
    }
    for (pattern, refusal) in table {
        if filtered && refusal == Refusal::Thread {
            continue;
        }
        if matches(pattern, line.text) {
            push(&mut facts.process.refusals, refusal, line);
        }
    }
    if matches(&LOADING, line.text) {
        facts.mentions_gpu = true;
        let error = Observed::seen(clean_excerpt(line.text), line.origin());
        facts.library.cuda_load_error.or_better(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::loose::lines_of;

    #[test]
    fn every_expression_compiles() {
        let all = [
            &OPEN_FILE,
            &THREAD,
            &ADDRESS_SPACE,
            &LOCKED_MEMORY,
            &SHARED_MEMORY,
            &BUS_ERROR,
            &ORDINAL,
            &LOADING,
            &FILTERED,
        ];
        assert!(all.iter().all(|pattern| pattern.is_some()));
    }

    #[test]
    fn messages_of_many_programs() {
        for (text, refusal) in [
            ("OSError: [Errno 24] Too many open files: '/dev/nvidia0'", Refusal::OpenFile),
            (
                "OpenBLAS blas_thread_init: pthread_create failed for thread 12 of 64: Resource temporarily unavailable",
                Refusal::Thread,
            ),
            ("RuntimeError: can't start new thread", Refusal::Thread),
            ("[ 82.1] cgroup: fork rejected by pids controller in /docker/4f1e", Refusal::Thread),
            (
                "mmap(NULL, 8589934592, PROT_NONE, MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0) = -1 ENOMEM (Cannot allocate memory)",
                Refusal::AddressSpace,
            ),
            (
                "ImportError: libtorch_cuda.so: failed to map segment from shared object",
                Refusal::AddressSpace,
            ),
            (
                "misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
                Refusal::LockedMemory,
            ),
            (
                "include/shm.h:28 NCCL WARN Call to posix_fallocate failed: No space left on device",
                Refusal::SharedMemory,
            ),
            (
                "misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Xm3FcQ to 9637892 bytes",
                Refusal::SharedMemory,
            ),
            (
                "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
                Refusal::SharedMemory,
            ),
            (
                "cuda runtime error (101) : invalid device ordinal at torch/csrc/cuda/Module.cpp:37",
                Refusal::Ordinal,
            ),
        ] {
            let facts = lines_of(text);
            assert_eq!(
                facts.process.refusals.first().map(|seen| seen.value),
                Some(refusal),
                "{text}"
            );
        }
    }

    #[test]
    fn others_have_such_words_too() {
        for text in [
            "docker: write /var/lib/docker/tmp/x: no space left on device",
            "libfoo.so: failed to map segment from shared object: Operation not permitted",
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376",
            "curl: Resource temporarily unavailable",
        ] {
            assert!(lines_of(text).process.refusals.is_empty(), "{text}");
        }
    }
}
