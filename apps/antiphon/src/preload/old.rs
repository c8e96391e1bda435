//! Removes libraries that other versions of this command have unpacked, when no process needs them.
//!
//! A running program keeps what it has mapped, but a program that it executes looks for the library
//! by name. So a version's folder stays
//!
//! | while | known by |
//! |---|---|
//! | a command runs that may start programs with it | its lock (`flock`) on the folder above |
//! | a process has the library mapped | `/proc/PID/maps` |
//! | it is younger than a day | its time: a user comparing two versions comes back to both |

use std::ffi::OsString;
use std::fs::{self, DirEntry, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::PREFIX;

const YOUNG: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes from `folder` the folders of versions other than `ours` that no process needs, and keeps
/// the folder of this process until it ends. Folders that can't be removed stay.
pub fn sweep(folder: &Path, ours: &str) {
    // On a file system without locks, no process removes folders.
    let Ok(lock) = File::open(folder) else { return };
    if lock.try_lock().is_ok() {
        remove(folder, ours);
    }
    if lock.lock_shared().is_ok() {
        // The lock is held until the process ends: programs that it executes do not inherit it.
        std::mem::forget(lock);
    }
}

fn remove(folder: &Path, ours: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let others: Vec<_> = entries.flatten().filter(|entry| is_other(entry, ours)).collect();
    if others.is_empty() {
        return;
    }
    let maps = maps();
    for entry in others {
        let path = entry.path();
        let name = path.join("");
        let mapped = maps.iter().any(|maps| contains(maps, name.as_os_str().as_encoded_bytes()));
        if !mapped {
            // If it can't be removed, the next version tries again.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Whether the entry is another version's folder, and old.
fn is_other(entry: &DirEntry, ours: &str) -> bool {
    let name: OsString = entry.file_name();
    let version = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name != ours);
    let made =
        entry.metadata().ok().filter(|about| about.is_dir()).and_then(|it| it.modified().ok());
    let age = made.and_then(|made| SystemTime::now().duration_since(made).ok());
    version && age.is_some_and(|age| age > YOUNG)
}

/// The mappings of all processes that this process may read. The folder is private to this user, so
/// only processes of this user and of root have its files mapped.
fn maps() -> Vec<Vec<u8>> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().map(|entry| entry.path());
    ids.filter_map(|process| fs::read(process.join("maps")).ok()).collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    /// Makes the folder of a version, two days old.
    fn version(folder: &Path, name: &str) -> File {
        let path = folder.join(name);
        fs::create_dir_all(&path).expect("a folder");
        let version = File::open(&path).expect("the folder");
        version.set_modified(SystemTime::now() - 2 * YOUNG).expect("its time");
        version
    }

    #[test]
    fn what_nobody_needs_is_removed() {
        let name = format!("antiphon-old-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let versions = ["preload-ours", "preload-old", "preload-mapped", "other"];
        for name in versions {
            version(&folder, name);
        }
        let young = version(&folder, "preload-young");
        young.set_modified(SystemTime::now()).expect("its time");
        let library = folder.join("preload-mapped/library");
        fs::write(&library, [1; 10]).expect("a file");
        let library = File::open(library).expect("the file");
        version(&folder, "preload-mapped");
        let (null, read) = (std::ptr::null_mut(), libc::PROT_READ);
        // SAFETY: a new mapping, which no code reads.
        let mapped =
            unsafe { libc::mmap(null, 10, read, libc::MAP_PRIVATE, library.as_raw_fd(), 0) };
        assert_ne!(mapped, libc::MAP_FAILED);

        let user = File::open(&folder).expect("the folder");
        user.lock_shared().expect("a lock");
        sweep(&folder, "preload-ours");
        let there = |name: &str| folder.join(name).exists();
        assert!(versions.into_iter().all(there), "somebody else runs");
        drop(user);
        // Our version stays locked for as long as this process lives, and would block itself.
        remove(&folder, "preload-ours");
        assert!(!there("preload-old"));
        assert!(there("preload-mapped"), "a process has it");
        for name in ["preload-ours", "preload-young", "other"] {
            assert!(there(name), "{name}");
        }
        // SAFETY: mapped above.
        assert_eq!(unsafe { libc::munmap(mapped, 10) }, 0);
        remove(&folder, "preload-ours");
        assert!(!there("preload-mapped"));
        fs::remove_dir_all(&folder).expect("gone");
    }
}
