//! The program that somebody wants to run under the preload library: where it is, and whether a
//! preloaded library can reach it.

mod elf;
mod reach;

pub use reach::obstacle;

use std::env;
use std::ffi::CString;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Why a program can't be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such file.
    NotFound(String),
    /// There is, but it can't be executed.
    CannotRun(String),
}

/// The file that `name` means, as a shell would find it.
///
/// # Errors
///
/// Why it can't be run, in one line.
pub fn find(name: &OsStr) -> Result<PathBuf, Refusal> {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        return runnable(Path::new(name)).map_err(|why| match why {
            None => Refusal::NotFound(format!("{shown}: no such file")),
            Some(why) => Refusal::CannotRun(format!("{shown}: {why}")),
        });
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut found = None;
    for folder in env::split_paths(&path).filter(|_| !name.is_empty()) {
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
fn runnable(path: &Path) -> Result<PathBuf, Option<&'static str>> {
    let about = path.metadata().map_err(|error| {
        (error.kind() == std::io::ErrorKind::PermissionDenied).then_some("permission denied")
    })?;
    if !about.is_file() {
        return Err(Some("not a file that can be executed"));
    }
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Some("not a file name"))?;
    // SAFETY: a string that ends in zero, alive for the call.
    if unsafe { libc::access(name.as_ptr(), libc::X_OK) } != 0 {
        return Err(Some("not executable; try chmod +x"));
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
