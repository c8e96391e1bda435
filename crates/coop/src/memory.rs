//! The shared file of a domain.
//!
//! Each process that has it open holds a shared lock on it (`flock(2)`), which ends with the last
//! of them, even by a crash. So a process that gets the lock exclusively knows that no other uses
//! the file, and initialises it again: no state of a crash or another version is left. The file is
//! never removed; the file of a private domain has no name, and ends with the last process that has
//! it open.

use std::ffi::CStr;
use std::fs::{self, File, TryLockError};
use std::io::{Error, ErrorKind};
use std::ops::Deref;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_linux::files::{
    Mapping, nameless, nameless_path, open_own, own_directory, reopen_nameless,
};
use antiphon_platform::Atomic as _;
use antiphon_runtime::coop::{MAGIC, Options, PAGE_BYTES, Page, VERSION};

use super::error::OpenError;

const _: () = assert!(size_of::<Page<Linux>>() <= PAGE_BYTES);

/// A page that processes share, mapped as long as a clone of this lives.
#[derive(Clone, Debug)]
pub(super) struct Memory(Arc<Mapped>);

#[derive(Debug)]
struct Mapped {
    mapping: Mapping,
    /// Holds the `flock` lock.
    _file: File,
}

/// Name under which `/proc` shows the memory of a private domain.
const TITLE: &CStr = c"antiphon-domain";
/// Length of one wait for the lock, of at most `NAPS` waits.
const NAP: Duration = Duration::from_millis(5);
const NAPS: u32 = 200;

impl Memory {
    /// Opens the file of that name, or creates it with this schedule.
    pub(super) fn open(name: &str, options: &Options) -> Result<Self, OpenError> {
        let (directory, path) = own_directory().map_err(OpenError::Directory)?;
        let path = path.join(name);
        let refused = |why| OpenError::File(path.clone(), why);
        let file = open_own(&directory, name).map_err(refused)?;
        Self::of(file, path, options)
    }

    /// Creates a file without a name, with this schedule; returns the memory and the file's number.
    pub(super) fn private(options: &Options) -> Result<(Self, u32), OpenError> {
        let file = nameless(TITLE, PAGE_BYTES as u64).map_err(OpenError::Private)?;
        let number = file.as_raw_fd().cast_unsigned();
        Ok((Self::of(file, nameless_path(number), options)?, number))
    }

    /// Opens a file without a name that this process has inherited under that number.
    pub(super) fn inherited(number: u32, options: &Options) -> Result<Self, OpenError> {
        let path = nameless_path(number);
        let file =
            reopen_nameless(number, TITLE).map_err(|why| OpenError::File(path.clone(), why))?;
        Self::of(file, path, options)
    }

    fn of(file: File, path: PathBuf, options: &Options) -> Result<Self, OpenError> {
        let refused = |why| OpenError::File(path.clone(), why);
        for _ in 0..NAPS {
            if alone(&file).map_err(refused)? {
                make(&file, options).map_err(refused)?;
                // Between the two locks another process may initialise the file again.
                file.unlock().map_err(refused)?;
            }
            match file.try_lock_shared() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    thread::sleep(NAP);
                    continue;
                }
                Err(TryLockError::Error(why)) => return Err(refused(why)),
            }
            // While this process has the lock, no other initialises the file.
            if let Some(mapping) = made(&file, &path)? {
                return Ok(Self(Arc::new(Mapped { mapping, _file: file })));
            }
            file.unlock().map_err(refused)?;
            thread::sleep(NAP);
        }
        Err(OpenError::Busy(path))
    }
}

/// Returns whether no other process uses the file, which is then locked.
fn alone(file: &File) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(why)) => Err(why),
    }
}

/// Initialises the file: all zero except for the header. It is not truncated if its size is right:
/// a program that has closed all its files has lost its lock, but may still have it mapped. The
/// bytes are written, not left as a hole, so that a full file system is an error here and not a
/// signal later.
fn make(file: &File, options: &Options) -> Result<(), Error> {
    if file.metadata()?.size() != PAGE_BYTES as u64 {
        file.set_len(0)?;
    }
    file.write_all_at(&[0; PAGE_BYTES], 0)?;
    let mapping = Mapping::new(file, PAGE_BYTES)?;
    let header = &page(&mapping).header;
    header.set_options(options);
    // Relaxed, both: published by the magic.
    header.version.store(VERSION, Relaxed);
    header.namespace.store(namespace(), Relaxed);
    // Release: pairs with the acquire in `made`.
    header.magic.store(MAGIC, Release);
    Ok(())
}

/// Returns the mapping of the file if a process has finished initialising it, and this process can
/// use it.
fn made(file: &File, path: &Path) -> Result<Option<Mapping>, OpenError> {
    let mapping = match Mapping::new(file, PAGE_BYTES) {
        Ok(mapping) => mapping,
        // No process has initialised it, or none has finished.
        Err(why) if why.kind() == ErrorKind::InvalidData => return empty(file, path, why),
        Err(why) => return Err(OpenError::File(path.to_owned(), why)),
    };
    let header = &page(&mapping).header;
    // Acquire: pairs with the release in `make`.
    if header.magic.load(Acquire) != MAGIC {
        return Ok(None);
    }
    // Relaxed, both: written before the magic.
    let found = header.version.load(Relaxed);
    if found != VERSION {
        return Err(OpenError::Version { found, path: path.to_owned() });
    }
    let (theirs, ours) = (header.namespace.load(Relaxed), namespace());
    if theirs != ours && theirs != 0 && ours != 0 {
        return Err(OpenError::Namespace);
    }
    Ok(Some(mapping))
}

fn empty(file: &File, path: &Path, why: Error) -> Result<Option<Mapping>, OpenError> {
    match file.metadata() {
        Ok(found) if found.size() == 0 => Ok(None),
        _ => Err(OpenError::File(path.to_owned(), why)),
    }
}

fn page(mapping: &Mapping) -> &Page<Linux> {
    debug_assert!(mapping.bytes() >= size_of::<Page<Linux>>());
    // SAFETY: the memory is mapped as long as `mapping` lives, is larger than a page of lines
    // (`PAGE_BYTES`, the size of all mappings here), and is aligned to a machine page. It consists
    // of atomic words, for which all bytes are valid; other processes use it as the same type.
    unsafe { &*mapping.as_ptr().cast::<Page<Linux>>() }
}

/// Returns the number that identifies our PID namespace (`namespaces(7)`): 0 if it is not known.
fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

impl Deref for Memory {
    type Target = Page<Linux>;

    fn deref(&self) -> &Page<Linux> {
        page(&self.0.mapping)
    }
}
