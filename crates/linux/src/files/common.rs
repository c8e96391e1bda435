//! Files that the processes of one user share by mapping them.
//!
//! They are in a private directory of the user, in memory: `$XDG_RUNTIME_DIR/antiphon` where that
//! belongs to the user (XDG Base Directory Specification), else `/dev/shm/antiphon-UID`. No other
//! user may enter it, so no other user can plant a link or a file under a name that is opened
//! there. A directory that belongs to another user, or is open to others, is refused.
//!
//! A file without a name belongs to a process and the programs that it starts, which inherit it; it
//! ends with the last of them, however that process ends.
//!
//! A process that may write to the file can truncate it, and then any process that accesses the
//! missing part gets a `SIGBUS`. A file with a name can't be sealed against that (`fcntl(2)`,
//! `F_ADD_SEALS`: `memfd_create` only). But its mode restricts it to its user, and that user can
//! end those processes anyway.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};

use super::user;

/// The directory of the user's files, created if it does not exist, and its path.
///
/// # Errors
///
/// The kernel's error; `PermissionDenied` where the directory belongs to another user, or is open
/// to others.
pub fn own_directory() -> io::Result<(File, PathBuf)> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let owned = |path: &PathBuf| {
        path.is_absolute()
            && fs::metadata(path).is_ok_and(|dir| dir.is_dir() && dir.uid() == user())
    };
    let path = match runtime.filter(owned) {
        Some(runtime) => runtime.join("antiphon"),
        None => PathBuf::from(format!("/dev/shm/antiphon-{}", user())),
    };
    Ok((directory(&path)?, path))
}

fn directory(path: &Path) -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = directory.metadata()?;
    own(found.uid(), found.mode())?;
    Ok(directory)
}

/// Opens or creates a file of that directory, for its owner only. Its descriptor is never that of a
/// standard stream, even where these were closed.
///
/// # Errors
///
/// The kernel's error; `PermissionDenied` where the file belongs to another user, is open to
/// others, has a second name, or is not a regular file.
pub fn open_own(directory: &File, name: &str) -> io::Result<File> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(Error::new(ErrorKind::InvalidInput, "not the name of a file"));
    }
    let name = CString::new(name)?;
    let flags =
        libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the directory is open, and the name is a zero-terminated string.
    let file = unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags, 0o600) };
    if file == -1 {
        return Err(Error::last_os_error());
    }
    // SAFETY: opened above, and nothing else owns it.
    let file = unsafe { File::from_raw_fd(file) };
    let file = beyond_standard(file, libc::F_DUPFD_CLOEXEC)?;
    let found = file.metadata()?;
    if !found.is_file() || found.nlink() != 1 {
        return Err(Error::new(
            ErrorKind::PermissionDenied,
            "not a regular file with exactly one name",
        ));
    }
    own(found.uid(), found.mode())?;
    Ok(file)
}

/// Creates a file in memory without a name, with a fixed size of `bytes` zero bytes, for its owner
/// and for the programs that this process executes: all of them inherit it, whichever user they
/// belong to. `/proc` shows it as `title`. Its descriptor is never that of a standard stream.
///
/// # Errors
///
/// The kernel's error.
pub fn nameless(title: &CStr, bytes: u64) -> io::Result<File> {
    // SAFETY: the title is a zero-terminated string.
    let made = |flags| match unsafe { libc::memfd_create(title.as_ptr(), flags) } {
        -1 => Err(Error::last_os_error()),
        // SAFETY: a new descriptor that nothing else owns.
        file => Ok(unsafe { File::from_raw_fd(file) }),
    };
    // A system may require that the file can't be executed; Linux before 6.3 does not know the
    // flag.
    let file = made(libc::MFD_ALLOW_SEALING | libc::MFD_NOEXEC_SEAL).or_else(|why| {
        let is_unknown = why.raw_os_error() == Some(libc::EINVAL);
        if is_unknown { made(libc::MFD_ALLOW_SEALING) } else { Err(why) }
    })?;
    let file = beyond_standard(file, libc::F_DUPFD)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.set_len(bytes)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the file is open, and the other arguments are numbers.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == -1 {
        return Err(Error::last_os_error());
    }
    Ok(file)
}

/// Opens again the [nameless] file with that title that this process has, or has inherited, as
/// descriptor `number`. The new descriptor has separate locks, and programs that this process
/// executes do not inherit it.
///
/// # Errors
///
/// The kernel's error; `PermissionDenied` where the file belongs to another user, or is open to
/// others; `InvalidInput` where the descriptor is now another file.
pub fn reopen_nameless(number: u32, title: &CStr) -> io::Result<File> {
    let name = format!("/memfd:{} (deleted)", title.to_string_lossy());
    let is_that = |number| match fs::read_link(nameless_path(number)) {
        Ok(link) if link.as_os_str() == name.as_str() => Ok(()),
        Ok(_) => Err(Error::new(ErrorKind::InvalidInput, "it is another file")),
        Err(why) => Err(why),
    };
    // Checked before, because opening another file may have side effects; and after, because the
    // descriptor may have changed.
    is_that(number)?;
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(flags);
    let file = beyond_standard(file.open(nameless_path(number))?, libc::F_DUPFD_CLOEXEC)?;
    is_that(file.as_raw_fd().cast_unsigned())?;
    let found = file.metadata()?;
    own(found.uid(), found.mode())?;
    Ok(file)
}

