//! `record`: the trace of a program shows what each of its threads did.

use std::collections::{HashMap, HashSet};
use std::fs::File;

use crate::common::{FRAME, Folder, has_keys, output, stderr};
use antiphon_trace::{LockKind, Reader, Thread, Trace, What};
use serde_json::Value;

fn read(path: &str) -> Trace {
    Reader::read(File::open(path).expect("a trace")).expect("a sound trace")
}

/// Checks that a thread's events follow the rules of locks; returns its number of acquisitions.
fn is_consistent(thread: &Thread, threads: usize) -> u64 {
    let mut held = Vec::new();
    let (mut waits, mut sleeps, mut taken) = (None, None, 0);
    assert_eq!(thread.events.first().map(|event| event.what), Some(What::Begins));
    for pair in thread.events.windows(2) {
        assert!(pair[0].at_ns <= pair[1].at_ns);
    }
    for event in &thread.events {
        match event.what {
            What::Waits { lock, .. } => assert_eq!(waits.replace(lock), None),
            What::Takes { lock, .. } => {
                assert!(waits.take().is_none_or(|waited| waited == lock));
                held.push(lock);
                taken += 1;
            }
            What::Releases { lock } => {
                let at = held.iter().rposition(|held| *held == lock).expect("held");
                held.remove(at);
            }
            What::Sleeps { condition, .. } => {
                assert!(held.is_empty(), "the mutex is released before");
                assert_eq!(sleeps.replace(condition), None);
            }
            What::Wakes { condition, .. } => assert_eq!(sleeps.take(), Some(condition)),
            What::Creates { thread } | What::Joins { thread } | What::Joined { thread } => {
                assert!((thread as usize) < threads);
            }
            _ => {}
        }
    }
    assert!(held.is_empty() && waits.is_none() && sleeps.is_none());
    taken
}

fn is_told(lock: &str) {
    let folder = Folder::new(&format!("record-{}", lock.len()));
    let program = folder.compile("pipeline.c", &[]);
    let (trace, report) = (folder.path("out.trace"), folder.path("report.json"));
    let arguments = ["--lock", lock, "--out", &trace, "--report", &report, "--", &program];
    let ran = output(&[&["record"], &arguments[..]].concat());
    assert_eq!(ran.status.code(), Some(3), "{}", stderr(&ran));
    let text = std::fs::read(&report).expect("a report");
    let report: Value = serde_json::from_slice(&text).expect("JSON");
    has_keys(&report, &FRAME);

    let told = read(&trace);
    assert!(!told.cut_off);
    assert_eq!(told.about.command, [program]);
    assert_eq!(report["trace"]["events"], told.events());
    assert_eq!(report["trace"]["bytes"], std::fs::metadata(&trace).expect("a file").len());
    assert_eq!((told.dropped, &report["trace"]["dropped"]), (0, &0.into()));

    // Three rounds of work: before the fork, in the parent and in the child.
    let mut taken: HashMap<u32, u64> = HashMap::new();
    for thread in &told.threads {
        *taken.entry(thread.process).or_default() += is_consistent(thread, told.threads.len());
    }
    let mut taken: Vec<u64> = taken.into_values().collect();
    taken.sort_unstable();
    assert_eq!(taken.len(), 2);
    // Each item is put and taken; a waiter takes the mutex again after each of its waits.
    assert!(taken[0] >= 80_000 && taken[1] >= 160_000, "{taken:?}");

    let is_worker = |thread: &&Thread| {
        let site = thread.role.checked_sub(1).and_then(|at| told.sites.get(at as usize));
        site.is_some_and(|site| site.name.starts_with("worker"))
    };
    let workers: Vec<_> = told.threads.iter().filter(is_worker).collect();
    assert_eq!(workers.len(), 6);
    for worker in workers {
        assert_eq!(worker.events.last().map(|event| event.what), Some(What::Ends));
    }
    let count = |wanted: fn(&What) -> bool| {
        let events = told.threads.iter().flat_map(|thread| &thread.events);
        events.filter(|event| wanted(&event.what)).count()
    };
    assert_eq!(count(|what| matches!(what, What::Creates { .. })), 6);
    assert_eq!(count(|what| matches!(what, What::Joined { .. })), 6);
    assert_eq!(count(|what| matches!(what, What::Notifies { all: true, .. })), 3);
    let kinds: Vec<LockKind> = told.locks.iter().map(|lock| lock.kind).collect();
    assert!(kinds.contains(&LockKind::Mutex) && kinds.contains(&LockKind::Condition));
    assert!(told.sites.iter().any(|site| site.name.starts_with("work+")), "{:?}", told.sites);
}

#[test]
fn what_each_thread_did_under_our_locks_is_told() {
    is_told("shfl-mutex");
}

#[test]
fn what_each_thread_did_under_the_c_librarys_locks_is_told() {
    is_told("glibc");
}

#[test]
fn a_trace_that_cannot_be_written_is_told_before_anything_runs() {
    let folder = Folder::new("record-nowhere");
    let path = folder.path("no/such/folder/x.trace");
    let failed = output(&["record", "--out", &path, "--", "touch", &folder.path("ran")]);
    assert_eq!(failed.status.code(), Some(125));
    assert!(stderr(&failed).contains(&path), "{}", stderr(&failed));
    assert!(!std::path::Path::new(&folder.path("ran")).exists());
}

#[test]
fn the_name_of_a_trace_is_that_of_the_program() {
    let folder = Folder::new("record-name");
    let mut command = crate::common::antiphon(&["record", "--", "true"]);
    let ran = command.current_dir(folder.path(".")).output().expect("runs");
    assert!(ran.status.success());
    let said = stderr(&ran);
    let name = said.lines().find_map(|line| line.strip_prefix("Trace: ")).expect("its name");
    let name = name.split(',').next().unwrap_or_default();
    assert!(name.starts_with("antiphon-true-") && name.ends_with(".trace"), "{said}");
    assert_eq!(read(&folder.path(name)).events(), 0);
}

#[test]
fn what_a_command_is_called_is_text() {
    let folder = Folder::new("record-text");
    let trace = folder.path("a\u{1b}[2Jb.trace");
    let ran = output(&["record", "--out", &trace, "--", "true", "\u{1b}]0;title\u{7}\u{202e}"]);
    let said = stderr(&ran);
    assert!(ran.status.success(), "{said}");
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{said:?}");
    assert!(said.contains(r"true '\u{1b}]0;title\u{7}\u{202e}'"), "{said}");
    assert!(said.contains(r"a\u{1b}[2Jb.trace, 0 events, "), "{said}");
}

/// More processes than there are chunks, each with its own lock, and none returns its chunk.
#[test]
fn short_programs_are_all_told_however_many() {
    const PROGRAMS: usize = 1500;
    let folder = Folder::new("record-many");
    let program = folder.compile("short.c", &[]);
    let trace = folder.path("out.trace");
    let script = format!("i=0; while [ $i -lt {PROGRAMS} ]; do {program}; i=$((i + 1)); done");
    let ran = output(&["record", "--out", &trace, "--", "sh", "-c", &script]);
    assert!(ran.status.success(), "{}", stderr(&ran));
    let told = read(&trace);
    assert_eq!((told.dropped, told.cut_off), (0, false));
    let took = |thread: &&Thread| is_consistent(thread, told.threads.len()) == 3;
    let processes: HashSet<u32> = told.threads.iter().filter(took).map(|one| one.process).collect();
    assert_eq!(processes.len(), PROGRAMS);
    assert!(told.locks.iter().all(|lock| lock.kind == LockKind::Mutex), "a table was full");
}
