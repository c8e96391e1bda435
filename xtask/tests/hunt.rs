//! `cargo xtask hunt` finds a hang where there is one, and none where there is none.
//!
//! The hunter is on trial here, not our locks: it has the C library's, whole or damaged.

use std::path::Path;
use std::process::{Command, Output};

fn hunt(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("hunt")
        .args(arguments)
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

#[test]
fn a_deadlock_is_found_and_dumped() {
    let output = hunt(&["--deadlock", "--patience", "1"]);
    let (said, dump) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{dump}");
    assert!(said.contains("a hang: no worker gets on; see "), "{said}");
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
