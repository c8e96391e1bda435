//! A file that is being made, which gets its name when it is whole.
//!
//! | what ends this process meanwhile | removes what there is |
//! |---|---|
//! | SIGHUP, SIGINT, SIGTERM | the process, before that ends it |
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

/// The path of the file that is being made, for the handler.
static PATH: AtomicPtr<libc::c_char> = AtomicPtr::new(null_mut());

/// The file. Dropped, it goes.
pub struct Unfinished {
    path: PathBuf,
    /// Held for as long as the file is written.
    _lock: File,
    /// The actions of the signals before.
    before: [libc::sighandler_t; ENDS.len()],
}

impl Unfinished {
    /// Makes an empty file for what is to have that name in that folder, and removes what was left
    /// over there. One at a time.
    ///
    /// # Errors
    ///
    /// There can't be a file.
    pub fn begin(folder: &Path, name: &str) -> io::Result<Self> {
        sweep(folder);
        let path = folder.join(format!(".{}-{name}", std::process::id()));
        let lock = locked(&path)?;
        let name = CString::new(path.as_os_str().as_bytes())?;
        // Some bytes for good: a handler that runs just now may be reading them. Release: of them,
        // for the handler's Acquire.
        PATH.store(name.into_raw(), Release);
        let before = ENDS.map(|signal| {
            let remove: extern "C" fn(libc::c_int) = remove;
            // SAFETY: the handler does only what may be done in one.
            let before = unsafe { libc::signal(signal, remove as *const () as usize) };
            if before == libc::SIG_IGN {
                // The process that started this wants it to go on: as `nohup` does.
                // SAFETY: as it was.
                unsafe { libc::signal(signal, before) };
            }
            before
        });
        Ok(Self { path, _lock: lock, before })
    }

    /// The path of the file until it is whole.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, because it is whole.
    ///
    /// # Errors
    ///
    /// It can't be renamed.
    pub fn finish(self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for (signal, before) in ENDS.into_iter().zip(self.before) {
            // SAFETY: as it was.
            unsafe { libc::signal(signal, before) };
        }
        // Release: as in `begin`, of nothing.
        PATH.store(null_mut(), Release);
        // It may have got its name.
        let _ = fs::remove_file(&self.path);
    }
}

extern "C" fn remove(signal: libc::c_int) {
    // Acquire: of the path, from the Release in `begin`.
    let path = PATH.load(Acquire);
    if !path.is_null() {
        // SAFETY: a text that is there for good.
        unsafe { libc::unlink(path) };
    }
    // SAFETY: the default action, and the signal again, which is held back until this returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// An empty file, which is locked.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let file = File::create(path)?;
        // On a file system without locks no process removes anything.
        let _ = file.lock();
        // Another process may have taken it for one that was left over.
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// Whether the file has that path still. If it has not, the caller has locked another file, and
/// would remove that of another process.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: io::Result<Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
    let there = number(fs::symlink_metadata(path));
    there.is_some() && there == number(file.metadata())
}

/// The process that has begun a file of that name; `None`: it is none of ours.
fn maker(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix('.')?.split_once('-')?.0.parse().ok()
}

/// Removes files of those that have ended.
fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    for entry in entries.filter(is_file).filter(|entry| maker(&entry.file_name()).is_some()) {
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() && is_at(&file, &path) {
            // If it can't be removed, the next one tries again.
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
