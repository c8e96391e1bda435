//! A temporary file that gets its final name when it is complete.
//!
//! | what ends this process before that | what removes the file |
//! |---|---|
//! | SIGHUP, SIGINT, SIGTERM | the process, in its signal handler |
//! | anything else | the next process that makes a file in the same folder: the lock is free |

use std::ffi::{CString, OsStr};
use std::fs::{self, DirEntry, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The signals that ask a process to end.
const ENDS: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// Path of the temporary file, for the signal handler.
static PATH: AtomicPtr<libc::c_char> = AtomicPtr::new(null_mut());

/// A temporary file, which is removed when this is dropped.
pub struct Unfinished {
    path: PathBuf,
    /// Held for as long as the file is written.
    _lock: File,
    /// Previous actions of the signals.
    before: [libc::sighandler_t; ENDS.len()],
}

impl Unfinished {
    /// Makes an empty file in this folder, to be named `name`, and removes the files that ended
    /// processes have left there. Only one may exist at a time.
    ///
    /// # Errors
    ///
    /// If the file can't be made.
    pub fn begin(folder: &Path, name: &str) -> io::Result<Self> {
        sweep(folder);
        let path = folder.join(format!(".{}-{name}", std::process::id()));
        let lock = locked(&path)?;
        let name = CString::new(path.as_os_str().as_bytes())?;
        // The path is leaked, because a handler may be reading it. Release: publishes it; pairs
        // with the handler's Acquire.
        PATH.store(name.into_raw(), Release);
        let before = ENDS.map(|signal| {
            let remove: extern "C" fn(libc::c_int) = remove;
            // SAFETY: the handler calls only async-signal-safe functions.
            let before = unsafe { libc::signal(signal, remove as *const () as usize) };
            if before == libc::SIG_IGN {
                // The process that started this one wants it to ignore the signal, as `nohup` does.
                // SAFETY: restores the previous action.
                unsafe { libc::signal(signal, before) };
            }
            before
        });
        Ok(Self { path, _lock: lock, before })
    }

    /// Returns the path of the file until it is complete.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the complete file its final name.
    ///
    /// # Errors
    ///
    /// If it can't be renamed.
    pub fn finish(self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for (signal, before) in ENDS.into_iter().zip(self.before) {
            // SAFETY: restores the previous action.
            unsafe { libc::signal(signal, before) };
        }
        // Release: as in `begin`; null publishes nothing.
        PATH.store(null_mut(), Release);
        // The file may have been renamed.
        let _ = fs::remove_file(&self.path);
    }
}

extern "C" fn remove(signal: libc::c_int) {
    // Acquire: the path; pairs with the Release in `begin`.
    let path = PATH.load(Acquire);
    if !path.is_null() {
        // SAFETY: the path is a C string that is never freed.
        unsafe { libc::unlink(path) };
    }
    // SAFETY: sets the default action and raises the signal again, which is blocked until this
    // returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Makes an empty file, and locks it.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let file = File::create(path)?;
        // On a file system without locks, no process removes another's file.
        let _ = file.lock();
        // Another process may have taken the file for an abandoned one.
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// Returns whether the file still has this path. If not, the caller has locked another file, and
/// would remove that of another process.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: io::Result<Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
    let there = number(fs::symlink_metadata(path));
    there.is_some() && there == number(file.metadata())
}

/// Returns the process that began a file of this name; `None` if the name is not one of ours.
fn maker(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix('.')?.split_once('-')?.0.parse().ok()
}

/// Removes the files of processes that have ended.
fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    for entry in entries.filter(is_file).filter(|entry| maker(&entry.file_name()).is_some()) {
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() && is_at(&file, &path) {
            // If it can't be removed, the next process tries again.
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_over_is_removed_and_what_is_being_made_is_not() {
        let name = format!("antiphon-unfinished-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let [left, kept, other] = [".1-a.h264", "c.h264", ".nfs01"].map(|name| folder.join(name));
        for path in [&left, &kept, &other] {
            fs::write(path, "a stream").expect("a file");
        }
        let made = Unfinished::begin(&folder, "b.h264").expect("a file");
        let there = [&left, &kept, &other, made.path()].map(|path| path.exists());
        assert_eq!(there, [false, true, true, true]);
        fs::remove_file(other).expect("it is there");
        sweep(&folder);
        assert!(made.path().exists(), "it is being made");
        made.finish(&folder.join("b.h264")).expect("its name");
        let given_up = Unfinished::begin(&folder, "d.h264").expect("a file").path().to_owned();
        assert!(!given_up.exists());
        let mut names: Vec<_> =
            fs::read_dir(&folder).expect("ours").flatten().map(|it| it.file_name()).collect();
        names.sort();
        assert_eq!(names, ["b.h264", "c.h264"]);
        fs::remove_dir_all(&folder).expect("our folder");
    }
}
