//! What POSIX and the C library promise, from C and C++ programs in `tests/c`. Each runs with the C
//! library's own functions first: what it expects is what holds there.

mod support;

use std::path::Path;

use support::{compile, plain, preloaded, scratch, succeeds};

/// Runs a program without and with the library, with an argument for each.
fn holds(file: &str, arguments: [&[&str]; 2]) {
    let directory = scratch(file);
    let program = compile(&directory, file);
    succeeds(plain(&program).args(arguments[0]));
    let output = succeeds(preloaded(&program).args(arguments[1]));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    // Neither the form of the lock nor recording changes anything of what is returned.
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

/// Under a limit of address space that leaves no room for waiters' nodes, all wait without one.
#[test]
fn without_memory_for_waiters() {
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

#[test]
fn mutexes_return_what_they_should() {
    // Where the recursion count stands.
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
fn what_is_left_to_the_c_library_works_beside_it() {
    holds("left.c", [&[], &[]]);
}

#[test]
fn the_cpp_library_works_over_it() {
    holds("std.cpp", [&[], &[]]);
}
