//! Requests to the library by the environment: to step aside, or to record.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use antiphon_record::{Kind, Recording, Row, Scope, Snapshot};
use support::{compile, preloaded, run, scratch, succeeds};

#[test]
fn disabled_it_is_the_c_library() {
    let directory = scratch("disabled");
    // The recursion count is at the C library's offset, and not at ours.
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
    // A file of the right length with other contents.
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
    record_output(directory, &mut preloaded(program), scope).0
}

/// Runs a command under a recording; returns the recording and the output of the command.
fn record_output(directory: &Path, command: &mut Command, scope: Scope) -> (Snapshot, String) {
    let path = directory.join("recording");
    let recording = match Recording::create(&path, scope) {
        Ok(recording) => recording,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let output = succeeds(command.env("ANTIPHON_RECORD", &path));
    assert!(output.stderr.is_empty());
    assert!(std::fs::remove_file(&path).is_ok());
    match recording.read() {
        Ok(snapshot) => (snapshot, String::from_utf8_lossy(&output.stdout).into_owned()),
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
        let module = site.and_then(|site| site.module.as_ref());
        let ours = module.is_some_and(|module| module.path.ends_with("recorded-c"));
        assert!(ours, "{site:?}");
        assert!(row.wait.count() == row.contended && row.contended <= row.acquisitions);
    }
    // The recursive mutex is always taken with the other one held.
    let edges: u64 = snapshot.edges.iter().map(|edge| edge.count).sum();
    assert_eq!(edges, 4000);
    assert!(snapshot.inversions().is_empty());
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
    let program = compile(&directory, "order.c");
    for lock in LOCKS {
        let mut command = preloaded(&program);
        command.env("ANTIPHON_LOCK", lock);
        let (snapshot, _) = record_output(&directory, &mut command, Scope::Full);
        // b → a; a → d and c → d; d → a.
        assert_eq!(snapshot.edges.len(), 4, "{lock}: {:?}", snapshot.edges);
        assert_eq!(snapshot.inversions().len(), 1, "{lock}: {:?}", snapshot.edges);
        assert_eq!(snapshot.depth().map(|(_, deepest)| deepest), Some(3));
        // Four times from no lock held: two, two, three, two.
        assert_eq!(snapshot.nests(), Some((9.0 / 4.0, 3)));
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn locks_that_cannot_be_stuck_raise_no_alarm_and_others_do() {
    let directory = scratch("orders");
    let program = compile(&directory, "orders.c");
    for lock in LOCKS {
        for (case, inversions) in
            [("reused", 0), ("guarded", 0), ("both", 1), ("ring", 1), ("seldom", 1)]
        {
            let mut command = preloaded(&program);
            command.env("ANTIPHON_LOCK", lock).arg(case);
            let (snapshot, _) = record_output(&directory, &mut command, Scope::Full);
            let found = snapshot.inversions();
            assert_eq!(found.len(), inversions, "{lock} {case}: {:?}", snapshot.edges);
            for cycle in found {
                assert_eq!(cycle.len(), if case == "ring" { 3 } else { 2 });
                let rows = cycle.iter().flat_map(|&edge| snapshot.edges[edge].rows);
                let sites: Vec<_> = rows.filter_map(|at| snapshot.rows[at?].site).collect();
                // The sites where each lock of each edge was taken, without duplicates.
                let mut apart = sites.clone();
                apart.sort_unstable();
                apart.dedup();
                assert_eq!((sites.len(), apart.len()), (2 * cycle.len(), sites.len()), "{case}");
            }
        }
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

const LOCKS: [&str; 2] = ["shfl-mutex", "glibc"];

/// The program's own counts of its acquisitions, by kind.
fn told(output: &str) -> BTreeMap<String, u64> {
    let mut told = BTreeMap::new();
    for line in output.lines() {
        let count = line.split_once(' ').and_then(|(kind, n)| Some((kind, n.parse::<u64>().ok()?)));
        let (kind, count) = count.unwrap_or_else(|| panic!("no count: {line}"));
        *told.entry(kind.to_owned()).or_default() += count;
    }
    told
}

/// Our locks and the C library's are recorded in the same way.
#[test]
fn every_kind_of_lock_is_counted_whoever_keeps_it() {
    let directory = scratch("observed");
    let program = compile(&directory, "observed.c");
    for lock in LOCKS {
        let mut command = preloaded(&program);
        command.env("ANTIPHON_LOCK", lock);
        let (snapshot, output) = record_output(&directory, &mut command, Scope::Full);
        // The program, a child that it forked, and itself executed by another child.
        assert_eq!((snapshot.started, snapshot.processes.len()), (2, 3), "{lock}");
        assert_eq!(snapshot.dropped, Default::default());
        let told = told(&output);
        assert_eq!(told.len(), 6, "{output}");
        for kind in [
            Kind::Mutex,
            Kind::Adaptive,
            Kind::Recursive,
            Kind::ErrorCheck,
            Kind::Foreign,
            Kind::Spin,
        ] {
            let sum = |of: fn(&Row) -> u64| rows_of(&snapshot, kind).map(of).sum::<u64>();
            let name = format!("{kind:?}");
            assert_eq!(sum(|row| row.acquisitions), told[&name], "{lock}: {name}");
            if matches!(kind, Kind::Foreign | Kind::Spin) {
                continue;
            }
            // Each thread that took the lock has released it, and one held it for 100 ms.
            assert_eq!(sum(|row| row.hold.count()), told[&name], "{lock}: {name}");
            let long = rows_of(&snapshot, kind).filter(|row| row.hold.max_ns >= 100_000_000);
            assert!(long.count() >= 3, "{lock}: {name}");
        }
        waits_by_site(&snapshot, lock);
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// Checks the waits that `observed.c` guarantees: three processes with a mutex of each kind.
fn waits_by_site(snapshot: &Snapshot, lock: &str) {
    const MUTEXES: [(Kind, u64); 5] = [
        (Kind::Mutex, 1),
        (Kind::Adaptive, 1),
        (Kind::Recursive, 1),
        (Kind::ErrorCheck, 1),
        (Kind::Foreign, 3),
    ];
    for (kind, mutexes) in MUTEXES {
        let rows = || rows_of(snapshot, kind);
        // One thread waits for 100 ms; it may lose its CPU before, but not for most of that.
        let long = rows().filter(|row| row.wait.max_ns >= 20_000_000).count() as u64;
        assert!(long >= 3 * mutexes, "{lock}: {kind:?}: {long}");
        // One thread reaches its deadline; a thread that is refused at once, or already owns the
        // lock, doesn't wait.
        assert_eq!(rows().map(|row| row.gave_up).sum::<u64>(), 3 * mutexes, "{lock}: {kind:?}");
        for row in rows() {
            assert_eq!(row.wait.count(), row.contended);
            let site = row.site.and_then(|at| snapshot.sites[at].module.as_ref());
            let ours = site.is_some_and(|module| module.path.ends_with("observed-c"));
            assert!(ours, "{site:?}");
        }
    }
    // At each condition one waiter is notified after 100 ms, and one is not.
    let conditions = || rows_of(snapshot, Kind::Condition);
    let longest = conditions().filter(|row| row.wait.max_ns >= 20_000_000).count();
    assert!(longest >= 2 * 3 * 7, "{lock}: {longest}");
    assert!(conditions().map(|row| row.gave_up).sum::<u64>() >= 3 * 7, "{lock}");
    // A row counts waits, or notifications.
    assert!(conditions().all(|row| row.acquisitions == 0 || row.contended == 0));
    assert!(conditions().all(|row| row.hold.is_empty()));
}

/// Readers-writer locks are recorded in the same way whether we or the C library keep them: three
/// of one process, one of several.
#[test]
fn readers_and_writers_are_counted_whoever_keeps_their_lock() {
    let directory = scratch("observed-rw");
    let program = compile(&directory, "observed_rw.c");
    for lock in LOCKS {
        let mut command = preloaded(&program);
        command.env("ANTIPHON_LOCK", lock);
        let (snapshot, output) = record_output(&directory, &mut command, Scope::Full);
        let told = told(&output);
        assert_eq!(told.len(), 4, "{output}");
        assert_eq!(snapshot.dropped, Default::default());
        assert_eq!(snapshot.locks.len(), 4, "a lock is one, however it is taken");
        assert!(snapshot.locks.iter().all(|lock| lock.kind == Kind::RwLock));
        for kind in [Kind::Read, Kind::Write] {
            let all = || snapshot.rows.iter().filter(|row| row.kind == kind);
            let rows = || all().filter(|row| row.refused == 0);
            // At each lock, a reader is there and a writer only tries.
            let refused = if kind == Kind::Write { 4 } else { 0 };
            assert_eq!(all().map(|row| row.refused).sum::<u64>(), refused, "{lock}: {kind:?}");
            let sum = |of: fn(&Row) -> u64| rows().map(of).sum::<u64>();
            let name = format!("{kind:?}");
            // Sites in the program: seven per mode for all locks, and some more.
            let places = if kind == Kind::Read { 4 * 7 + 7 } else { 4 * 7 + 2 };
            assert_eq!(rows().count(), places, "{lock}: {name}");
            assert_eq!(sum(|row| row.acquisitions), told[&name], "{lock}: {name}");
            let holds = sum(|row| row.hold.count());
            assert_eq!(holds, told[&format!("Own{name}")], "{lock}: {name}");
            // One thread per mode holds each lock for 100 ms, and one waits for it.
            let long = rows().filter(|row| row.hold.max_ns >= 100_000_000).count();
            assert_eq!(long, 3, "{lock}: {name}");
            let waited = rows().filter(|row| row.wait.max_ns >= 20_000_000).count();
            assert!(waited >= 4, "{lock}: {name}: {waited}");
            // A writer reaches its deadline, at each lock.
            let gave_up = if kind == Kind::Write { 4 } else { 0 };
            assert_eq!(sum(|row| row.gave_up), gave_up, "{lock}: {name}");
        }
        let blocked: u64 = snapshot.threads.iter().map(|thread| thread.blocked.rwlock_ns).sum();
        assert_eq!(blocked, snapshot.rows.iter().map(|row| row.wait.sum_ns).sum::<u64>());
        // Each of two locks is taken while the other is held; the first also twice. And a third
        // lock, and another at the address that it had.
        assert_eq!(snapshot.edges.len(), 4, "{lock}: {:?}", snapshot.edges);
        assert_eq!(snapshot.inversions().len(), 1, "{lock}: {:?}", snapshot.edges);
        assert_eq!(snapshot.depth().map(|(_, deepest)| deepest), Some(4), "{lock}");
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn a_wait_that_is_cancelled_ends_with_its_mutex() {
    let directory = scratch("cancelled");
    let program = compile(&directory, "cancel.c");
    for lock in LOCKS {
        let mut command = preloaded(&program);
        command.env("ANTIPHON_LOCK", lock);
        let (snapshot, _) = record_output(&directory, &mut command, Scope::Full);
        let of = |kind, of: fn(&Row) -> u64| rows_of(&snapshot, kind).map(of).sum::<u64>();
        assert!(of(Kind::Condition, |row| row.gave_up) > 0, "{lock}");
        let had = of(Kind::ErrorCheck, |row| row.acquisitions);
        assert_eq!(of(Kind::ErrorCheck, |row| row.hold.count()), had, "{lock}");
        assert!(snapshot.threads.iter().all(|thread| thread.waiting.is_none()), "{lock}");
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn the_c_librarys_locks_are_observed_where_that_is_asked_for_alone() {
    let directory = scratch("unobserved");
    let program = compile(&directory, "observed.c");
    let record = |scope, disable| {
        let mut command = preloaded(&program);
        command.arg("once").env("ANTIPHON_LOCK", "glibc").env("ANTIPHON_DISABLE", disable);
        record_output(&directory, &mut command, scope).0
    };
    let disabled = record(Scope::Full, "1");
    assert_eq!((disabled.started, disabled.processes.len(), disabled.rows.len()), (0, 0, 0));
    // A recording of waits doesn't cover them.
    let waits = record(Scope::Contended, "0");
    assert_eq!((waits.started, waits.rows.len()), (1, 0));
    assert!(!record(Scope::Full, "").rows.is_empty());
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn waiters_of_other_processes_are_told_from_those_of_a_parent() {
    let directory = scratch("strangers");
    let strangers = record(&directory, "strangers.c", Scope::Contended).strangers;
    assert_eq!((strangers.count, strangers.lock != 0), (2, true));
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn objects_that_find_the_c_library_first_are_counted() {
    let directory = scratch("bypass");
    assert_eq!(record(&directory, "bypass.c", Scope::Contended).bypasses, 2);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}
