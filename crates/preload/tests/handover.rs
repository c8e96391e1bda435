//! The mutex with hand-off under unmodified programs: the library simulates a machine with more
//! CPUs and sockets than this one. The checks of the programs must still hold.

mod support;

use std::process::Command;

use support::{compile, plain, preloaded_into, pretending, run, scratch, skipped, succeeds};

/// Machines, as CPUs, sockets, and how often waiters find too few CPUs; each with a form of the
/// lock.
const RUNS: [(&str, &str); 4] =
    [("64", ""), ("64x2", "shfl-mutex+light"), ("16x3/8", ""), ("16x3/8", "shfl-mutex+light")];

/// Runs a program under the library on each machine, in one form of the lock or both.
fn holds(file: &str, arguments: [&[&str]; 2]) {
    let directory = scratch(&format!("handover-{file}"));
    let program = compile(&directory, file);
    succeeds(plain(&program).args(arguments[0]));
    let on = |machine: &str, lock: &str| -> Command {
        let mut command = preloaded_into(pretending(), &program);
        command.args(arguments[1]).env("ANTIPHON_PRETEND", machine).env("ANTIPHON_LOCK", lock);
        command
    };
    for (machine, lock) in RUNS {
        succeeds(&mut on(machine, lock));
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn a_mutex_is_handed_from_owner_to_waiter() {
    holds("handover.c", [&[], &["ours"]]);
}

#[test]
fn mutexes_return_what_they_should() {
    holds("mutex.c", [&["4"], &["12"]]);
}

#[test]
fn condition_variables_lose_nothing() {
    holds("cond.c", [&[], &[]]);
}

#[test]
fn every_condition_variable_with_every_mutex() {
    holds("matrix.c", [&[], &[]]);
}

#[test]
fn waits_can_be_cancelled_and_locks_not() {
    holds("cancel.c", [&[], &[]]);
}

#[test]
fn children_of_every_fork_can_lock() {
    holds("fork.c", [&[], &["exact"]]);
}

#[test]
fn before_the_first_constructor_and_after_the_last_destructor() {
    holds("edges.c", [&[], &[]]);
}

#[test]
fn waiters_in_signal_handlers_are_passed_by() {
    holds("handlers.c", [&[], &[]]);
}

#[test]
fn the_cpp_library_works_over_it() {
    holds("std.cpp", [&[], &[]]);
}

#[test]
fn waiters_of_real_time_priority_are_served_by_it() {
    let directory = scratch("handover-refused");
    let refused = run(&mut plain(compile(&directory, "urgent.c"))).status.code() == Some(77);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
    if refused {
        return skipped("no right to SCHED_FIFO");
    }
    holds("urgent.c", [&["theirs"], &["ours"]]);
}
