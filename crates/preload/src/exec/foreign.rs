//! Reads an environment that the program has made itself, at an address that may be wrong: by a
//! system call, which fails where a load would crash.

use core::mem::size_of;

use super::Texts;
use crate::sys;

/// Bytes of a string that are read at once.
const CHUNK: usize = 256;
/// Bytes of a variable that are read to compare its name and the `=`.
const BEGIN: usize = 32;

/// Returns whether the variable `name` exists and its value contains one of `parts`. `None` if the
/// environment can't be read: then no program can be executed with it. `true` where a filter
/// forbids to read it.
pub(super) fn says(environment: Texts, name: &[u8], parts: &[&[u8]]) -> Option<bool> {
    let mut at = environment.addr();
    // The kernel treats null as empty.
    while at != 0 {
        let mut entry = [0; size_of::<usize>()];
        match read(at, &mut entry) {
            None => return Some(true),
            Some(length) if length < entry.len() => return None,
            Some(_) => at = at.wrapping_add(entry.len()),
        }
        let text = usize::from_ne_bytes(entry);
        if text == 0 {
            break;
        }
        let mut begin = [0; BEGIN];
        let length = read(text, &mut begin)?;
        if length == 0 {
            return None;
        }
        let begin = &begin[..length];
        if begin.starts_with(name) && begin.get(name.len()) == Some(&b'=') {
            return has(text + name.len() + 1, parts);
        }
    }
    Some(false)
}

/// Returns whether the string at an address contains one of `parts`; `None` if it can't be read.
fn has(mut at: usize, parts: &[&[u8]]) -> Option<bool> {
    let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
    loop {
        let mut chunk = [0; CHUNK];
        let length = read(at, &mut chunk)?;
        let end = chunk[..length].iter().position(|&byte| byte == 0);
        let text = &chunk[..end.unwrap_or(length)];
        if parts.iter().any(|part| text.windows(part.len()).any(|window| window == *part)) {
            return Some(true);
        }
        if end.is_some() {
            return Some(false);
        }
        if length < CHUNK {
            return None;
        }
        // A part may cross the end of the chunk.
        at += CHUNK - longest;
    }
}

/// Reads at most a page of memory at an address. Returns the number of bytes before the first that
/// can't be read; `None` if a filter forbids to read.
pub(super) fn read(at: usize, into: &mut [u8]) -> Option<usize> {
    // The kernel copies a piece completely or not at all: so the bytes in the next page are a
    // separate piece.
    let first = (PAGE - at % PAGE).min(into.len());
    let pieces = [(at, first), (at.wrapping_add(first), into.len() - first)];
    sys::read_own(pieces, into)
}

/// The smallest page size: an unreadable page may begin at any multiple.
const PAGE: usize = 4096;
