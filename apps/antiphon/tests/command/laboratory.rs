//! The verbs of the laboratory: found beside the command or in `PATH`, or an explanation.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::{Folder, PROGRAM, stderr};

/// Held while a program is written, and while one is started. A child has all open files of this
/// process until it executes its program; and a program that any process has open for writing can't
/// be started.
fn programs() -> MutexGuard<'static, ()> {
    static PROGRAMS: Mutex<()> = Mutex::new(());
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The command in a private folder without a laboratory.
struct Alone(Folder);

impl Alone {
    fn new(test: &str) -> Self {
        let folder = Folder::new(test);
        fs::create_dir(folder.path("bin")).expect("a folder");
        fs::create_dir(folder.path("path")).expect("a folder");
        let _held = programs();
        fs::copy(PROGRAM, folder.path("bin/antiphon")).expect("the command");
        Self(folder)
    }

    /// Installs a laboratory in this folder that runs a script.
    fn laboratory(&self, folder: &str, script: &str) {
        let path = self.0.path(&format!("{folder}/antiphon-lab"));
        let _held = programs();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.0.path("bin/antiphon"));
        let path = format!("{}:/usr/bin:/bin", self.0.path("path"));
        command.args(arguments).env("PATH", path).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let held = programs();
        let child = command.spawn().expect("the command starts");
        drop(held);
        child.wait_with_output().expect("its output")
    }
}

#[test]
fn without_a_laboratory_its_verbs_say_how_to_get_it() {
    let alone = Alone::new("laboratory-none");
    for arguments in [
        &["bench", "locks"][..],
        &["sim", "machines"],
        &["validate", "--help"],
        &["help", "lab"],
        &["locks", "--measure"],
    ] {
        let output = alone.output(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(69), "{arguments:?}: {said}");
        assert_eq!((said.lines().count(), output.stdout.len()), (1, 0), "{arguments:?}: {said}");
        assert!(said.contains("cargo install --path apps/lab"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_laboratory_is_found_beside_the_command_before_that_in_the_path() {
    let alone = Alone::new("laboratory-places");
    alone.laboratory("path", "echo in PATH");
    assert_eq!(alone.output(&["bench"]).stdout, b"in PATH\n");
    alone.laboratory("bin", "echo beside");
    assert_eq!(alone.output(&["bench"]).stdout, b"beside\n");
}

#[test]
fn arguments_go_to_it_as_they_are_and_how_it_ends_is_how_the_command_ends() {
    let alone = Alone::new("laboratory-passes");
    alone.laboratory("bin", "printf '<%s>' \"$@\"; echo no >&2; exit 3");
    let output = alone.output(&["bench", "--help", "", "a b", "--", "-x"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "<bench><--help><><a b><--><-x>");
    assert_eq!((output.status.code(), stderr(&output)), (Some(3), "no\n".to_owned()));
    alone.laboratory("bin", "kill -TERM $$");
    assert_eq!(alone.output(&["sim"]).status.signal(), Some(libc::SIGTERM));
}

#[test]
fn locks_has_it_measure_and_passes_its_failure_on() {
    let alone = Alone::new("laboratory-locks");
    let measure = ["locks", "--measure", "--seconds", "0.25", "--repetitions", "3", "--json"];
    alone.laboratory("bin", "echo \"$*\" >&2; exit 69");
    let output = alone.output(&measure);
    let said = stderr(&output);
    assert_eq!((output.status.code(), &*said), (Some(69), "__survey 0.25 3\n"));
    alone.laboratory("bin", "echo nothing");
    let output = alone.output(&measure);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("antiphon: the rows of antiphon-lab: "), "{said}");
}
