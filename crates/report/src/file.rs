//! A file that was asked for: refused before the work if it can't be written, and after it there
//! whole or not at all.
//!
//! | what stands at the path, links followed | how it is written |
//! |---|---|
//! | nothing, or a regular file | beside it, under another name, which it then gets (FILE-1) |
//! | a device, a FIFO | itself |
//! | an open file, named in `/proc` (`/dev/stdout`, `/dev/fd/N`) | itself, behind what it has |
//!
//! FILE-1: a program that opens the path finds the file that was there before, or all of the new.
//! Nothing is kept beside the path before that, so whatever ends the work leaves nothing there.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file to be written, that could be when it was opened.
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
    /// The file that `option` names. A FIFO blocks until it has a reader.
    ///
    /// # Errors
    ///
    /// 2, if it can't be written: it is a folder, or in none, or others'.
    pub fn open(option: &'static str, path: &Path) -> Result<Self, Failure> {
        let place = Place::of(path);
        let place = place.map_err(|error| Failure::arguments(said(option, path, &error)))?;
        Ok(Self { option, path: path.to_owned(), place })
    }

    /// The file of an option that may be left out.
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
    /// 1, if not all of it could be; what was there before still is.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        self.write_by(|out| out.write_all(text.as_bytes()))
    }

    /// Writes what `contents` does.
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

/// Fails if `stream` takes nothing at all: it is closed, or open for reading, or always full.
///
/// # Errors
///
/// Why.
pub fn takes(stream: impl AsFd) -> io::Result<File> {
    let mut file = File::from(stream.as_fd().try_clone_to_owned()?);
    // Writes no bytes, which changes nothing. Behind `Stdout` a bad descriptor would be none.
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

/// The number of links that Linux follows. Source: path_resolution(7).
const LINKS: usize = 40;

/// The end of the links from `path`; no file need be there. Links of `/proc` are not followed: they
/// name what is open, not where it is.
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

/// A file that is written as it is.
fn opened(path: &Path) -> io::Result<File> {
    // A file that is open already need not be opened again: a second descriptor has an offset of
    // its own, and a socket can't be opened.
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
    // Random by what the standard library seeds its tables with.
    let name = format!(".antiphon-{:016x}.unfinished", RandomState::new().hash_one(path));
    let unfinished = path.with_file_name(name);
    let file = File::create_new(&unfinished)?;
    Ok((unfinished, file))
}

/// Puts `contents` at `path`, whole or not at all (FILE-1).
fn replace(path: &Path, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let (unfinished, file) = beside(path)?;
    let written = fill(file, contents).and_then(|file| {
        if let Ok(before) = fs::metadata(path) {
            // Only root may give files away; for others it is theirs from now on.
            let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
            file.set_permissions(before.permissions())?;
        }
        // Some file systems find out only now that there is no room.
        file.sync_all()?;
        fs::rename(&unfinished, path)
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn fill(file: File, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    contents(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}
