//! Finds the file with a program's debug information, if the program's own file has none.
//!
//! | where | is named by |
//! |---|---|
//! | `/usr/lib/debug/.build-id/ab/cdef….debug` | the build id of the program's file |
//! | the program's folder, its `.debug`, the same below `/usr/lib/debug` | `.gnu_debuglink` |
//! | the program's file, compressed: functions only, no lines | `.gnu_debugdata` |
//!
//! They are tried in this order; the first that exists is used.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use antiphon_record::BuildId;
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ReadCache};

/// The folder in which distributions put debug files.
const ROOT: &str = "/usr/lib/debug";
/// A table of functions that is longer when unpacked, in bytes, is not read.
const LONGEST: u64 = 256 << 20;

/// The path of the debug file for the program at `path`, which has that build id.
pub fn debug_file(path: &Path, build: &BuildId) -> Option<PathBuf> {
    by_build(build).filter(|path| path.exists()).or_else(|| by_link(path))
}

/// The path where distributions put the debug file of a build.
fn by_build(build: &BuildId) -> Option<PathBuf> {
    let (first, rest) = build.bytes().split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(PathBuf::from(format!("{ROOT}/.build-id/{first:02x}/{rest}.debug")))
}

/// The debug file that the program's file names in `.gnu_debuglink`.
fn by_link(path: &Path) -> Option<PathBuf> {
    let file = File::open(path).ok()?;
    let cache = ReadCache::new(&file);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let (name, checksum) = elf.gnu_debuglink().ok()??;
    let name = OsStr::from_bytes(name);
    let folder = std::fs::canonicalize(path).ok()?.parent()?.to_owned();
    let twin = Path::new(ROOT).join(folder.strip_prefix("/").ok()?);
    [folder.join(name), folder.join(".debug").join(name), twin.join(name)]
        .into_iter()
        .find(|candidate| checksum_of(candidate).is_ok_and(|found| found == checksum))
}

fn checksum_of(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(hasher.finalize()),
            length => hasher.update(&bytes[..length]),
        }
    }
}

/// The file of the parts that the debug file at `path` shares with others (`.gnu_debugaltlink`).
pub fn shared_part(path: &Path) -> Option<PathBuf> {
    let file = File::open(path).ok()?;
    let cache = ReadCache::new(&file);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let (name, build) = elf.gnu_debugaltlink().ok()??;
    let named = path.parent()?.join(OsStr::from_bytes(name));
    Some(named).filter(|path| path.exists()).or_else(|| by_build(&BuildId::new(build)))
}

/// The table of functions that the program's file has in compressed form (`.gnu_debugdata`), as an
/// ELF file in memory.
pub fn packed_symbols(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    let cache = ReadCache::new(&file);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let packed = elf.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut memory = crate::memory::file(c"antiphon-symbols", 0).ok()?;
    let mut unpacked = lzma_rust2::XzReader::new(packed, true).take(LONGEST);
    let length = io::copy(&mut unpacked, &mut memory).ok()?;
    memory.flush().ok()?;
    (length < LONGEST).then_some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_file_is_named_by_its_build() {
        let path = by_build(&BuildId::new(&[0xab, 0x01, 0xff]));
        assert_eq!(path, Some(PathBuf::from("/usr/lib/debug/.build-id/ab/01ff.debug")));
        assert_eq!(by_build(&BuildId::default()), None);
    }

    #[test]
    fn a_file_that_names_no_other_has_none() {
        for path in ["/etc/passwd", "/proc/self/exe", "/no/such/file"] {
            let path = Path::new(path);
            assert_eq!((by_link(path), shared_part(path)), (None, None));
            assert!(packed_symbols(path).is_none());
        }
    }
}
