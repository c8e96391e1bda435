//! An environment that the program has made itself, at an address that may be wrong: read by the
//! kernel, which fails where a load would crash.

use core::mem::size_of;

use super::Texts;
use crate::sys;

/// The number of bytes of a text that are looked at in one go.
const CHUNK: usize = 256;
/// The number of bytes of a variable that are read, to see its name and the `=`.
const BEGIN: usize = 32;

/// Whether the variable of that name is there, and has one of `parts` in its value. `None` if it
/// can't be read: then nothing can be executed with it. Where a filter forbids to look, `true`.
pub(super) fn says(environment: Texts, name: &[u8], parts: &[&[u8]]) -> Option<bool> {
    let mut at = environment.addr();
    // The kernel takes null for empty.
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

/// Whether the text at an address has one of `parts` in it; `None` if it can't be read.
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
        // A part may lie across the end.
        at += CHUNK - longest;
    }
}

/// Reads the memory at an address, a page at most. Returns how many bytes there were before the
/// first that can't be read. `None` if looking is forbidden.
pub(super) fn read(at: usize, into: &mut [u8]) -> Option<usize> {
    // The kernel gives pieces whole or not at all: so the bytes in the next page are a piece of
    // their own.
    let first = (PAGE - at % PAGE).min(into.len());
    let pieces = [(at, first), (at.wrapping_add(first), into.len() - first)];
    sys::read_own(pieces, into)
}

/// The smallest page: where one that can't be read may begin.
const PAGE: usize = 4096;
