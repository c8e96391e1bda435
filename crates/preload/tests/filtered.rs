//! Programs that install a filter of system calls, or lose a privilege: their locks need only the
//! futex call.

mod support;

use antiphon_record::{Kind, Recording, Scope};
use support::{compile, plain, preloaded, scratch, succeeds};

const HOW: [&str; 8] =
    ["sync", "each", "busy", "before", "before-syscall", "strict", "no-counter", "no-files"];
const ACTIONS: [&str; 3] = ["kill", "trap", "errno"];
const LOCKS: [&str; 3] = ["", "shfl-mutex+light", "glibc"];

#[test]
fn locks_behind_a_filter_need_the_futex_alone() {
    let directory = scratch("filtered");
    let program = compile(&directory, "filtered.c");
    for how in HOW {
        for action in ACTIONS {
            succeeds(plain(&program).args([how, action]));
            for lock in LOCKS {
                let mut ours = preloaded(&program);
                let output = succeeds(ours.args([how, action]).env("ANTIPHON_LOCK", lock));
                assert!(output.stdout.is_empty() && output.stderr.is_empty());
            }
        }
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn what_happens_behind_a_filter_is_recorded() {
    let directory = scratch("filtered-recorded");
    let program = compile(&directory, "filtered.c");
    let path = directory.join("recording");
    let modes = [
        (Scope::Contended, &LOCKS[..1]),
        (Scope::Full, &LOCKS[..]),
        (Scope::Events, &[LOCKS[0], LOCKS[2]]),
    ];
    for (scope, locks) in modes {
        for how in ["sync", "before", "strict", "no-counter", "no-files"] {
            for &lock in locks {
                assert!(Recording::create(&path, scope).is_ok());
                let mut ours = preloaded(&program);
                ours.args([how, "kill"]).env("ANTIPHON_LOCK", lock).env("ANTIPHON_RECORD", &path);
                let output = succeeds(&mut ours);
                assert!(output.stdout.is_empty() && output.stderr.is_empty());
                let seen = Recording::open(&path).and_then(|recording| recording.read());
                let seen = seen.expect("it was written");
                // The child of a fork behind it, too.
                let processes = if how == "before" { 2 } else { 1 };
                assert!(seen.processes.len() <= processes, "{scope:?} {how} {lock}");
                let had = |kind| seen.rows.iter().any(|row| row.kind == kind && row.contended > 0);
                assert_eq!(had(Kind::Mutex), how != "strict", "{scope:?} {how} {lock}");
                assert!(std::fs::remove_file(&path).is_ok());
            }
        }
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}
