//! Keeping the target's processor awake while its thread is stopped.
//!
//! A stop leaves the target's processor with nothing to do, so it goes to sleep, and waking it up
//! again some microseconds later takes longer than all that the tracer does at the stop; most of all
//! in a virtual machine, where it leaves the guest. A companion that runs there only when nobody
//! else wants to (`SCHED_IDLE`) spares the target that: it gives way at once, and sleeps itself when
//! no stop has come for a moment.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::awake;
use crate::sys::processor;

/// Bytes of /proc/TID/stat that hold the processor: some fifty numbers and a name of 16 bytes.
const STAT_BYTES: usize = 1024;
/// The processor's place in it, counted from behind the name (proc(5): field 39, the state is 3).
const PROCESSOR_FIELD: usize = 39 - 3;

/// A thread that keeps a processor awake.
#[derive(Debug)]
pub(super) struct Companion {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
    began: Instant,
    followed: Option<(u32, File)>,
}

#[derive(Debug, Default)]
struct Shared {
    processor: AtomicUsize,
    /// Until when it is to stay awake, in nanoseconds from the beginning.
    until: AtomicU64,
    asleep: AtomicBool,
    end: AtomicBool,
}

impl Shared {
    fn is_over(&self, began: Instant) -> bool {
        began.elapsed() >= Duration::from_nanos(self.until.load(Ordering::SeqCst))
    }
}

impl Companion {
    /// A companion, where there are processors enough for one.
    pub(super) fn start() -> Option<Companion> {
        let limit = awake::limit();
        if limit.is_zero() {
            return None;
        }
        let shared = Arc::new(Shared::default());
        let began = Instant::now();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().spawn(move || keep_awake(&theirs, began)).ok()?;
        Some(Companion { shared, thread, began, followed: None })
    }

    /// A thread was let go: its processor is the one to be kept awake from now on.
    pub(super) fn follow(&mut self, tid: u32) {
        let Some(processor) = self.processor_of(tid) else { return };
        let until = u64::try_from((self.began.elapsed() + awake::limit()).as_nanos());
        self.shared.processor.store(processor, Ordering::Relaxed);
        self.shared.until.store(until.unwrap_or(u64::MAX), Ordering::SeqCst);
        if self.shared.asleep.swap(false, Ordering::SeqCst) {
            self.thread.thread().unpark();
        }
    }

    fn processor_of(&mut self, tid: u32) -> Option<usize> {
        if self.followed.as_ref().is_none_or(|(followed, _)| *followed != tid) {
            self.followed = Some((tid, File::open(format!("/proc/{tid}/task/{tid}/stat")).ok()?));
        }
        let mut bytes = [0; STAT_BYTES];
        let length = self.followed.as_ref()?.1.read_at(&mut bytes, 0).ok()?;
        processor_in(std::str::from_utf8(bytes.get(..length)?).ok()?)
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
    }
}

fn processor_in(stat: &str) -> Option<usize> {
    let (_, behind_name) = stat.rsplit_once(") ")?;
    behind_name.split(' ').nth(PROCESSOR_FIELD)?.trim().parse().ok()
}

fn keep_awake(shared: &Shared, began: Instant) {
    if processor::yield_to_all().is_err() {
        return;
    }
    let mut on = None;
    while !shared.end.load(Ordering::SeqCst) {
        if shared.is_over(began) {
            shared.asleep.store(true, Ordering::SeqCst);
            // A stop may have come before that was said.
            if shared.is_over(began) {
                std::thread::park();
            }
            continue;
        }
        let processor = shared.processor.load(Ordering::Relaxed);
        if on != Some(processor) && processor::stay_on(processor).is_err() {
            return;
        }
        on = Some(processor);
        for _ in 0..LOOKS {
            std::hint::spin_loop();
        }
    }
}

/// How often to do nothing between two looks at what is wanted.
const LOOKS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_the_thirty_ninth_field() {
        let before: Vec<String> = (3..39).map(|field| format!("-{field}")).collect();
        let stat = format!("7 (a) b) {} 11 0 0\n", before.join(" "));
        assert_eq!(processor_in(&stat), Some(11));
        assert_eq!(processor_in("7 (a)"), None);
    }

    #[test]
    fn a_companion_ends_with_its_tracer() {
        // On a machine with few processors there is none.
        if let Some(mut companion) = Companion::start() {
            companion.follow(std::process::id());
            let shared = Arc::downgrade(&companion.shared);
            drop(companion);
            let deadline = Instant::now() + Duration::from_secs(10);
            while shared.strong_count() > 0 {
                assert!(Instant::now() < deadline, "it is still there");
                std::thread::yield_now();
            }
        }
    }
}