/// The path by which a process finds its open descriptor `number`.
#[must_use]
pub fn nameless_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{number}"))
}

/// Moves the file to a descriptor that is not that of a standard stream. A program that has closed
/// these, as daemons do, gets their numbers for the next files it opens, and may still write to
/// them.
fn beyond_standard(file: File, duplicate: libc::c_int) -> io::Result<File> {
    if file.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(file);
    }
    let least = libc::STDERR_FILENO + 1;
    // SAFETY: the file is open, and the other arguments are numbers.
    let moved = unsafe { libc::fcntl(file.as_raw_fd(), duplicate, least) };
    if moved == -1 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { File::from_raw_fd(moved) })
}

fn own(owner: u32, mode: u32) -> io::Result<()> {
    if owner != user() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if mode & 0o077 != 0 {
        let hint = "other users have access: remove it with `chmod go=`";
        return Err(Error::new(ErrorKind::PermissionDenied, hint));
    }
    Ok(())
}

/// A file mapped for reading and writing, shared with all processes that map it.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapped memory is accessed by raw pointers only, for which their users are
// responsible; the mapping itself belongs to the whole process.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`: accesses are by raw pointers only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes of a file, page-aligned.
    ///
    /// # Errors
    ///
    /// The kernel's error; `InvalidData` where the file has another size.
    pub fn new(file: &File, bytes: usize) -> io::Result<Self> {
        if file.metadata()?.size() != bytes as u64 {
            return Err(Error::new(ErrorKind::InvalidData, "the file has another size"));
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let file = file.as_raw_fd();
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let at = unsafe { libc::mmap(null_mut(), bytes, rights, libc::MAP_SHARED, file, 0) };
        match NonNull::new(at.cast()) {
            Some(mapped) if at != libc::MAP_FAILED => Ok(Self { at: mapped, bytes }),
            _ => Err(Error::last_os_error()),
        }
    }

    /// The address of the mapping, aligned to a page.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    /// The length of the mapping, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; each holder of a pointer has promised not to
        // use it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd as _;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory that is not there yet.
    fn fresh(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("antiphon-common-{name}-{}", std::process::id()))
    }

    fn refusal<T>(opened: io::Result<T>) -> Option<ErrorKind> {
        opened.err().map(|error| error.kind())
    }

    #[test]
    fn what_one_process_writes_all_mappings_have() {
        let path = fresh("maps");
        let own = directory(&path).expect("a directory");
        let file = open_own(&own, "file").expect("a file");
        assert_eq!(refusal(Mapping::new(&file, 4096)), Some(ErrorKind::InvalidData));
        file.set_len(4096).expect("a size");
        let maps = [(); 2].map(|()| Mapping::new(&file, 4096).expect("a mapping"));
        // SAFETY: within the mappings, which are alive.
        unsafe {
            maps[0].as_ptr().add(4095).write_volatile(7);
            assert_eq!(maps[1].as_ptr().add(4095).read_volatile(), 7);
        }
        fs::remove_dir_all(&path).expect("it was there");
    }

    #[test]
    fn a_nameless_file_is_inherited_and_opened_once_more() {
        let file = nameless(c"antiphon-test", 4096).expect("a file");
        assert!(file.set_len(0).is_err() && file.set_len(8192).is_err(), "it is mapped elsewhere");
        let number = file.as_raw_fd().cast_unsigned();
        let again = reopen_nameless(number, c"antiphon-test").expect("the same");
        assert_eq!(again.metadata().expect("open").ino(), file.metadata().expect("open").ino());
        file.try_lock().expect("nobody has it");
        assert!(again.try_lock().is_err(), "its locks are its own");
        let inherits = |number: u32| {
            let mut test = std::process::Command::new("test");
            test.args(["-e", &format!("/proc/self/fd/{number}")])
                .status()
                .is_ok_and(|s| s.success())
        };
        assert!(inherits(number) && !inherits(again.as_raw_fd().cast_unsigned()));
        assert_eq!(refusal(reopen_nameless(number, c"other")), Some(ErrorKind::InvalidInput));
        let named = fresh("named");
        let own = directory(&named).expect("a directory");
        let other = open_own(&own, "file").expect("a file").into_raw_fd().cast_unsigned();
        let refused = refusal(reopen_nameless(other, c"antiphon-test"));
        assert_eq!(refused, Some(ErrorKind::InvalidInput));
        fs::remove_dir_all(&named).expect("it was there");
    }

    #[test]
    fn links_names_that_lead_elsewhere_and_open_doors_are_refused() {
        let path = fresh("refuses");
        let own = directory(&path).expect("a directory");
        drop(open_own(&own, "file").expect("a file"));
        symlink(path.join("file"), path.join("link")).expect("a link");
        assert!(open_own(&own, "link").is_err());
        fs::hard_link(path.join("file"), path.join("twin")).expect("another name");
        assert_eq!(refusal(open_own(&own, "twin")), Some(ErrorKind::PermissionDenied));
        for name in ["", ".hidden", "../file", "a/b"] {
            assert_eq!(refusal(open_own(&own, name)), Some(ErrorKind::InvalidInput), "{name}");
        }
        let link = fresh("link");
        symlink(&path, &link).expect("a link");
        assert!(directory(&link).is_err());
        fs::remove_file(&link).expect("it was there");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).expect("ours");
        assert_eq!(refusal(directory(&path)), Some(ErrorKind::PermissionDenied));
        fs::remove_dir_all(&path).expect("it was there");
    }
}
