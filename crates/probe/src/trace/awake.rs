//! Waiting without sleep for what is about to come.
//!
//! Waking a sleeping thread up costs several times what a look does, most of all in a virtual
//! machine, and the calls of a start come a fifth of a millisecond one after the other (H200, driver
//! 580). Who looks gives way between two looks: a thread that is let go often comes to run on the
//! processor of the one that let it go, and would have to wait there until that one sleeps. Measured
//! on that machine with 16 processors, a start traced by threads that sleep at once, look without
//! giving way, and give way: 1.07, 1.09 and 1.06 times the untraced one; without giving way some
//! twenty of its calls took 0.33 ms instead of 0.01 ms.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// How long to look before going to sleep.
const WAKEFUL: Duration = Duration::from_micros(300);

/// With fewer processors a thread that looks would only take the target's. Measured on two busy
/// ones: looking instead of sleeping made each stop take up to twice as long.
const FROM_PROCESSORS: usize = 4;

/// Looks again and again, for a moment; at least once.
pub(super) fn look<T>(mut at: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = at();
        if found.is_some() || begun.elapsed() >= limit() {
            return found;
        }
        std::thread::yield_now();
    }
}

/// Finds out how long to look, which reads some files.
pub(super) fn prepare() {
    limit();
}

fn limit() -> Duration {
    static LIMIT: LazyLock<Duration> = LazyLock::new(|| {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if processors >= FROM_PROCESSORS { WAKEFUL } else { Duration::ZERO }
    });
    *LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_given_up() {
        assert_eq!(look(|| Some(1)), Some(1));
        assert_eq!(look(|| None::<u8>), None);
    }
}
