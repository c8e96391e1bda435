//! The files of one folder, for an image that is not trusted.
//!
//! - SHARE-1: no path leads out of the folder. A path is walked part by part, from the open folder
//!   on; `..`, absolute paths and symbolic links are refused.
//! - SHARE-2: only regular files are opened. The type of an opened file is checked before the file
//!   is emptied, and opening does not wait for a pipe.
//! - SHARE-3: nothing grows without a bound: the constants below.
//!
//! Hard links and mounts in the folder are followed: they are the decision of its owner.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use antiphon_metal::channel::{DATA, Error};

/// Largest number of files that are open at a time.
const MOST_OPEN: usize = 64;
/// Largest length of a file, in bytes.
const LONGEST: u64 = 256 << 20;
/// Largest number of bytes that are written in a run; a file that is created counts as [`CREATED`].
const MOST_WRITTEN: u64 = 1 << 30;
const CREATED: u64 = 1 << 12;
/// Largest length of a path, in bytes.
const LONGEST_PATH: usize = 1024;

/// A folder, and the files of it that are open.
pub struct Share {
    folder: File,
    open: BTreeMap<u64, Opened>,
    /// The number of the next file; no number is used twice.
    next: u64,
    written: u64,
}

struct Opened {
    file: File,
    writable: bool,
}

impl Share {
    /// Shares the folder at `path`.
    ///
    /// # Errors
    ///
    /// The path can't be opened, or is no folder.
    pub fn of(path: &Path) -> io::Result<Self> {
        let folder = File::open(path)?;
        if !folder.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { folder, open: BTreeMap::new(), next: 1, written: 0 })
    }

    /// Opens a file to read it; or creates or empties it, to read and write it.
    pub fn open(&mut self, path: &[u8], create: bool) -> Result<u64, Error> {
        if self.open.len() >= MOST_OPEN {
            return Err(Error::TooMuch);
        }
        let (above, name) = self.walk(path)?;
        if create {
            self.count(CREATED)?;
        }
        let access = if create { libc::O_RDWR | libc::O_CREAT } else { libc::O_RDONLY };
        // SHARE-2: a pipe without a writer is opened at once, and then refused.
        let from = above.as_ref().unwrap_or(&self.folder);
        let file = open_at(from, &name, access | libc::O_NONBLOCK)?;
        if !file.metadata().map_err(|error| reason(&error))?.is_file() {
            return Err(Error::NotAFile);
        }
        if create {
            file.set_len(0).map_err(|error| reason(&error))?;
        }
        let number = self.next;
        self.next += 1;
        self.open.insert(number, Opened { file, writable: create });
        Ok(number)
    }

    /// Walks to the folder of a path's last part; returns that folder and that part.
    fn walk(&self, path: &[u8]) -> Result<(Option<File>, CString), Error> {
        if path.is_empty() || path.len() > LONGEST_PATH {
            return Err(Error::Malformed);
        }
        let mut parts = Vec::new();
        for part in path.split(|&byte| byte == b'/') {
            // SHARE-1. The first part of an absolute path is empty.
            if matches!(part, b"" | b"." | b"..") {
                return Err(Error::Outside);
            }
            parts.push(CString::new(part).map_err(|_| Error::Malformed)?);
        }
        let last = parts.pop().ok_or(Error::Malformed)?;
        let mut above = None;
        for part in &parts {
            let from = above.as_ref().unwrap_or(&self.folder);
            above = Some(open_at(from, part, libc::O_PATH | libc::O_DIRECTORY)?);
        }
        Ok((above, last))
    }

    /// Reads from `offset` on into `data`; returns the number of bytes.
    pub fn read(&self, file: u64, offset: u64, data: &mut [u8]) -> Result<usize, Error> {
        let opened = self.open.get(&file).ok_or(Error::NotOpen)?;
        if offset >= LONGEST {
            return Ok(0);
        }
        opened.file.read_at(data, offset).map_err(|error| reason(&error))
    }

    /// Writes `data` from `offset` on; returns the number of bytes.
    pub fn write(&mut self, file: u64, offset: u64, data: &[u8]) -> Result<usize, Error> {
        let opened = self.open.get(&file).filter(|opened| opened.writable);
        if opened.is_none() {
            return Err(Error::NotOpen);
        }
        // SHARE-3.
        let end = offset.checked_add(data.len() as u64).filter(|&end| end <= LONGEST);
        end.ok_or(Error::TooMuch)?;
        self.count(data.len() as u64)?;
        let opened = self.open.get(&file).ok_or(Error::NotOpen)?;
        opened.file.write_at(data, offset).map_err(|error| reason(&error))
    }

    /// Closes a file.
    pub fn close(&mut self, file: u64) -> Result<(), Error> {
        self.open.remove(&file).map(drop).ok_or(Error::NotOpen)
    }

    fn count(&mut self, bytes: u64) -> Result<(), Error> {
        let written = self.written.saturating_add(bytes);
        if written > MOST_WRITTEN {
            return Err(Error::TooMuch);
        }
        self.written = written;
        Ok(())
    }
}

/// Opens a part of a path in a folder; refuses a symbolic link.
fn open_at(folder: &File, name: &CString, flags: i32) -> Result<File, Error> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the name is a C string, and the folder is open.
    let opened = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, 0o644) };
    if opened < 0 {
        return Err(reason(&io::Error::last_os_error()));
    }
    // SAFETY: the file was opened above, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) }.into())
}

