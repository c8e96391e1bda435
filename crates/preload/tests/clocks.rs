//! Programs whose clocks are not the kernel's: their deadlines are judged by the clocks that they
//! see, and the recording has the kernel's times.

mod support;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use antiphon_record::{Recording, Scope};
use support::{compile, installed, library, plain, preloaded, scratch, succeeds};

/// A day and more, in milliseconds.
const LONG: &str = "86000000";

/// Per case: the length of a wait by the fake clock and the shortest and longest time that it may
/// take, in milliseconds; then `FAKE_CLOCK`.
const CASES: [([&str; 3], &str); 7] = [
    (["100", "100", "60000"], "0 1000 0"),
    // In the next decade, and in the previous one.
    (["100", "100", "60000"], "300000000 1000 0"),
    (["100", "100", "60000"], "-300000000 1000 0"),
    // The clock stands still, in the previous decade.
    (["100", "100", "60000"], "-300000000 0 0"),
    // A thousand times as fast, and half as fast.
    (["100000", "100", "60000"], "0 1000000 0"),
    (["100", "190", "60000"], "5 500 0"),
    // The clock jumps over the deadline.
    ([LONG, "100", "60000"], "0 1000 200"),
];

struct Built {
    directory: PathBuf,
    /// The program alone, and with the fake clock linked in.
    program: PathBuf,
    with_clock: PathBuf,
    /// A library with a fake clock, and one that converts deadlines, too.
    clock: PathBuf,
    wraps: PathBuf,
}

fn build(name: &str) -> Built {
    let directory = scratch(name);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let make = |to: &str, files: &[&str], more: &[&str]| {
        let made = directory.join(to);
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(more);
        gcc.args(files.iter().map(|file| sources.join(file))).arg("-o").arg(&made);
        succeeds(&mut gcc);
        made
    };
    Built {
        program: compile(&directory, "clocks.c"),
        with_clock: make("with-clock", &["clocks.c", "fake_clock.c"], &["-no-pie"]),
        clock: make("libclock.so", &["fake_clock.c"], &["-shared", "-fPIC"]),
        wraps: make("libwraps.so", &["fake_clock.c"], &["-shared", "-fPIC", "-DWRAPS"]),
        directory,
    }
}

fn preload(libraries: &[&Path]) -> OsString {
    let libraries: Vec<&OsStr> = libraries.iter().map(|library| library.as_os_str()).collect();
    libraries.join(OsStr::new(":"))
}

#[test]
fn a_deadline_is_judged_by_the_clock_that_the_program_sees() {
    let built = build("clocks");
    // The expected result is that of the C library alone.
    succeeds(plain(&built.program).args(CASES[0].0));
    succeeds(preloaded(&built.program).args(CASES[0].0));
    for (times, fake) in CASES {
        for order in [[library(), &built.clock], [&built.clock, library()]] {
            for lock in ["", "shfl-mutex+light"] {
                let mut command = plain(&built.program);
                command.args(times).env("FAKE_CLOCK", fake).env("ANTIPHON_LOCK", lock);
                let output = succeeds(command.env("LD_PRELOAD", preload(&order)));
                assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{fake}");
            }
        }
        succeeds(preloaded(&built.with_clock).args(times).env("FAKE_CLOCK", fake));
    }
    assert!(std::fs::remove_dir_all(&built.directory).is_ok());
}

/// The other library acts like libfaketime: it converts the deadline to the kernel's clock, and
/// calls the next function.
#[test]
fn a_deadline_that_was_converted_is_not_converted_again() {
    let built = build("wraps");
    for (times, fake) in &CASES[..6] {
        let only = |libraries: &[&Path]| {
            let mut command = plain(&built.program);
            command.args(times).arg("0").env("FAKE_CLOCK", fake);
            succeeds(command.env("LD_PRELOAD", preload(libraries)));
        };
        only(&[&built.wraps]);
        only(&[&built.wraps, library()]);
        only(&[library(), &built.wraps]);
    }
    assert!(std::fs::remove_dir_all(&built.directory).is_ok());
}

/// Recorded under a clock that stands still: by that clock, every wait lasts 0 ns. The recorded
/// time begins after the deadline was converted, so a thread that loses its CPU in between is
/// recorded with less than the 100 ms of its wait.
#[test]
fn recorded_times_are_the_kernels() {
    let built = build("recorded-times");
    for scope in [Scope::Contended, Scope::Full] {
        let recording = built.directory.join("recording");
        assert!(Recording::create(&recording, scope).is_ok());
        let mut command = plain(&built.program);
        command.args(CASES[3].0).env("FAKE_CLOCK", CASES[3].1);
        command.env("LD_PRELOAD", preload(&[&built.clock, library()]));
        succeeds(command.env("ANTIPHON_RECORD", &recording));
        let seen = Recording::open(&recording).and_then(|recording| recording.read());
        let seen = seen.expect("it was written");
        for blocked_ns in [
            seen.threads.iter().map(|thread| thread.blocked.condition_ns).max(),
            seen.threads.iter().map(|thread| thread.blocked.mutex_ns).max(),
        ] {
            assert!(blocked_ns.is_some_and(|ns| ns >= 50_000_000), "{blocked_ns:?}");
        }
        assert!(std::fs::remove_file(&recording).is_ok());
    }
    assert!(std::fs::remove_dir_all(&built.directory).is_ok());
}

/// libfaketime before and behind this library in the search order, as its command places it.
#[test]
fn libfaketime() {
    if !installed("faketime") {
        return;
    }
    let built = build("faketime");
    for (times, mode) in [
        (["100", "100", "60000"], "2035-01-01 00:00:00"),
        (["100", "100", "60000"], "@2020-01-01 00:00:00"),
        (["100", "100", "60000"], "2020-01-01 00:00:00"),
        (["100000", "100", "60000"], "+0 x1000"),
        (["100", "190", "60000"], "+0 x0.5"),
    ] {
        let command = ["faketime", "-f", mode];
        let mut behind = preloaded(command[0]);
        succeeds(behind.args(&command[1..]).arg(&built.program).args(times));
        // In front of us it converts the deadlines of `pthread_cond_timedwait`, and replaces no
        // other lock function.
        let mut before = plain(command[0]);
        before.args(&command[1..]).arg("sh");
        before.args(["-c", "LD_PRELOAD=$LD_PRELOAD:\"$0\" exec \"$@\""]).arg(library());
        succeeds(before.arg(&built.program).args(times).arg("0"));
    }
    assert!(std::fs::remove_dir_all(&built.directory).is_ok());
}
