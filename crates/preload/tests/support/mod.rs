//! Common parts of the tests: the library as it is shipped, C programs, and running either with a
//! limit.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Time limit of a program, in seconds.
const LIMIT_S: &str = "600";

/// The library, built as it is shipped.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build(&[], &target()))
}

/// The library, built so that it can simulate a machine with more CPUs. `ANTIPHON_PRETEND`
/// describes the machine, as in `pretend.rs` of the Linux platform.
pub fn pretending() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build(&["--features", "pretend"], &target().join("pretending")))
}

/// Builds the library with these arguments for Cargo, and its dependencies, in `directory`.
fn build(arguments: &[&str], directory: &Path) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "antiphon-preload", "--profile", "preload"])
        .args(arguments)
        .arg("--target-dir")
        .arg(directory)
        .status();
    assert!(built.is_ok_and(|status| status.success()), "the library does not build");
    directory.join("preload/libantiphon_preload.so")
}

/// The directory in which this test program was built.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("..")
}

/// A directory for the files of a test.
pub fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("preload-{name}-{}", std::process::id()));
    assert!(std::fs::create_dir_all(&directory).is_ok(), "{}", directory.display());
    directory
}

/// Compiles the C or C++ file of that name to a program in `directory`.
pub fn compile(directory: &Path, file: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let compiler = if file.ends_with("pp") { "g++" } else { "gcc" };
    let compile = |arguments: &[&OsStr]| {
        let status = Command::new(compiler)
            .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(arguments)
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{file} does not compile");
    };
    let early = directory.join("libearly.so");
    if compiler == "gcc" && !early.exists() {
        let source = sources.join("early.c");
        compile(&[
            "-shared".as_ref(),
            "-fPIC".as_ref(),
            source.as_ref(),
            "-o".as_ref(),
            early.as_ref(),
        ]);
    }
    let program = directory.join(file.replace('.', "-"));
    let mut arguments: Vec<&OsStr> = Vec::new();
    let source = sources.join(file);
    arguments.extend([source.as_os_str(), "-o".as_ref(), program.as_ref()]);
    let path = format!("-Wl,-rpath,{}", directory.display());
    if ["fork.c", "edges.c"].contains(&file) {
        arguments.extend([early.as_os_str(), path.as_ref()]);
    }
    compile(&arguments);
    program
}

/// A command with the library preloaded, which is killed when it takes too long.
pub fn preloaded(program: impl AsRef<OsStr>) -> Command {
    preloaded_into(library(), program)
}

/// [`preloaded`] with another build of the library.
pub fn preloaded_into(library: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut preload = std::ffi::OsString::from("LD_PRELOAD=");
    preload.push(library);
    let mut command = Command::new("timeout");
    command.args(["-k", "5", LIMIT_S, "env"]).arg(preload).arg(program);
    command
}

/// A command without the library, which is killed when it takes too long.
pub fn plain(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", LIMIT_S]).arg(program);
    command
}

/// Runs the command to its end.
pub fn run(command: &mut Command) -> Output {
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// Runs the command and fails unless it ends with 0.
#[track_caller]
pub fn succeeds(command: &mut Command) -> Output {
    let output = run(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

/// Returns whether a program is installed. If not, prints that, past the capture of the test
/// harness.
pub fn installed(program: &str) -> bool {
    let found = Command::new("which").arg(program).output().is_ok_and(|out| out.status.success());
    if !found {
        skipped(&format!("{program} is missing"));
    }
    found
}

/// Prints that a test did not run, and why.
pub fn skipped(why: &str) {
    let said = writeln!(io::stderr(), "skipped: {why}");
    assert!(said.is_ok());
}
