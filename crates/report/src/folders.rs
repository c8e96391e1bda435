//! The folders in which Antiphon keeps files between runs: the user's cache, or a folder of the
//! user among temporary files.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The folders, the best first. Not all of them need exist.
#[must_use]
pub fn all() -> Vec<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // SAFETY: the call takes no arguments and can't fail.
    let user = unsafe { libc::getuid() };
    let everybodys = (user == 0).then(|| PathBuf::from("/var/cache"));
    let own = || Some(absolute("HOME")?.join(".cache"));
    let cache = absolute("XDG_CACHE_HOME").or(everybodys).or_else(own);
    let cache = cache.map(|cache| cache.join("antiphon"));
    // In folders where others write, too, a name with the user's id.
    let of_user = format!("antiphon-{user}");
    let temporary = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    let runtime = absolute("XDG_RUNTIME_DIR").map(|folder| folder.join("antiphon"));
    let others = temporary.map(|folder| folder.join(&of_user)).into_iter().chain(runtime);
    cache.into_iter().chain(others).filter(|folder| can_stand(folder)).collect()
}

/// Returns whether a path can be used in `LD_PRELOAD`: no separators, nothing that the loader
/// expands.
fn can_stand(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    !bytes.iter().any(|&byte| matches!(byte, b':' | b'$') || byte.is_ascii_whitespace())
}

/// Creates a folder that belongs to this user, and in which no other user may write.
///
/// # Errors
///
/// If it can't be created; if it exists and others own it or may write in it.
pub fn make_own(folder: &Path) -> io::Result<()> {
    // SAFETY: the call takes no arguments and can't fail.
    let user = unsafe { libc::getuid() };
    let mode = if user == 0 { 0o755 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    let about = fs::symlink_metadata(folder)?;
    let ours = about.is_dir() && about.uid() == user;
    if !ours || about.mode() & 0o022 != 0 {
        return Err(io::Error::other("others may write there"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_separator_can_not_stand_in_the_variable() {
        assert!(can_stand(Path::new("/a/b.so")));
        for path in ["/a b", "/a:b", "/$LIB/a", "/a\tb"] {
            assert!(!can_stand(Path::new(path)), "{path}");
        }
    }
}
