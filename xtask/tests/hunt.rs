//! `cargo xtask hunt` finds a hang where there is one, and none where there is none.
//!
//! The hunter is on trial here, not our locks: it has the C library's, whole or damaged.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn hunter(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("hunt").args(arguments).env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"));
    command
}

fn hunt(arguments: &[&str]) -> Output {
    hunter(arguments).output().unwrap()
}

#[test]
fn a_deadlock_is_found_and_dumped() {
    let output = hunt(&["--deadlock", "--patience", "1"]);
    let (said, dump) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{dump}");
    assert!(said.contains("a hang: no worker makes progress; see "), "{said}");
    // The two mutexes, and the threads that wait for them.
    assert_eq!(dump.matches("Mutex at 0x").count(), 2, "{dump}");
    assert_eq!(dump.matches("Locker, 0 done").count(), 2, "{dump}");
    assert!(dump.matches("/wchan: ").count() >= 3, "{dump}");
}

#[test]
fn a_program_without_a_fault_passes_and_leaves_nothing() {
    let output = hunt(&["--control", "--seconds", "4"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(said.starts_with("Hunt: ") && !said.contains(" 0 runs"), "{said}");
    assert!(!said.contains(" 0 operations"), "{said}");
}

#[test]
fn a_hunter_that_was_stopped_hunts_for_as_long_as_it_was_to() {
    let mut hunter = hunter(&["--control", "--seconds", "4"]).spawn().unwrap();
    let process = hunter.id();
    let children = format!("/proc/{process}/task/{process}/children");
    // Not before it hunts: the compiler is its child, too.
    let hunts = || {
        let children = std::fs::read_to_string(&children).unwrap();
        children.split_whitespace().any(|child| {
            let name = std::fs::read_to_string(format!("/proc/{child}/comm"));
            name.is_ok_and(|name| name == "hunt\n")
        })
    };
    while !hunts() {
        assert!(hunter.try_wait().unwrap().is_none(), "it ends before it hunts");
        std::thread::sleep(Duration::from_millis(5));
    }
    let start = Instant::now();
    signal("STOP", process);
    std::thread::sleep(Duration::from_secs(4));
    signal("CONT", process);
    assert!(hunter.wait().unwrap().success());
    // At most one second of the stop counts as time hunted. So three seconds are left to hunt, less
    // the time before the stop.
    assert!(start.elapsed() > Duration::from_secs(5), "{:?}", start.elapsed());
}

fn signal(name: &str, process: u32) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status();
    assert!(status.is_ok_and(|status| status.success()));
}

#[test]
fn a_lost_notification_is_found() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("liblossy.so");
    let status = Command::new("gcc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(here.join("tests/hunt/lossy.c"))
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    // A patience that is short, but long against a wake-up; and time for a scenario with waits.
    let library = library.to_str().unwrap();
    let output = hunt(&["--library", library, "--patience", "2", "--seconds", "60"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("a hang: "), "{said}");
    assert!(!said.contains("without a library"), "{said}");
}
