//! Runs the programs in `tests/c`: each prints what it expects, and exits with 0 if all checks
//! held.

use std::path::Path;
use std::process::Command;

use crate::support::{Linked, compile, here, prefix, run, scratch, succeeds};

fn check(file: &str) {
    let program = scratch(file).join("program");
    compile(&Path::new("tests/c").join(file), Linked::Shared, &program);
    // Prints the cases that the program has skipped.
    print!("{}", String::from_utf8_lossy(&run(&program, &[]).stdout));
}

#[test]
fn header_and_library_agree_about_the_types() {
    check("layout.c");
}

#[test]
fn mutexes_and_spinlocks() {
    check("mutex.c");
}

#[test]
fn readers_writer_locks() {
    check("rwlock.c");
}

#[test]
fn condition_variables() {
    check("cond.c");
}

#[test]
fn barriers_semaphores_and_once() {
    check("waits.c");
}

#[test]
fn events_and_latches() {
    check("event.c");
}

#[test]
fn event_counts_and_broadcasts() {
    check("broadcast.c");
}

#[test]
fn clocks_know_what_they_do_not_know() {
    check("clock.c");
}

#[test]
fn active_messages() {
    check("message.c");
}

#[test]
fn pools_run_tasks_and_forks() {
    check("pool.c");
}

#[test]
fn fibers_channels_promises_tokens_and_select() {
    check("fiber.c");
}

#[test]
fn stages_of_fibers() {
    check("stage.c");
}

#[test]
fn event_loops() {
    check("loop.c");
}

#[test]
fn what_event_loops_are_at() {
    check("loop_watch.c");
}

#[test]
fn threads_that_share_a_cpu() {
    check("coop.c");
}

#[test]
fn timers_in_a_thread_of_their_own() {
    check("split.c");
}

#[test]
fn event_loops_that_share_a_cpu() {
    check("loop_tiers.c");
}

#[test]
fn files_and_sockets_that_fibers_wait_for() {
    check("net.c");
}

#[test]
fn events_and_messages_of_the_cpp_headers() {
    check("wakes.cpp");
}

#[test]
fn policies_are_chosen_by_name_while_threads_wait() {
    check("policy.c");
}

#[test]
fn locks_that_processes_share() {
    check("pshared.c");
}

#[test]
fn events_that_processes_share() {
    check("pshared_event.c");
}

#[test]
fn no_function_is_a_cancellation_point() {
    check("cancel.c");
}

#[test]
fn a_forked_child_goes_on() {
    check("fork.c");
}

#[test]
fn the_types_of_the_cpp_header_are_the_standards() {
    check("std.cpp");
}

/// The archive in a plugin: its thread-local state must fit into the spare space that the C library
/// keeps.
#[test]
fn a_plugin_with_the_archive_in_it_is_loaded_late() {
    let directory = scratch("plugin");
    let plugin = directory.join("plugin.so");
    let mut command = Command::new("gcc");
    command.args(["-std=c99", "-shared", "-fPIC", "-Wall", "-Werror", "-I"]);
    command.arg(prefix().join("include")).arg(here().join("tests/c/plugin.c"));
    command.arg(prefix().join("lib/libantiphon.a")).arg("-Wl,-z,defs").arg("-o").arg(&plugin);
    succeeds(&mut command);
    let host = directory.join("host");
    compile(Path::new("tests/c/host.c"), Linked::Shared, &host);
    run(&host, &[&plugin]);
}
