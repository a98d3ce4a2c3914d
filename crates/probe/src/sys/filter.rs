//! The seccomp filter that lets only the calls of interest stop a traced program.
//!
//! All other calls are let go by their number alone: kernels since 5.11 find that out once and run
//! no filter for them any more. Of `mmap` only the shared mappings of files stop, as those of a
//! node are and those of libraries are not. Of `close` those of high descriptors are let go: a
//! program that closes a billion of them at its start would be slowed down thirtyfold, and the
//! driver's own are among the first.

use super::arch::Architecture;

/// From here on a closed descriptor is not looked at.
pub(crate) const CLOSES_SEEN_BELOW: u32 = 1024;

/// Offsets in `seccomp_data` (linux/seccomp.h).
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The lower half of an argument; both architectures are little-endian.
const fn argument(index: u32) -> u32 {
    ARGUMENTS + 8 * index
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const IF_ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Where a line goes on to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Next,
    OfMmap,
    OfClose,
    Go,
    Stop,
}

/// The filter for the calls of one architecture. Calls of another one are let go.
pub(crate) fn filter(of: &Architecture) -> Vec<libc::sock_filter> {
    let stopping = [Some(of.ioctl), Some(of.openat), of.open, Some(of.openat2), Some(of.ptrace)];
    let mut lines = vec![
        (LOAD, ARCHITECTURE, To::Next, To::Next),
        (IF_EQUAL, of.audit, To::Next, To::Go),
        (LOAD, NUMBER, To::Next, To::Next),
        (IF_EQUAL, of.mmap, To::OfMmap, To::Next),
        (IF_EQUAL, of.close, To::OfClose, To::Next),
    ];
    lines.extend(stopping.into_iter().flatten().map(|call| (IF_EQUAL, call, To::Stop, To::Next)));
    let go = lines.len();
    lines.push((RETURN, libc::SECCOMP_RET_ALLOW, To::Next, To::Next));
    let of_mmap = lines.len();
    lines.push((LOAD, argument(3), To::Next, To::Next));
    lines.push((IF_ANY_BIT, libc::MAP_ANONYMOUS.cast_unsigned(), To::Go, To::Next));
    lines.push((IF_ANY_BIT, libc::MAP_SHARED.cast_unsigned(), To::Stop, To::Go));
    let of_close = lines.len();
    lines.push((LOAD, argument(0), To::Next, To::Next));
    lines.push((IF_AT_LEAST, CLOSES_SEEN_BELOW, To::Go, To::Stop));
    // Jumps lead forwards only, so that the end has its own copy of letting go.
    let (late_go, stop) = (lines.len(), lines.len() + 1);
    lines.push((RETURN, libc::SECCOMP_RET_ALLOW, To::Next, To::Next));
    lines.push((RETURN, libc::SECCOMP_RET_TRACE, To::Next, To::Next));
    let place = |to: To, from: usize| match to {
        To::Next => 0,
        To::OfMmap => of_mmap - from - 1,
        To::OfClose => of_close - from - 1,
        To::Go if from < go => go - from - 1,
        To::Go => late_go - from - 1,
        To::Stop => stop - from - 1,
    };
    let short = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
    let line = |(at, (code, k, yes, no)): (usize, (u32, u32, To, To))| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: short(place(yes, at)),
        jf: short(place(no, at)),
        k,
    };
    lines.into_iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::arch::{AARCH64, X86_64};
    use super::*;

    /// What the kernel would do: runs the filter over a call.
    fn run(filter: &[libc::sock_filter], audit: u32, number: u32, arguments: [u32; 4]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let line = &filter[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { line.jt } else { line.jf });
            match u32::from(line.code) {
                LOAD => {
                    loaded = match line.k {
                        NUMBER => number,
                        ARCHITECTURE => audit,
                        other => arguments[(other - ARGUMENTS) as usize / 8],
                    }
                }
                IF_EQUAL => at += jump(loaded == line.k),
                IF_AT_LEAST => at += jump(loaded >= line.k),
                IF_ANY_BIT => at += jump(loaded & line.k != 0),
                RETURN => return line.k,
                code => panic!("no such instruction: {code}"),
            }
        }
    }

    #[test]
    fn only_the_calls_of_interest_stop() {
        const FILE: u32 = libc::MAP_SHARED.cast_unsigned();
        const NO_FILE: u32 = (libc::MAP_SHARED | libc::MAP_ANONYMOUS).cast_unsigned();
        const OF_A_LIBRARY: u32 = (libc::MAP_PRIVATE | libc::MAP_DENYWRITE).cast_unsigned();
        for of in [X86_64, AARCH64] {
            let filter = filter(&of);
            let stops = |number: u32, arguments: [u32; 4]| {
                run(&filter, of.audit, number, arguments) == libc::SECCOMP_RET_TRACE
            };
            for number in 0..600 {
                let is_known = of.known(u64::from(number)).is_some();
                assert_eq!(stops(number, [0, 0, 0, FILE]), is_known, "{number}");
            }
            assert!(!stops(of.mmap, [0, 0, 0, NO_FILE]));
            assert!(!stops(of.mmap, [0, 0, 0, OF_A_LIBRARY]));
            assert!(!stops(of.close, [CLOSES_SEEN_BELOW, 0, 0, 0]));
            assert!(stops(of.close, [CLOSES_SEEN_BELOW - 1, 0, 0, 0]));
        }
    }

    #[test]
    fn calls_of_another_architecture_go() {
        for (of, other) in [(X86_64, AARCH64), (AARCH64, X86_64)] {
            let filter = filter(&of);
            for number in 0..600 {
                let answer = run(&filter, other.audit, number, [0; 4]);
                assert_eq!(answer, libc::SECCOMP_RET_ALLOW);
            }
        }
    }

    /// The kernel asks a filter once for each number, and never again where the way to the answer
    /// leads past no argument.
    #[test]
    fn other_calls_are_decided_by_number_alone() {
        for of in [X86_64, AARCH64] {
            let filter = filter(&of);
            let arguments = filter.iter().filter(|line| {
                u32::from(line.code) == LOAD && line.k != NUMBER && line.k != ARCHITECTURE
            });
            assert_eq!(arguments.count(), 2, "of mmap and close");
            for number in 0..600 {
                let answer = |argument| run(&filter, of.audit, number, [argument; 4]);
                let different = answer(0) != answer(1) || answer(0) != answer(u32::MAX);
                assert_eq!(different, number == of.mmap || number == of.close, "{number}");
            }
        }
    }
}
