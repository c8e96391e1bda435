//! What the environment asks of the library: to step aside, or to record.

mod support;

use std::path::Path;

use antiphon_record::{Kind, Recording, Row, Scope, Snapshot};
use support::{compile, preloaded, run, scratch, succeeds};

#[test]
fn disabled_it_is_the_c_library() {
    let directory = scratch("disabled");
    // The recursion count stands where the C library keeps it, and not where we do.
    let program = compile(&directory, "mutex.c");
    succeeds(preloaded(&program).arg("4").env("ANTIPHON_DISABLE", "1"));
    let not_so = run(preloaded(&program).arg("12").env("ANTIPHON_DISABLE", "1"));
    assert!(!not_so.status.success());
    succeeds(preloaded(&program).arg("12").env("ANTIPHON_DISABLE", "0"));
    for file in ["cond.c", "spin.c", "cancel.c", "fork.c", "edges.c", "std.cpp"] {
        let program = compile(&directory, file);
        let output = succeeds(preloaded(program).env("ANTIPHON_DISABLE", "1"));
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn silent_whatever_the_environment_says() {
    for (name, value) in [
        ("ANTIPHON_RECORD", "/no such file"),
        ("ANTIPHON_RECORD", "/proc/self/exe"),
        ("ANTIPHON_RECORD", ""),
        ("ANTIPHON_DISABLE", "1"),
        ("ANTIPHON_DISABLE", "nonsense"),
    ] {
        let output =
            succeeds(preloaded("sh").args(["-c", "true | cat; exec echo words"]).env(name, value));
        assert_eq!(
            (output.stdout.as_slice(), output.stderr.as_slice()),
            (&b"words\n"[..], &b""[..])
        );
    }
    // A file of the right length with something else in it.
    let directory = scratch("silent");
    let path = directory.join("recording");
    let made =
        std::fs::File::create(&path).and_then(|file| file.set_len(antiphon_record::FILE_BYTES));
    assert!(made.is_ok());
    let output = succeeds(preloaded("echo").arg("words").env("ANTIPHON_RECORD", &path));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"words\n"[..], &b""[..]));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// Runs a program under a recording, and reads it.
fn record(directory: &Path, file: &str, scope: Scope) -> Snapshot {
    record_program(directory, &compile(directory, file), scope)
}

fn record_program(directory: &Path, program: &Path, scope: Scope) -> Snapshot {
    let path = directory.join("recording");
    let recording = match Recording::create(&path, scope) {
        Ok(recording) => recording,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    succeeds(preloaded(program).env("ANTIPHON_RECORD", &path));
    assert!(std::fs::remove_file(&path).is_ok());
    match recording.read() {
        Ok(snapshot) => snapshot,
        Err(error) => panic!("{error}"),
    }
}

fn rows_of(snapshot: &Snapshot, kind: Kind) -> impl Iterator<Item = &Row> {
    snapshot.rows.iter().filter(move |row| snapshot.locks[row.lock].kind == kind)
}

#[test]
fn a_full_recording_counts_every_acquisition() {
    let directory = scratch("full");
    let snapshot = record(&directory, "recorded.c", Scope::Full);
    let of = |kind| rows_of(&snapshot, kind);
    // 4 threads × 1000 rounds; both sites are in one function of the program itself.
    let mutexes: u64 = of(Kind::Mutex).map(|row| row.acquisitions).sum();
    let recursive: u64 = of(Kind::Recursive).map(|row| row.acquisitions).sum();
    // Each wait for the condition locks the mutex once more.
    assert!((4000..4000 + 200).contains(&mutexes), "{mutexes}");
    assert_eq!(recursive, 4000);
    let holds: u64 = of(Kind::Mutex).map(|row| row.hold.count()).sum();
    assert_eq!(holds, mutexes);
    for row in of(Kind::Mutex).chain(of(Kind::Recursive)) {
        let site = row.site.map(|at| &snapshot.sites[at]);
        let module = site.and_then(|site| site.module.as_deref()).unwrap_or("");
        assert!(module.ends_with("recorded-c"), "{site:?}");
        assert!(row.wait.count() == row.contended && row.contended <= row.acquisitions);
    }
    // The recursive mutex is always taken with the other one held.
    let edges: u64 = snapshot.edges.iter().map(|edge| edge.count).sum();
    assert_eq!(edges, 4000);
    assert_eq!(snapshot.inversions(), []);
    assert_eq!(snapshot.depth().map(|(_, deepest)| deepest), Some(2));
    assert_eq!(snapshot.dropped, Default::default());
    let acquisitions: u64 = snapshot.threads.iter().map(|thread| thread.acquisitions).sum();
    assert_eq!(acquisitions, mutexes + recursive);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn waits_are_recorded_with_who_waited_and_in_which_process() {
    let directory = scratch("waits");
    let snapshot = record(&directory, "recorded.c", Scope::Contended);
    let of = |kind| rows_of(&snapshot, kind);
    // The program makes one thread wait for the mutex for 200 ms and one for the condition for
    // 300 ms, in itself and in a child. A thread that is about to wait may lose its CPU before, but
    // not for most of that.
    assert_eq!(snapshot.processes.len(), 2);
    let child = snapshot.processes.iter().find(|process| process.parent.is_some());
    assert_eq!(
        child.and_then(|child| child.parent).map(|at| snapshot.processes[at].parent),
        Some(None)
    );
    for process in 0..2 {
        for kind in [Kind::Mutex, Kind::Condition] {
            let waits = of(kind).filter(|row| snapshot.locks[row.lock].process == process);
            let longest = waits.map(|row| row.wait.max_ns).max();
            assert!(longest.is_some_and(|ns| ns >= 30_000_000), "{process} {kind:?} {longest:?}");
        }
    }
    let blocked: u64 = snapshot.threads.iter().map(|thread| thread.blocked.mutex_ns).sum();
    let waited: u64 = of(Kind::Mutex).chain(of(Kind::Recursive)).map(|row| row.wait.sum_ns).sum();
    assert_eq!(blocked, waited);
    assert!(snapshot.threads.iter().all(|thread| thread.waiting.is_none()));
    assert_eq!((snapshot.edges.len(), snapshot.depth()), (0, None));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn a_program_that_never_waits_is_in_the_recording() {
    let directory = scratch("idle");
    let snapshot = record_program(&directory, Path::new("true"), Scope::Contended);
    assert_eq!((snapshot.started, snapshot.processes.len(), snapshot.rows.len()), (1, 1, 0));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn a_lock_that_is_only_tried_comes_after_none_and_before_others() {
    let directory = scratch("order");
    let snapshot = record(&directory, "order.c", Scope::Full);
    // b → a; a → d and c → d; d → a.
    assert_eq!(snapshot.edges.len(), 4, "{:?}", snapshot.edges);
    assert_eq!(snapshot.inversions().len(), 1, "{:?}", snapshot.edges);
    assert_eq!(snapshot.depth().map(|(_, deepest)| deepest), Some(3));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn waiters_of_other_processes_are_told_from_those_of_a_parent() {
    let directory = scratch("strangers");
    let strangers = record(&directory, "strangers.c", Scope::Contended).strangers;
    assert_eq!((strangers.count, strangers.lock != 0), (1, true));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn objects_that_find_the_c_library_first_are_counted() {
    let directory = scratch("bypass");
    assert_eq!(record(&directory, "bypass.c", Scope::Contended).bypasses, 2);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}
