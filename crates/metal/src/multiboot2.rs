//! The information that a multiboot2 loader, such as GRUB, leaves in memory (Multiboot2
//! Specification 2.0, section 3.6): the command line, ACPI's root pointer, the map of memory.
//!
//! | byte | field |
//! |---|---|
//! | 0 | total length, including this word |
//! | 8 | the tags: each begins at a multiple of 8, with its type and its length |
//!
//! | tag | bytes from its beginning |
//! |---|---|
//! | 0 | the end |
//! | 1 | 8: the command line, with a zero byte behind it |
//! | 6 | 8: length of an entry; 16: entries of address, size, type |
//! | 14, 15 | 8: a copy of ACPI's root pointer, of 20 bytes or of 36 |

use crate::bytes::{Bytes, Memory};
use crate::pvh::Range;

/// The number that a multiboot2 loader leaves in a register, by which the kernel recognizes it.
pub const LOADER: u32 = 0x36d7_6289;

/// Largest length; longer information is malformed.
const LONGEST: usize = 1 << 20;
/// Types of the tags that are read.
const COMMAND_LINE: u32 = 1;
const MAP: u32 = 6;
const OLD_ROOT: u32 = 14;
const NEW_ROOT: u32 = 15;
/// Offset of the contents of a tag.
const CONTENTS: usize = 8;
/// Number of bytes of a map entry that are used.
const ENTRY: usize = 20;
/// The type of a map entry whose memory can be used.
const USABLE: u32 = 1;

/// The information. Its length was checked.
#[derive(Clone, Copy, Debug)]
pub struct Information<'a> {
    bytes: Bytes<'a>,
    address: u64,
}

impl<'a> Information<'a> {
    /// Reads the information at `address`; `None` if it is not complete.
    pub fn read(memory: &'a impl Memory, address: u64) -> Option<Self> {
        let length = Bytes(memory.read(address, CONTENTS)?).u32(0)? as usize;
        if !(CONTENTS..=LONGEST).contains(&length) {
            return None;
        }
        Some(Self { bytes: Bytes(memory.read(address, length)?), address })
    }

    /// Returns the tags up to the end, or up to the first that is malformed: where each begins, its
    /// type, and all of its bytes.
    fn tags(self) -> impl Iterator<Item = (usize, u32, Bytes<'a>)> + use<'a> {
        let mut next = CONTENTS;
        core::iter::from_fn(move || {
            let at = next;
            let (kind, length) = (self.bytes.u32(at)?, self.bytes.u32(at + 4)? as usize);
            let tag = self.bytes.0.get(at..at.checked_add(length)?)?;
            if kind == 0 || length < CONTENTS {
                return None;
            }
            next = at.checked_add(length)?.checked_next_multiple_of(8)?;
            Some((at, kind, Bytes(tag)))
        })
    }

    /// Returns the address of ACPI's root pointer, the newer one if there are two; 0 if there is
    /// none.
    #[must_use]
    pub fn rsdp(self) -> u64 {
        let of = |wanted| self.tags().find(|&(_, kind, _)| kind == wanted);
        let found = of(NEW_ROOT).or_else(|| of(OLD_ROOT));
        found.map_or(0, |(at, ..)| self.address + (at + CONTENTS) as u64)
    }

    /// Returns the ranges of memory that can be used. Malformed ranges are left out.
    pub fn usable(self) -> impl Iterator<Item = Range> + use<'a> {
        let map = self.tags().find(|&(_, kind, _)| kind == MAP);
        let entries = map.and_then(|(_, _, tag)| {
            let length = tag.u32(CONTENTS)? as usize;
            let entries = tag.0.get(2 * CONTENTS..)?;
            // An entry may be longer than the part that is known here.
            (length >= ENTRY).then(|| entries.chunks_exact(length))
        });
        entries.into_iter().flatten().filter_map(|entry| {
            let entry = Bytes(entry);
            let (start, size, kind) = (entry.u64(0)?, entry.u64(8)?, entry.u32(16)?);
            let range = Range { start, end: start.checked_add(size)? };
            (kind == USABLE && size > 0).then_some(range)
        })
    }

    /// Returns the command line; empty if there is none, or if it is not text.
    #[must_use]
    pub fn text(self) -> &'a str {
        let tag = self.tags().find(|&(_, kind, _)| kind == COMMAND_LINE);
        let bytes = tag.and_then(|(_, _, tag)| tag.0.get(CONTENTS..)).unwrap_or_default();
        let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        core::str::from_utf8(&bytes[..length]).unwrap_or("")
    }
}
