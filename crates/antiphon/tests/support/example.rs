//! Runs examples, as users do.
//!
//! `cargo test` builds them with the tests. If it builds a single test, they may be missing, or
//! outdated.

#![allow(dead_code, reason = "each test file is a program of its own and uses a part")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Longer than any example takes, even on a busy machine.
const LONG_S: &str = "300";

/// Returns the file of the example, if it exists.
pub fn program(name: &str) -> Option<PathBuf> {
    let here = env::current_exe().expect("a test has a file");
    // Beside `deps`.
    let program = here.parent().and_then(Path::parent).expect("two folders").join("examples");
    let (program, package) = (program.join(name), env!("CARGO_PKG_NAME"));
    if !program.is_file() {
        println!("skipped: no example {name} here; cargo test -p {package} --examples builds it");
        return None;
    }
    Some(program)
}

/// Returns a command that runs the example, if it exists.
pub fn example(name: &str) -> Option<Command> {
    let mut command = Command::new("timeout");
    command.arg(LONG_S).arg(program(name)?).stdin(Stdio::null());
    Some(command)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is UTF-8")
}

/// Runs the example, which must succeed, and returns its stdout; `None` if it does not exist.
pub fn succeeds(name: &str, arguments: &[&str]) -> Option<String> {
    let done = example(name)?.args(arguments).output().expect("timeout runs it");
    let Output { status, stdout, stderr } = done;
    assert!(status.success(), "{name} {arguments:?}: {status}: {}", text(&stderr));
    Some(text(&stdout))
}

/// Checks that the example ends with that exit code, and one line that contains the hint.
pub fn refuses(name: &str, arguments: &[&str], code: i32, hint: &str) {
    let Some(mut command) = example(name) else { return };
    let done = command.args(arguments).output().expect("timeout runs it");
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(code), "{name} {arguments:?}: {said}");
    assert!(said.contains(hint) && said.lines().count() == 1, "{name} {arguments:?}: {said}");
}
