//! The script for gdb, on programs whose threads wait in queues.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Folder, output, skipped};

/// The output of gdb for `program`, with these commands where it calls `function`. `None` if gdb is
/// missing, or may not debug.
fn at(
    folder: &Folder,
    program: &[&str],
    environment: &str,
    function: &str,
    commands: &[&str],
) -> Option<String> {
    let script = folder.path("antiphon.py");
    let printed = output(&["locks", "--gdb"]);
    assert!(printed.status.success());
    std::fs::write(&script, printed.stdout).expect("a script");
    let mut gdb = Command::new("timeout");
    gdb.args(["-k", "5", "120", "gdb", "-batch", "-nx", "-x", &script]);
    let wrapper = format!("set exec-wrapper env {environment}");
    let place = format!("break {function}");
    let before = [wrapper.as_str(), "set breakpoint pending on", &place, "run"];
    for command in before.iter().chain(commands).chain(&["kill"]) {
        gdb.args(["-ex", command]);
    }
    let done = gdb.arg("--args").args(program).output().expect("timeout starts");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.code() == Some(127) || said.contains("ptrace: Operation not permitted") {
        skipped("no gdb that may run programs");
        return None;
    }
    Some(String::from_utf8_lossy(&done.stdout).into_owned() + &said)
}

/// Tries again if a thread was caught on its way to sleep: threads wake up now and then.
fn with_all_asleep(mut run: impl FnMut() -> Option<String>) -> Option<String> {
    let mut said = run()?;
    for _ in 0..4 {
        if !said.contains("thread not known") {
            break;
        }
        said = run()?;
    }
    Some(said)
}

/// The path of the preload library, as the command unpacks it.
fn library() -> String {
    let shown = output(&["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
    String::from_utf8_lossy(&shown.stdout).trim().split(':').next().expect("a path").to_owned()
}

/// The first `count` lines from the line that starts with `begin`.
#[track_caller]
fn lines<'a>(said: &'a str, begin: &str, count: usize) -> Vec<&'a str> {
    let found = said.lines().skip_while(|line| !line.starts_with(begin));
    let found: Vec<_> = found.take(count).collect();
    assert_eq!(found.len(), count, "{begin}: {said}");
    found
}

#[test]
fn a_pthread_mutex_shows_its_owner_and_its_queue() {
    let folder = Folder::new("gdb-pthread");
    let flags = ["-g", "-O1", "-pthread"];
    let program = folder.compile_as("parked", "cc", "parked.c", &flags);
    // `$LIB` is for the loader: no shell may expand it.
    let environment = format!("'LD_PRELOAD={}'", library());
    let commands = [
        "antiphon mutex contended",
        "antiphon mutex &recursive",
        "antiphon mutex unused",
        "antiphon spin spin",
        "antiphon threads",
        "print contended",
        "print unused",
        "print glibcs",
        "antiphon mutex glibcs",
        "antiphon mutex 0",
        "antiphon mutex no_such",
    ];
    let run = || at(&folder, &[&program], &environment, "all_wait", &commands);
    let Some(said) = with_all_asleep(run) else { return };
    let queue = lines(&said, "pthread mutex (normal): held by thread 1 (parked), LWP ", 5);
    assert!(queue[0].ends_with(", 3 threads wait"), "{said}");
    assert_eq!(queue[1].trim(), "the release wakes the head");
    for (place, name) in ["first", "second", "third"].iter().enumerate() {
        let line = queue[2 + place];
        assert!(line.contains(&format!("{}. thread {} ({name})", place + 1, place + 2)), "{said}");
        assert!(line.ends_with("sleeps") && line.contains(", head") == (place == 0), "{said}");
    }
    let recursive = lines(&said, "pthread mutex (recursive): held by thread 1 ", 1);
    assert!(recursive[0].ends_with(", 2 times"), "{said}");
    assert!(said.contains("\npthread mutex (normal): free\n"), "{said}");
    assert!(said.contains("pthread spinlock: held"), "{said}");
    assert!(lines(&said, "thread 2 (first)", 3)[2].starts_with("thread 4 (third)"), "{said}");
    assert!(lines(&said, "$1 = ", 1)[0].ends_with(", 3 threads wait"), "{said}");
    assert_eq!(lines(&said, "$2 = ", 1), ["$2 = pthread mutex (normal): free"]);
    // A lock of glibc is shown as gdb itself does.
    assert!(lines(&said, "$3 = ", 1)[0].contains("__kind = 128"), "{said}");
    assert!(said.contains("glibc keeps this lock"), "{said}");
    assert!(said.contains("Cannot access memory") && said.contains("No symbol"), "{said}");
    // Without the library, all locks are glibc's.
    let commands = ["antiphon mutex contended", "antiphon threads", "print contended"];
    let said = at(&folder, &[&program], "LC_ALL=C", "wait_in_line", &commands).unwrap_or_default();
    assert!(said.contains("glibc keeps this lock"), "{said}");
    assert!(said.contains("no thread sleeps in a queue"), "{said}");
    assert!(lines(&said, "$1 = ", 1)[0].contains("__owner = "), "{said}");
}

/// The example `locked`, with the names and types of its statics. The profile omits those from the
/// debug information, so the example is built once more.
fn rust_program() -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let full = ["antiphon", "antiphon-linux", "antiphon-platform", "antiphon-sync"]
        .map(|package| format!("--config=profile.dev.package.{package}.debug='full'"));
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--package=antiphon", "--example=locked"])
        // Not built, but named so that dependencies have the same features as here.
        .args(["--package=antiphon-cli", "--package=antiphon-lab"])
        .args(full)
        .arg("--target-dir")
        .arg(&target)
        .status();
    assert!(built.is_ok_and(|status| status.success()), "the example does not build");
    target.join("debug/examples/locked").display().to_string()
}

#[test]
fn locks_of_rust_programs_show_what_they_guard_and_who_waits() {
    let folder = Folder::new("gdb-rust");
    let program = rust_program();
    let commands = [
        "antiphon mutex locked::NUMBER",
        "antiphon rwlock locked::TABLE",
        "print locked::NUMBER",
        "print locked::TABLE",
    ];
    let run = || at(&folder, &[&program], "LC_ALL=C", "all_rust_threads_wait", &commands);
    let Some(said) = with_all_asleep(run) else { return };
    let number = lines(&said, "antiphon::Mutex: held, 1 thread waits", 3);
    assert!(number[2].contains("1. thread ") && number[2].ends_with("head, sleeps"), "{said}");
    let table = lines(&said, "antiphon::RwLock: held by 2 readers, 2 threads wait", 5);
    let queue: Vec<_> = table.iter().filter(|line| line.contains(". thread ")).collect();
    assert!(queue.len() == 2 && queue[0].contains(" to write, "), "{said}");
    assert!(queue[1].contains(" to read, "), "{said}");
    assert!(lines(&said, "$1 = antiphon::Mutex: held, 1 thread waits", 1)[0].contains("4711"));
    assert!(lines(&said, "$2 = antiphon::RwLock: held by 2 readers", 1)[0].contains("12"));
}
