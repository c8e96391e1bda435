//! The file behind a domain.
//!
//! Each process that has it open holds a shared lock on it (`flock(2)`), which ends with the last
//! of them, however that ends. So a process that gets the lock exclusively knows that no other uses
//! the file, and makes it anew: nothing of a crash is left, and no version but its own. The file
//! keeps its name for good; that of a private domain has none, and ends with the last process that
//! has it open.

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

/// A page that processes share, for as long as a clone of this lives.
#[derive(Clone, Debug)]
pub(super) struct Memory(Arc<Mapped>);

#[derive(Debug)]
struct Mapped {
    mapping: Mapping,
    /// Holds the lock.
    _file: File,
}

/// The name under which `/proc` shows the memory of a private domain.
const TITLE: &CStr = c"antiphon-domain";
/// Length of one wait for the lock; there are up to `NAPS`.
const NAP: Duration = Duration::from_millis(5);
const NAPS: u32 = 200;

impl Memory {
    /// Opens the file of that name, or makes it, to be scheduled so.
    pub(super) fn open(name: &str, options: &Options) -> Result<Self, OpenError> {
        let (directory, path) = own_directory().map_err(OpenError::Directory)?;
        let path = path.join(name);
        let refused = |why| OpenError::File(path.clone(), why);
        let file = open_own(&directory, name).map_err(refused)?;
        Self::of(file, path, options)
    }

    /// Makes a file without a name, to be scheduled so: the memory, and the number of its file.
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
                // Between the two locks another process may make the file again.
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
            // While this process has the lock, no other makes the file anew.
            if let Some(mapping) = made(&file, &path)? {
                return Ok(Self(Arc::new(Mapped { mapping, _file: file })));
            }
            file.unlock().map_err(refused)?;
            thread::sleep(NAP);
        }
        Err(OpenError::Busy(path))
    }
}

/// Whether no other process uses the file. Then it is locked.
fn alone(file: &File) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(why)) => Err(why),
    }
}

/// Makes it anew, all zero but for the header. It is not cut where its size is right: a program
/// that has closed all its files has lost its lock, and may have it mapped still. Written, not
/// left to be a hole: where the file system is full, that is said here, by no signal later.
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

/// The mapping of the file, if a process has finished making it, and this process has a part in it.
fn made(file: &File, path: &Path) -> Result<Option<Mapping>, OpenError> {
    let mapping = match Mapping::new(file, PAGE_BYTES) {
        Ok(mapping) => mapping,
        // No process has made it yet, or not yet to the end.
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
    // SAFETY: mapped, for as long as `mapping` lives, larger than a page of lines (`PAGE_BYTES`,
    // which all mappings here have) and at the beginning of a page of the machine. All of it is
    // atomic words, of which any bytes are some value; other processes use it as the same.
    unsafe { &*mapping.as_ptr().cast::<Page<Linux>>() }
}

/// The number that tells our PID namespace from others (`namespaces(7)`): 0 if it is not known.
fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

impl Deref for Memory {
    type Target = Page<Linux>;

    fn deref(&self) -> &Page<Linux> {
        page(&self.0.mapping)
    }
}
