//! The program that a user wants to run under the preload library: where it is, and whether a
//! preloaded library can reach it.

mod elf;
mod reach;

pub use reach::{Obstacle, interpreter, loader, obstacle, obstacle_for};

use std::env;
use std::ffi::CString;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Why a program can't be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such file.
    NotFound(String),
    /// The file exists, but it can't be executed.
    CannotRun(String),
    /// A limit leaves no room for one more process.
    NoRoom(String),
}

impl Refusal {
    /// The reason, in one line.
    pub fn why(self) -> String {
        match self {
            Self::NotFound(why) | Self::CannotRun(why) | Self::NoRoom(why) => why,
        }
    }

    /// The kernel's refusal to start the file `program`, which the user called `name`.
    pub fn of(name: &OsStr, program: &Path, error: &io::Error) -> Self {
        let name = name.to_string_lossy();
        let no_room =
            |limit: &str| Self::NoRoom(format!("{name} was not started: {limit}; raise the limit"));
        match (error.raw_os_error(), reach::loader(program)) {
            (Some(libc::ENOENT), Some(loader)) if !loader.exists() => {
                Self::NotFound(format!("{name}: its interpreter is missing: {}", loader.display()))
            }
            (Some(libc::ENOEXEC), _) if reach::is_elf(program) => Self::CannotRun(format!(
                "{name}: a program for another kind of CPU, or a damaged one"
            )),
            (Some(libc::ENOEXEC), _) => Self::CannotRun(format!(
                "{name}: not a program, nor a script that names its interpreter; begin it with a \
                line such as #!/bin/sh"
            )),
            (Some(libc::ENOENT), _) => Self::NotFound(format!("{name}: {}", words(error))),
            (Some(libc::EAGAIN), _) => {
                no_room("no process may be added (ulimit -u, or pids.max of the control group)")
            }
            (Some(libc::ENOMEM), _) => no_room("not enough memory for one more process"),
            _ => Self::CannotRun(format!("{name}: {}", words(error))),
        }
    }
}

/// The system's error message, without the number of the error.
fn words(error: &io::Error) -> String {
    let words = error.to_string();
    let end = words.find(" (os error").unwrap_or(words.len());
    words[..end].to_lowercase()
}

/// Finds the file for `name` as a shell would.
///
/// # Errors
///
/// Why it can't be run, in one line.
pub fn find(name: &OsStr) -> Result<PathBuf, Refusal> {
    let shown = name.to_string_lossy();
    if name.is_empty() {
        return Err(Refusal::NotFound("CMD is empty; name a program".to_owned()));
    }
    if name.as_bytes().contains(&b'/') {
        return runnable(Path::new(name)).map_err(|why| match why {
            None => Refusal::NotFound(format!("{shown}: no such file")),
            Some(why) => Refusal::CannotRun(format!("{shown}: {why}")),
        });
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut found = None;
    for folder in env::split_paths(&path) {
        match runnable(&folder.join(name)) {
            Ok(path) => return Ok(path),
            Err(Some(why)) => found = Some(format!("{}: {why}", folder.join(name).display())),
            Err(None) => {}
        }
    }
    Err(match found {
        Some(why) => Refusal::CannotRun(why),
        None => Refusal::NotFound(format!("{shown}: no such program in PATH")),
    })
}

/// `Err(None)` if there is no such file, `Err(Some(why))` if it can't be executed.
fn runnable(path: &Path) -> Result<PathBuf, Option<String>> {
    let is_missing =
        |error: &io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    let about = path.metadata().map_err(|error| (!is_missing(&error)).then(|| words(&error)))?;
    if about.is_dir() {
        return Err(Some("a directory, not a program".to_owned()));
    }
    if !about.is_file() {
        return Err(Some("not a file that can be executed".to_owned()));
    }
    let name = path.as_os_str().as_bytes();
    let name = CString::new(name).map_err(|_| Some("not a file name".to_owned()))?;
    // SAFETY: `name` ends in zero and lives for the call.
    if unsafe { libc::access(name.as_ptr(), libc::X_OK) } != 0 {
        return Err(Some("not executable; try chmod +x".to_owned()));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find(OsStr::new("sh")).is_ok_and(|path| path.is_absolute()));
        assert!(find(OsStr::new("/bin/sh")).is_ok());
        assert!(matches!(find(OsStr::new("no-such-program-here")), Err(Refusal::NotFound(_))));
        assert!(matches!(find(OsStr::new("")), Err(Refusal::NotFound(_))));
        assert!(matches!(find(OsStr::new("/no/such/program")), Err(Refusal::NotFound(_))));
        assert!(matches!(find(OsStr::new("/etc/passwd")), Err(Refusal::CannotRun(_))));
        assert!(matches!(find(OsStr::new("/etc")), Err(Refusal::CannotRun(_))));
    }
}
