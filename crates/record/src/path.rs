//! Writing and reading of paths in a recording, as words of eight bytes.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::table::hash;

/// A hash of a path, starting from `begin`. Never zero.
pub(crate) fn path_key(begin: u64, path: &[u8]) -> u64 {
    path.iter().fold(begin, |key, &byte| hash(key ^ u64::from(byte))) | 1
}

/// Writes a path, which must fit into `words`.
pub(crate) fn store_path(words: &[AtomicU64], path: &[u8]) {
    for (word, bytes) in words.iter().zip(path.chunks(8)) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(padded), Relaxed);
    }
}

/// The path of `length` bytes in `words`; `None` if it is not written (yet).
pub(crate) fn read_path(words: &[u64], length: u64) -> Option<String> {
    let length = (length as usize).min(words.len() * 8);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take(length).collect();
    (length != 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
