//! Checks whether the file at a module's path is the one that was mapped.
//!
//! | the mapped file | the file here is the same one if |
//! |---|---|
//! | has a build id | it has that build id, whatever its path, inode or root |
//! | has none | it has the inode and the time of the last write of the mapped file |
//! | has none, and its time is not known | it has the inode and the device |
//!
//! The device alone says little: where a file system lies on another (overlayfs, btrfs), `stat` and
//! a process's mappings name different devices. The inode alone says little, too: the inode of a
//! deleted file is given to the next file, and a file may be rewritten in place.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use antiphon_record::{FileId, Module};

use super::image::Image;

/// Why the functions of a module have no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// Another file is at its path.
    Replaced,
    /// No file is at its path, and it was already deleted when the process had it mapped.
    Deleted,
    /// It was never in a file system.
    InMemory,
    /// The recording had no room for the whole path.
    LongPath,
    /// Its file can't be read, for this reason.
    Unreadable(String),
}

impl fmt::Display for Unnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replaced => {
                "replaced since it was loaded, or another file where CMD had its root"
            }
            Self::Deleted => "deleted since it was loaded",
            Self::InMemory => "never in a file system",
            Self::LongPath => "its path is too long for the recording",
            Self::Unreadable(why) => why,
        })
    }
}

/// The mark that the kernel puts behind the path of a deleted file.
const DELETED: &str = " (deleted)";
/// The kernel's name for files without a file system.
const MEMORY: &str = "/memfd:";

/// The path of a module, without the kernel's mark.
pub fn path(module: &Module) -> &str {
    let plain = module.path.strip_suffix(DELETED);
    plain.filter(|_| !Path::new(&module.path).exists()).unwrap_or(&module.path)
}

/// Opens the file that was mapped.
///
/// # Errors
///
/// If that file is not available, for the reason returned.
pub fn open(module: &Module) -> Result<Image, Unnamed> {
    let path = path(module);
    if path.starts_with(MEMORY) {
        return Err(Unnamed::InMemory);
    }
    if !path.starts_with('/') {
        return Err(Unnamed::LongPath);
    }
    let deleted = path.len() != module.path.len();
    let image = Image::open(Path::new(path)).map_err(|error| match error.kind() {
        ErrorKind::NotFound if deleted => Unnamed::Deleted,
        _ => Unnamed::Unreadable(words(&error)),
    })?;
    let same = is_same(&module.file, deleted, &About::of(&image).map_err(unreadable)?);
    if same { Ok(image) } else { Err(Unnamed::Replaced) }
}

fn unreadable(error: io::Error) -> Unnamed {
    Unnamed::Unreadable(words(&error))
}

/// The system's error message, without the number of the error.
fn words(error: &io::Error) -> String {
    let words = error.to_string();
    let end = words.find(" (os error").unwrap_or(words.len());
    format!("it can't be read: {}", words[..end].to_lowercase())
}

/// The identity of the file here. Its time is always known.
struct About(FileId);

impl About {
    fn of(image: &Image) -> io::Result<Self> {
        let about = image.metadata()?;
        let modified_ns = about.mtime().wrapping_mul(1_000_000_000) + about.mtime_nsec();
        let (device, inode) = (about.dev(), about.ino());
        Ok(Self(FileId { device, inode, build: image.build, modified_ns: modified_ns as u64 }))
    }
}

/// Returns whether the file here is the one that was `mapped`. `deleted` tells that the mapped file
/// no longer had a name.
fn is_same(mapped: &FileId, deleted: bool, About(here): &About) -> bool {
    if *mapped == FileId::default() {
        return !deleted;
    }
    if !mapped.build.is_none() {
        return mapped.build == here.build;
    }
    let unwritten = match mapped.modified_ns {
        0 => mapped.device == here.device,
        then => then == here.modified_ns,
    };
    !deleted && mapped.inode == here.inode && unwritten
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_record::BuildId;

    #[test]
    fn a_file_is_known_by_its_build_or_else_by_inode_and_time() {
        let file = |build: &[u8], device, inode, modified_ns| FileId {
            device,
            inode,
            build: BuildId::new(build),
            modified_ns,
        };
        let same = |mapped, here| is_same(&mapped, false, &About(here));
        // A package of the same version was reinstalled; a file system lies on another.
        assert!(same(file(b"x", 1, 2, 0), file(b"x", 8, 9, 7)));
        // The file was rewritten in place.
        assert!(!same(file(b"x", 1, 2, 0), file(b"y", 1, 2, 7)));
        assert!(!same(file(b"x", 1, 2, 0), file(b"", 1, 2, 7)));
        // Without a build id.
        assert!(same(file(b"", 1, 2, 7), file(b"", 1, 2, 7)));
        assert!(same(file(b"", 1, 2, 7), file(b"", 5, 2, 7)));
        assert!(!same(file(b"", 1, 2, 7), file(b"", 1, 2, 8)));
        assert!(!same(file(b"", 1, 2, 7), file(b"", 1, 3, 7)));
        // Its time could not be read.
        assert!(same(file(b"", 1, 2, 0), file(b"", 1, 2, 7)));
        assert!(!same(file(b"", 1, 2, 0), file(b"", 5, 2, 7)));
        // Nothing is known of the mapped file.
        assert!(same(FileId::default(), file(b"", 5, 2, 7)));
    }

    #[test]
    fn a_deleted_file_is_known_by_its_build_alone() {
        let build = BuildId::new(b"x");
        let mapped = FileId { device: 1, inode: 2, build, modified_ns: 0 };
        let here = || About(FileId { inode: 3, modified_ns: 7, ..mapped });
        assert!(is_same(&mapped, true, &here()));
        let bare = FileId { build: BuildId::default(), ..mapped };
        assert!(!is_same(&bare, true, &About(FileId { modified_ns: 7, ..bare })));
        assert!(!is_same(&FileId::default(), true, &here()));
    }

    #[test]
    fn why_there_is_no_file_is_told_apart() {
        let open = |path: &str| {
            let module = Module { path: path.to_owned(), file: FileId::default() };
            open(&module).err()
        };
        assert_eq!(open("/memfd:jit (deleted)"), Some(Unnamed::InMemory));
        assert_eq!(open("/no/such/lib.so (deleted)"), Some(Unnamed::Deleted));
        assert_eq!(open("end/of/a/long/path.so"), Some(Unnamed::LongPath));
        let missing = open("/no/such/lib.so").map(|why| why.to_string());
        assert!(missing.is_some_and(|why| why.contains("no such file")));
        assert!(matches!(open("/etc/passwd"), Some(Unnamed::Unreadable(_))));
        assert_eq!(open("/proc/self/exe"), None);
    }
}
