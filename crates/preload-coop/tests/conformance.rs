//! Conformance to Linux and to the C library, by C programs in `tests/c`. Each runs without the
//! library first, to check its expectations there.

mod support;

use std::path::Path;

use antiphon_record::coop::Count;
use support::{Spins, Stage, plain, succeeds};

/// Runs a program with the library in that tier, and checks that it had at least `loops` loops.
fn holds_by(stage: &Stage, program: &Path, arguments: &[&str], tier: &str, loops: usize) {
    let before = stage.loops().len();
    let output = succeeds(stage.under(tier, program).args(arguments));
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let found = &stage.loops()[before..];
    assert!(found.len() >= loops, "{tier}: {} loops", found.len());
    // A loop that takes no part in the domain runs as if it were alone, which would prove nothing.
    assert!(found.iter().all(|row| row.baton == (tier != "t1")), "{tier}: {found:?}");
    assert!(found.iter().all(|row| row.count(Count::Waits) > 0), "{tier}");
}

/// Runs a program without and with the library in each tier, and checks that it had at least
/// `loops` loops.
fn holds(file: &str, compiled: &[&str], arguments: &[&str], loops: usize) {
    let stage = Stage::new(&file.replace('.', "-"));
    let program = stage.compile(file, compiled);
    succeeds(plain(&program).args(arguments));
    for tier in ["t3", "t1", "auto"] {
        holds_by(&stage, &program, arguments, tier, loops);
    }
}

#[test]
fn waits_return_what_they_should() {
    holds("waits.c", &["-O1"], &[], 1);
}

#[test]
fn waits_of_a_hardened_program_too() {
    holds("waits.c", &["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"], &[], 1);
}

#[test]
fn threads_cancellation_and_handlers() {
    let stage = Stage::new("loaded");
    let library = stage.compile("loaded.c", &["-shared", "-fPIC"]);
    holds("threads.c", &["-O1"], &[&library.display().to_string()], 8);
}

#[test]
fn no_wait_is_longer_than_a_loop_has_told() {
    let stage = Stage::new("told");
    let program = stage.compile("told.c", &["-O1"]);
    for tier in ["t3", "t1", "auto"] {
        holds_by(&stage, &program, &[], tier, 1);
    }
}

#[test]
fn who_becomes_another_user_and_may_not_be_raised_any_longer_is_counted() {
    let stage = Stage::new("users");
    let program = stage.compile("users.c", &["-O1"]);
    let status = stage.under("t1", &program).status().expect("it starts");
    if status.code() == Some(77) {
        return eprintln!("skipped: only root becomes another user, where there is one");
    }
    assert!(status.success(), "{status}");
    let loops = stage.loops();
    // If not even root may raise a thread, there is no helper.
    let counted = |row: &antiphon_record::coop::LoopRow| row.count(Count::Refusals) > 0;
    assert!(loops.iter().all(|row| !row.boost || counted(row)), "{loops:?}");
}

#[test]
fn looks_are_not_interrupted() {
    holds("looks.c", &["-O1"], &[], 1);
}

#[test]
fn forks_executed_programs_and_the_ends_of_a_process() {
    holds("processes.c", &["-O1"], &[], 8);
}

#[test]
fn a_program_that_closes_its_files_keeps_its_streams_closed() {
    holds("streams.c", &["-O1"], &[], 1);
}

#[test]
fn all_that_holds_while_another_has_the_cpu() {
    let stage = Stage::new("beside");
    let spins = stage.compile("spins.c", &["-O1"]);
    for file in ["waits.c", "threads.c", "processes.c"] {
        let program = stage.compile(file, &["-O1"]);
        for tier in ["t3", "auto"] {
            // The other loop always has work, so each wait includes waiting for a turn.
            let mut other = Spins::new(&stage, &spins, tier, 600_000);
            other.begin();
            holds_by(&stage, &program, &[], tier, 1);
        }
    }
}

#[test]
fn without_a_domain_to_be_had_all_is_as_before() {
    let stage = Stage::new("refused");
    let program = stage.compile("waits.c", &["-O1"]);
    let domain = antiphon_record::coop::DOMAIN;
    succeeds(stage.under("t3", &program).env(domain, "not a name"));
    let loops = stage.loops();
    assert!(!loops.is_empty() && loops.iter().all(|row| !row.baton && row.refusal.is_some()));
}
