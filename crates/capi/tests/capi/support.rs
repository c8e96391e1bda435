//! Helpers of the tests: an installed library, compiling with it, running with a time limit.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Time limit of a program, in seconds.
const LIMIT_S: &str = "300";

/// How a program gets the library.
#[derive(Clone, Copy, Debug)]
pub enum Linked {
    /// Linked at run time.
    Shared,
    /// The archive, in a program that loads the C library at run time.
    Archive,
    /// The archive, and the archive of the C library.
    Static,
}

/// Returns the directory of this crate.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the names of the headers with this extension.
pub fn headers(extension: &str) -> Vec<String> {
    let files = std::fs::read_dir(here().join("include")).expect("a directory");
    let names =
        files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.rsplit('.').next() == Some(extension)).collect()
}

/// Returns the prefix under which the library is installed for these tests.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = scratch("prefix");
        succeeds(xtask_install().arg("--prefix").arg(&prefix));
        prefix
    })
}

/// Returns the command `cargo xtask install`, which builds where these tests were built.
pub fn xtask_install() -> Command {
    let mut install = Command::new(env!("CARGO"));
    install.args(["run", "--quiet", "-p", "xtask", "--", "install"]);
    install.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."));
    install
}

/// Creates an empty directory for the files of a test.
pub fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capi-{name}"));
    if directory.exists() {
        assert!(std::fs::remove_dir_all(&directory).is_ok(), "{}", directory.display());
    }
    assert!(std::fs::create_dir_all(&directory).is_ok(), "{}", directory.display());
    directory
}

/// Returns the output of pkg-config for the arguments.
pub fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    let output = succeeds(command.args(arguments).arg("antiphon"));
    let answer = String::from_utf8(output.stdout).expect("flags are text");
    answer.split_whitespace().map(str::to_owned).collect()
}

/// Compiles a file of this crate to `program`, with strict warnings.
pub fn compile(file: &Path, linked: Linked, program: &Path) {
    let cpp = file.extension().is_some_and(|extension| extension == "cpp");
    let mut command = Command::new(if cpp { "g++" } else { "gcc" });
    command
        .arg(if cpp { "-std=c++17" } else { "-std=c99" })
        .args(["-O1", "-g", "-Wall", "-Wextra", "-pedantic", "-Werror", "-pthread"])
        .arg(here().join(file))
        .arg("-I")
        .arg(here().join("../preload/tests/c"));
    match linked {
        Linked::Shared => {
            command.args(pkg_config(&["--cflags", "--libs"]));
            command.arg(format!("-Wl,-rpath,{}", prefix().join("lib").display()));
        }
        Linked::Archive => {
            command.args(pkg_config(&["--cflags"])).arg(prefix().join("lib/libantiphon.a"));
        }
        Linked::Static => {
            command.arg("-static").args(pkg_config(&["--static", "--cflags", "--libs"]));
        }
    }
    succeeds(command.arg("-o").arg(program));
}

/// Runs a program with a time limit; it must exit with 0.
#[track_caller]
pub fn run(program: &Path, arguments: &[&Path]) -> Output {
    let mut command = Command::new("timeout");
    succeeds(command.args(["-k", "5", LIMIT_S]).arg(program).args(arguments))
}

/// Runs the command; it must exit with 0.
#[track_caller]
pub fn succeeds(command: &mut Command) -> Output {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?}: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}
