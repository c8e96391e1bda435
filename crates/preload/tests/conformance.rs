//! Conformance to POSIX and to the C library, by C and C++ programs in `tests/c`. Each runs with
//! the C library's own functions first, to check its expectations there.

mod support;

use std::path::Path;

use support::{compile, plain, preloaded, run, scratch, skipped, succeeds};

/// Runs a program without and with the library, with arguments for each.
fn holds(file: &str, arguments: [&[&str]; 2]) {
    let directory = scratch(file);
    let program = compile(&directory, file);
    succeeds(plain(&program).args(arguments[0]));
    let output = succeeds(preloaded(&program).args(arguments[1]));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    // Neither the form of the lock nor recording changes any returned value.
    succeeds(preloaded(&program).args(arguments[1]).env("ANTIPHON_LOCK", "shfl-mutex+light"));
    let recording = directory.join("recording");
    for scope in [antiphon_record::Scope::Contended, antiphon_record::Scope::Full] {
        assert!(antiphon_record::Recording::create(&recording, scope).is_ok());
        succeeds(preloaded(&program).args(arguments[1]).env("ANTIPHON_RECORD", &recording));
        assert!(std::fs::remove_file(&recording).is_ok());
    }
    // And with the C library's locks, observed or not, everything is as without the library.
    assert!(antiphon_record::Recording::create(&recording, antiphon_record::Scope::Full).is_ok());
    for path in [recording.as_path(), Path::new("")] {
        let mut observed = preloaded(&program);
        observed.args(arguments[0]).env("ANTIPHON_LOCK", "glibc").env("ANTIPHON_RECORD", path);
        let output = succeeds(&mut observed);
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// If the kernel can't wipe memory in a child, there are no nodes, and all threads wait without
/// one. Waits for a condition variable then end spuriously, and a readers-writer lock has no
/// preference.
#[test]
fn without_memory_for_waiters() {
    let directory = scratch("nodeless");
    let (nodeless, program) = (compile(&directory, "nodeless.c"), compile(&directory, "mutex.c"));
    succeeds(preloaded(&nodeless).arg(&program).arg("12"));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// Under a limit of address space.
#[test]
fn with_little_address_space() {
    let directory = scratch("limited");
    for (file, argument) in [
        ("mutex.c", "12"),
        ("rwlock.c", "ours"),
        ("cond.c", ""),
        ("matrix.c", ""),
        ("cancel.c", ""),
        ("edges.c", ""),
    ] {
        let program = compile(&directory, file);
        let limited = ["-c", "ulimit -v 250000 && exec \"$0\" $1"];
        succeeds(preloaded("sh").args(limited).arg(&program).arg(argument));
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// Limits on address space and on locked memory are the program's to use.
#[test]
fn contention_takes_little_of_what_is_limited() {
    let directory = scratch("limits");
    let program = compile(&directory, "limits.c");
    for what in ["size", "locked", "many"] {
        succeeds(plain(&program).arg(what));
        for lock in ["", "shfl-mutex+light"] {
            succeeds(preloaded(&program).arg(what).env("ANTIPHON_LOCK", lock));
        }
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// Runs the program of that name under both forms of the lock and, with `too`, also without the
/// library.
fn holds_in_both_forms(name: &str, too: bool) {
    let directory = scratch(name);
    let program = compile(&directory, &format!("{name}.c"));
    if too {
        succeeds(&mut plain(&program));
    }
    for lock in ["", "shfl-mutex+light"] {
        succeeds(preloaded(&program).env("ANTIPHON_LOCK", lock));
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// A thread that waits for long does not wake up meanwhile.
#[test]
fn waiters_that_wait_for_long_do_not_look_up() {
    holds_in_both_forms("idle", true);
}

/// A waiter that does not run keeps no other waiter from the lock.
#[test]
fn waiters_in_signal_handlers_are_passed_by() {
    holds_in_both_forms("handlers", true);
}

/// In memory that other processes may share, waiters do wake up.
#[test]
fn waiters_in_memory_of_several_processes_look_up() {
    holds_in_both_forms("foreign", false);
}

/// Random sequences of calls, with valid and invalid deadlines and clocks: each returns what the C
/// library returns, in every form of the lock, recorded or not.
#[test]
fn calls_by_lot_are_answered_as_the_c_library_does() {
    let directory = scratch("random");
    let program = compile(&directory, "random.c");
    let rounds = ["0", "1000"];
    let theirs = succeeds(plain(&program).args(rounds)).stdout;
    assert!(theirs.len() > 100_000, "{} bytes", theirs.len());
    let recording = directory.join("recording");
    let full = antiphon_record::Recording::create(&recording, antiphon_record::Scope::Full);
    assert!(full.is_ok());
    for (lock, path) in
        [("", Path::new("")), ("shfl-mutex+light", Path::new("")), ("", recording.as_path())]
    {
        let mut ours = preloaded(&program);
        ours.args(rounds).env("ANTIPHON_LOCK", lock).env("ANTIPHON_RECORD", path);
        let ours = succeeds(&mut ours).stdout;
        let lines = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let (theirs, ours) = (lines(&theirs), lines(&ours));
        let mut seed = "";
        for (their, our) in theirs.lines().zip(ours.lines()) {
            seed = if their.starts_with("seed") { their } else { seed };
            assert_eq!(our, their, "{seed}, {lock}");
        }
        assert_eq!(ours.len(), theirs.len());
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn mutexes_return_what_they_should() {
    // The argument is the offset of the recursion count.
    holds("mutex.c", [&["4"], &["12"]]);
}

#[test]
fn readers_writer_locks_return_what_they_should() {
    holds("rwlock.c", [&["theirs"], &["ours"]]);
}

#[test]
fn static_initialisers_of_all_kinds() {
    holds("statics.c", [&[], &[]]);
}

#[test]
fn spinlocks_exclude_threads_and_processes() {
    holds("spin.c", [&[], &[]]);
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
fn a_waiter_of_high_priority_lets_the_owner_run() {
    holds("priority.c", [&[], &[]]);
}

#[test]
fn waiters_of_real_time_priority_are_served_by_it() {
    let directory = scratch("urgent");
    let refused = run(&mut plain(compile(&directory, "urgent.c"))).status.code() == Some(77);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
    if refused {
        return skipped("no right to SCHED_FIFO");
    }
    // glibc prefers no reader for its priority.
    holds("urgent.c", [&["theirs"], &["ours"]]);
}

#[test]
fn what_is_left_to_the_c_library_works_beside_it() {
    holds("left.c", [&[], &[]]);
}

#[test]
fn the_cpp_library_works_over_it() {
    holds("std.cpp", [&[], &[]]);
}
