//! Output files: refused before the work if they can't be written, and afterwards written
//! completely or not at all.
//!
//! | what is at the path, links followed | how it is written |
//! |---|---|
//! | nothing, or a regular file | to a new file beside it, which is then renamed (FILE-1) |
//! | a device, a FIFO | directly |
//! | an open file, named in `/proc` (`/dev/stdout`, `/dev/fd/N`) | directly, at its position |
//!
//! FILE-1: a program that opens the path finds the earlier file, or all of the new one. The file
//! beside the path is created only then, so whatever ends the work before leaves nothing there.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file to be written, which was checked to be writable when it was opened.
pub struct OutputFile {
    option: &'static str,
    path: PathBuf,
    place: Place,
}

enum Place {
    /// The end of all links.
    Regular(PathBuf),
    Open(File),
}

impl OutputFile {
    /// Opens the file that `option` names. Blocks on a FIFO until it has a reader.
    ///
    /// # Errors
    ///
    /// Exit code 2 if it can't be written: it is a folder, its folder does not exist, or it belongs
    /// to others.
    pub fn open(option: &'static str, path: &Path) -> Result<Self, Failure> {
        let place = Place::of(path);
        let place = place.map_err(|error| Failure::arguments(said(option, path, &error)))?;
        Ok(Self { option, path: path.to_owned(), place })
    }

    /// Opens the file of an option that may be left out.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn of(option: &'static str, path: Option<&Path>) -> Result<Option<Self>, Failure> {
        path.map(|path| Self::open(option, path)).transpose()
    }

    /// Writes `text`.
    ///
    /// # Errors
    ///
    /// Exit code 1 if not all of it could be written; then the earlier file remains.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        self.write_by(|out| out.write_all(text.as_bytes()))
    }

    /// Writes what `contents` writes to its argument.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub fn write_by(
        self,
        contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let written = match self.place {
            Place::Regular(path) => replace(&path, contents),
            Place::Open(file) => fill(file, contents).map(drop),
        };
        written.map_err(|error| Failure::measured(said(self.option, &self.path, &error)))
    }
}

/// Fails if `stream` can't be written to: it is closed, or open for reading, or always full.
///
/// # Errors
///
/// Those of duplicating and writing.
pub fn takes(stream: impl AsFd) -> io::Result<File> {
    let mut file = File::from(stream.as_fd().try_clone_to_owned()?);
    // Writes no bytes, which changes nothing. `Stdout` would hide a bad descriptor.
    file.write(&[]).map(|_| file)
}

fn said(option: &str, path: &Path, error: &io::Error) -> String {
    format!("{option} {}: {error}", path.display())
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        let path = followed(path)?;
        if path.starts_with(PROC) {
            return opened(&path).map(Self::Open);
        }
        match fs::metadata(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => return opened(&path).map(Self::Open),
            // A user that may not write a file should not replace it either.
            Ok(_) => _ = File::options().write(true).open(&path)?,
            Err(_) => {}
        }
        let (unfinished, _) = beside(&path)?;
        fs::remove_file(unfinished)?;
        Ok(Self::Regular(path))
    }
}

const PROC: &str = "/proc";

/// Most links that Linux follows. Source: path_resolution(7).
const LINKS: usize = 40;

/// Follows the links from `path`; the target need not exist. Links of `/proc` are not followed:
/// they name an open file, not its place.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
        let here = folder.join(name);
        match fs::read_link(&here) {
            Ok(to) if !here.starts_with(PROC) => path = folder.join(to),
            _ => return Ok(here),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// Opens a file that is written directly.
fn opened(path: &Path) -> io::Result<File> {
    // A file that is already open must not be opened again: a second descriptor has its own offset,
    // and a socket can't be opened.
    let own = |fd: &str| path == Path::new(&format!("/proc/{}/fd/{fd}", std::process::id()));
    if own("1") {
        return takes(io::stdout());
    }
    if own("2") {
        return takes(io::stderr());
    }
    takes(File::options().append(true).open(path)?)
}

/// A new file in the folder of `path`, and its name.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    // Random by the standard library's seeds of hash tables.
    let name = format!(".antiphon-{:016x}.unfinished", RandomState::new().hash_one(path));
    let unfinished = path.with_file_name(name);
    let file = File::create_new(&unfinished)?;
    Ok((unfinished, file))
}

/// Writes `contents` to `path`, completely or not at all (FILE-1).
fn replace(path: &Path, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let (unfinished, file) = beside(path)?;
    let written = fill(file, contents).and_then(|file| {
        if let Ok(before) = fs::metadata(path) {
            // Only root may change the owner of a file; otherwise the user owns it from now on.
            let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
            file.set_permissions(before.permissions())?;
        }
        // Some file systems report only now that there is no room.
        file.sync_all()?;
        fs::rename(&unfinished, path)
    });
    if written.is_err() {
        // The first error is reported.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn fill(file: File, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    contents(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}