/// Returns the error that an image gets for an error of the system.
fn reason(error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Error::NotFound,
        // A symbolic link in the place of a folder is reported as no folder.
        Some(libc::ELOOP) => Error::Outside,
        Some(libc::EISDIR | libc::ENOTDIR | libc::ENXIO) => Error::NotAFile,
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => Error::Denied,
        Some(libc::EFBIG | libc::ENOSPC | libc::EDQUOT | libc::EMFILE) => Error::TooMuch,
        Some(libc::ENAMETOOLONG) => Error::Malformed,
        _ => Error::Failed,
    }
}

const _: () = assert!(DATA as u64 <= LONGEST, "a call is within a file");

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::metal::scratch::Scratch;

    /// Makes a folder to share, and a secret file beside it.
    fn share() -> (Scratch, Share) {
        let scratch = Scratch::new().expect("a folder");
        fs::create_dir_all(scratch.path("shared/inner")).expect("folders");
        fs::write(scratch.path("secret"), "secret").expect("a file");
        fs::write(scratch.path("shared/inner/text"), "text").expect("a file");
        let share = Share::of(&scratch.path("shared")).expect("a folder");
        (scratch, share)
    }

    #[test]
    fn a_file_is_written_and_read_back() {
        let (scratch, mut share) = share();
        let file = share.open(b"inner/new", true).expect("a file");
        assert_eq!(share.write(file, 3, b"abc"), Ok(3));
        let mut data = [1; 8];
        assert_eq!(share.read(file, 0, &mut data), Ok(6));
        assert_eq!(&data, b"\0\0\0abc\x01\x01");
        assert_eq!(share.read(file, 6, &mut data), Ok(0));
        assert_eq!(share.close(file), Ok(()));
        assert_eq!(share.read(file, 0, &mut data), Err(Error::NotOpen));
        assert_eq!(share.close(file), Err(Error::NotOpen));
        assert_eq!(fs::read(scratch.path("shared/inner/new")).expect("a file"), b"\0\0\0abc");
        // Created once more, the file is empty.
        let file = share.open(b"inner/new", true).expect("a file");
        assert_eq!(share.read(file, 0, &mut data), Ok(0));
    }

    #[test]
    fn a_file_that_was_opened_to_be_read_is_not_written() {
        let (_scratch, mut share) = share();
        let file = share.open(b"inner/text", false).expect("a file");
        assert_eq!(share.write(file, 0, b"other"), Err(Error::NotOpen));
        let mut data = [0; 4];
        assert_eq!(share.read(file, 0, &mut data), Ok(4));
        assert_eq!(&data, b"text");
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let (scratch, mut share) = share();
        symlink("../secret", scratch.path("shared/link")).expect("a link");
        symlink("..", scratch.path("shared/up")).expect("a link");
        symlink("inner", scratch.path("shared/in")).expect("a link");
        let absolute = scratch.path("secret");
        for path in [
            &b"../secret"[..],
            b"inner/../../secret",
            b"./inner/text",
            b"inner//text",
            b"inner/",
            b"/etc/passwd",
            absolute.as_os_str().as_bytes(),
            b"link",
        ] {
            for create in [false, true] {
                assert_eq!(share.open(path, create), Err(Error::Outside), "{path:?}");
            }
        }
        // A symbolic link in the place of a folder is no folder.
        for path in [&b"up/secret"[..], b"in/text"] {
            for create in [false, true] {
                assert_eq!(share.open(path, create), Err(Error::NotAFile), "{path:?}");
            }
        }
        assert_eq!(fs::read(absolute).expect("a file"), b"secret");
    }

    #[test]
    fn what_is_no_path_or_no_file_is_refused() {
        let (scratch, mut share) = share();
        let pipe = CString::new(scratch.path("shared/pipe").as_os_str().as_bytes());
        // SAFETY: the path is a C string.
        let made = unsafe { libc::mkfifo(pipe.expect("a path").as_ptr(), 0o600) };
        assert_eq!(made, 0);
        for (path, error) in [
            (&b""[..], Error::Malformed),
            (b"in\0ner", Error::Malformed),
            (&[b'a'; 300], Error::Malformed),
            (&[b'a'; 2000], Error::Malformed),
            (b"nothing", Error::NotFound),
            (b"nothing/inner", Error::NotFound),
            (b"inner", Error::NotAFile),
            (b"inner/text/more", Error::NotAFile),
            (b"pipe", Error::NotAFile),
        ] {
            assert_eq!(share.open(path, false), Err(error), "{path:?}");
        }
        // Linux opens a pipe to read and write without another process.
        assert_eq!(share.open(b"pipe", true), Err(Error::NotAFile));
    }

    #[test]
    fn nothing_grows_without_a_bound() {
        let (_scratch, mut share) = share();
        let file = share.open(b"new", true).expect("a file");
        for offset in [LONGEST, LONGEST - 2, u64::MAX, u64::MAX - 2] {
            assert_eq!(share.write(file, offset, b"abc"), Err(Error::TooMuch));
            assert_eq!(share.read(file, offset, &mut [0; 3]), Ok(0));
        }
        for _ in 1..MOST_OPEN {
            share.open(b"inner/text", false).expect("a file");
        }
        assert_eq!(share.open(b"inner/text", false), Err(Error::TooMuch));
        share.close(file).expect("it is open");
        let file = share.open(b"new", true).expect("a file");
        share.written = MOST_WRITTEN - 3;
        assert_eq!(share.write(file, 0, b"abc"), Ok(3));
        assert_eq!(share.write(file, 0, b"a"), Err(Error::TooMuch));
        share.close(file).expect("it is open");
        assert_eq!(share.open(b"newer", true), Err(Error::TooMuch));
    }
}
