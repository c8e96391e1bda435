//! Identity of a module's file: by the time of a report, its path may name another file.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::{BUILD_WORDS, ModuleRecord};
use crate::path::read_path;
use crate::table::hash;

/// A build id, as linkers write it into a file, or its beginning if longer than [`BuildId::ROOM`].
/// Files that the same linker built from the same code have the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BuildId {
    /// The number of bytes, then the bytes, then zeros.
    bytes: [u8; 8 * BUILD_WORDS],
}

impl BuildId {
    /// Most bytes that are stored.
    pub const ROOM: usize = 8 * BUILD_WORDS - 1;

    /// The build id of these bytes; no bytes mean no build id.
    #[must_use]
    pub fn new(id: &[u8]) -> Self {
        let id = &id[..id.len().min(Self::ROOM)];
        let mut bytes = [0; 8 * BUILD_WORDS];
        bytes[0] = id.len() as u8;
        bytes[1..=id.len()].copy_from_slice(id);
        Self { bytes }
    }

    /// The first build id among the notes of a file's `PT_NOTE` segment, in this machine's byte
    /// order, padded to 4 bytes. The bytes may be anything.
    #[must_use]
    pub fn in_notes(notes: &[u8]) -> Option<Self> {
        const GNU: &[u8] = b"GNU\0";
        const KIND: u32 = 3;
        let mut rest = notes;
        loop {
            let (head, behind) = rest.split_at_checked(12)?;
            let word = |at: usize| head[at..at + 4].try_into().map(u32::from_ne_bytes).ok();
            let (name_bytes, id_bytes, kind) = (word(0)?, word(4)?, word(8)?);
            let (name_bytes, id_bytes) = (name_bytes as usize, id_bytes as usize);
            let id = behind.get(name_bytes.checked_next_multiple_of(4)?..)?;
            if kind == KIND && behind.get(..name_bytes)? == GNU {
                return Some(Self::new(id.get(..id_bytes)?)).filter(|id| !id.is_none());
            }
            rest = id.get(id_bytes.checked_next_multiple_of(4)?..)?;
        }
    }

    /// Returns whether there is no build id.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.bytes[0] == 0
    }

    /// The bytes that are stored.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[1..=usize::from(self.bytes[0])]
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_ne_bytes(word))
    }

    /// The build id of a record's words, which may hold anything.
    fn from_words(words: &[u64]) -> Self {
        let mut bytes = [0; 8 * BUILD_WORDS];
        for (bytes, word) in bytes.chunks_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        let length = usize::from(bytes[0]).min(Self::ROOM);
        Self::new(&bytes[1..=length])
    }
}

/// Identifies the file that was mapped, in case another one is at the same path by now. All zero if
/// nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device, as shown in the process's mappings. With stacked file systems, `stat` may return
    /// another.
    pub device: u64,
    /// The inode of the file on that device.
    pub inode: u64,
    /// The build id, read from the mapped file; empty if the file has none, or it could not be
    /// read.
    pub build: BuildId,
    /// Without a build id: modification time of the file, in nanoseconds of the wall clock. 0 if
    /// another file was already at the path.
    pub modified_ns: u64,
}

impl FileId {
    /// A hash of device and inode, starting from `begin`: it doesn't depend on the contents.
    pub(crate) fn key(self, begin: u64) -> u64 {
        hash(hash(begin ^ self.device) ^ self.inode)
    }

    pub(crate) fn store(self, module: &ModuleRecord) {
        module.device.store(self.device, Relaxed);
        module.inode.store(self.inode, Relaxed);
        module.modified_ns.store(self.modified_ns, Relaxed);
        for (to, word) in module.build.iter().zip(self.build.words()) {
            to.store(word, Relaxed);
        }
    }
}

/// A mapped file of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// The path as the kernel shows it, followed by ` (deleted)` if the file had no name any more;
    /// the end of it, if it was too long.
    pub path: String,
    /// The identity of the file at that path.
    pub file: FileId,
}

impl Module {
    /// The module from the words of its record; `None` if the record is not filled in (yet).
    pub(crate) fn read(record: &[u64]) -> Option<Self> {
        let &[_, length, device, inode, modified_ns, _, ref rest @ ..] = record else {
            return None;
        };
        let (build, path) = rest.split_at(BUILD_WORDS);
        let build = BuildId::from_words(build);
        let file = FileId { device, inode, build, modified_ns };
        Some(Self { path: read_path(path, length)?, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note of that kind.
    fn note(name: &[u8], kind: u32, text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [name.len() as u32, text.len() as u32, kind] {
            bytes.extend(word.to_ne_bytes());
        }
        for part in [name, text] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let id = [7; 20];
        let notes = [note(b"GNU\0", 1, b"abi"), note(b"Go\0\0", 3, b"x"), note(b"GNU\0", 3, &id)];
        assert_eq!(BuildId::in_notes(&notes.concat()), Some(BuildId::new(&id)));
        assert_eq!(BuildId::in_notes(&notes[..2].concat()), None);
        for length in 0..notes.concat().len() {
            // Truncated notes give no build id.
            assert_eq!(BuildId::in_notes(&notes.concat()[..length]), None, "{length}");
        }
        assert_eq!(BuildId::in_notes(&[0xff; 64]), None);
        assert_eq!(BuildId::in_notes(&note(b"GNU\0", 3, b"")), None);
    }

    #[test]
    fn build_ids_of_any_length_are_kept_as_far_as_there_is_room() {
        for length in [0, 1, 8, 16, 20, 23, 24, 64] {
            let id = BuildId::new(&(1..=length).collect::<Vec<u8>>());
            assert_eq!(id.is_none(), length == 0);
            assert_eq!(BuildId::from_words(&id.words().collect::<Vec<_>>()), id);
        }
        assert_ne!(BuildId::new(&[1, 0]), BuildId::new(&[1]));
        // A program may have overwritten its recording.
        let _ = BuildId::from_words(&[u64::MAX; BUILD_WORDS]);
    }
}
