//! The whole collection in surroundings of every kind, with this binary as the probes' child.
//!
//! Some tests need root, loop devices or a C compiler; where those are missing they say so and
//! count as passed.

#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]
#![expect(clippy::exit, reason = "this binary is also the program under test")]

mod collected;
mod frozen;
mod hostile;
mod trials;
mod unchanged;

use std::ffi::OsString;

use libtest_mimic::{Arguments, Trial};
use probe::supervise::CHILD_WORD;

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.split_first() {
        Some((first, rest)) if first == CHILD_WORD => probe::child::main(rest),
        Some((first, _)) if first == collected::WORD => collected::collect_and_print(),
        _ => {}
    }
    let tests: Vec<(&str, fn())> = vec![
        ("a_machine_is_collected_whole", collected::a_machine_is_collected_whole),
        ("another_root_is_only_read", collected::another_root_is_only_read),
        ("layers_narrow_what_is_run", collected::layers_narrow_what_is_run),
        ("one_success_is_enough", trials::one_success_is_enough),
        ("failures_are_repeated", trials::failures_are_repeated),
        ("crashes_and_exits_are_told_apart", trials::crashes_and_exits_are_told_apart),
        ("a_library_that_prints_spoils_nothing", trials::a_library_that_prints_spoils_nothing),
        ("a_library_that_does_not_load_says_why", trials::a_library_that_does_not_load_says_why),
        ("a_hang_ends_at_the_deadline", trials::a_hang_ends_at_the_deadline),
        ("what_cannot_be_killed_is_named", trials::what_cannot_be_killed_is_named),
        ("observing_as_root_changes_nothing", unchanged::observing_as_root_changes_nothing),
        ("observing_as_a_user_changes_nothing", unchanged::observing_as_a_user_changes_nothing),
        ("nodes_without_a_driver_are_left_alone", unchanged::nodes_without_a_driver),
        ("few_descriptors", hostile::few_descriptors),
        ("little_memory", hostile::little_memory),
        ("no_proc", hostile::no_proc),
        ("no_sys", hostile::no_sys),
        ("read_only_root", hostile::read_only_root),
        ("closed_descriptors", hostile::closed_descriptors),
        ("children_reaped_by_the_kernel", hostile::children_reaped_by_the_kernel),
        ("strange_environment", hostile::strange_environment),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let tests = tests.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}
