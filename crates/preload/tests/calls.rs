//! The README's table of system calls is true: a program under the library is traced, and what the
//! library calls is in the rows for what was asked of it.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use antiphon_record::{Recording, Scope};
use support::{compile, installed, library, plain, run, scratch, skipped, succeeds};

type Calls = BTreeSet<String>;

/// The rows of the README's table: when, and the system calls.
fn table() -> BTreeMap<String, Calls> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(readme).expect("a README");
    let lines = text.lines().skip_while(|line| *line != "| when | system calls |").skip(2);
    let rows = lines.take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells = line.trim_matches('|').splitn(2, " | ").map(str::trim);
        let (when, calls) = (cells.next().unwrap_or(""), cells.next().unwrap_or(""));
        let names = calls.split('`').skip(1).step_by(2).map(str::to_owned);
        (when.to_owned(), names.collect())
    });
    rows.collect()
}

/// Returns the system calls in a trace that the library has made: by an instruction of its own, or
/// by a function of the C library that it has called.
fn made(trace: &str) -> Calls {
    let (mut all, mut call, mut frames) = (Calls::new(), None, Vec::new());
    let mut end = |call: Option<&str>, frames: &[&str]| {
        let is_in = |at: usize, object| frames.get(at).is_some_and(|frame| frame.contains(object));
        let ours = "libantiphon_preload.so";
        if let Some(call) = call
            && (is_in(0, ours) || is_in(0, "libc.so") && is_in(1, ours))
        {
            all.insert(call.to_owned());
        }
    };
    for line in trace.lines() {
        if line.starts_with(" > ") {
            frames.push(line);
            continue;
        }
        end(call, &frames);
        frames.clear();
        // `12 call(…`, or `12 <... call resumed>`.
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let rest = rest.strip_prefix("<... ").unwrap_or(rest);
        call = rest.split(['(', ' ']).next();
    }
    end(call, &frames);
    all
}

#[test]
fn the_table_of_system_calls_is_complete() {
    if !installed("strace") {
        return;
    }
    let directory = scratch("calls");
    let trace = directory.join("trace");
    let strace = |library: Option<&Path>| {
        let mut command = plain("strace");
        command.args(["-f", "-k", "-qq", "-o"]).arg(&trace);
        // These are made often, and are not what may be missing.
        command.args(["--seccomp-bpf", "-e", "trace=!futex,sched_yield,clock_nanosleep"]);
        if let Some(library) = library {
            command.arg("-E").arg(format!("LD_PRELOAD={}", library.display()));
        }
        command
    };
    if !run(strace(None).arg("true")).status.success() {
        return skipped("strace can't trace here, or prints no stacks");
    }
    let (program, table) = (compile(&directory, "sections.c"), table());
    let recording = directory.join("recording");
    const RECORDING: Option<&str> = Some("a recording");
    for (lock, sections, scope, row) in [
        ("", "", None, None),
        ("shfl-mutex+light", "", None, Some("the light form")),
        ("", "1", None, Some("`ANTIPHON_SECTIONS`")),
        ("", "", Some(Scope::Contended), RECORDING),
        ("", "", Some(Scope::Full), RECORDING),
        ("", "", Some(Scope::Events), RECORDING),
    ] {
        let path = if let Some(scope) = scope {
            assert!(Recording::create(&recording, scope).is_ok());
            recording.as_path()
        } else {
            Path::new("")
        };
        let mut traced = strace(Some(library()));
        traced.env("ANTIPHON_LOCK", lock).env("ANTIPHON_SECTIONS", sections);
        succeeds(traced.env("ANTIPHON_RECORD", path).arg(&program));
        let seen = made(&fs::read_to_string(&trace).expect("a trace"));
        assert!(["gettid", "close"].iter().all(|&call| seen.contains(call)), "{seen:?}");
        let rows = ["at load", "a lock that waits"].into_iter().chain(row);
        let told: Calls = rows.flat_map(|row| table[row].iter().cloned()).collect();
        let untold: Vec<_> = seen.difference(&told).collect();
        assert!(untold.is_empty(), "{row:?}, {scope:?}: the README does not say {untold:?}");
        if scope.is_some() {
            assert!(fs::remove_file(&recording).is_ok());
        }
    }
    assert!(fs::remove_dir_all(&directory).is_ok());
}
