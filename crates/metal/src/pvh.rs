//! The start information of a PVH boot (Xen's `public/arch-x86/hvm/start_info.h`): the command
//! line, the address of the ACPI tables, the map of memory.
//!
//! | byte | field |
//! |---|---|
//! | 0 | magic |
//! | 4 | version; from 1 on it has the map of memory |
//! | 24 | address of the command line |
//! | 32 | address of ACPI's root pointer |
//! | 40, 48 | address of the map, number of entries |

use crate::bytes::{Bytes, Memory};

const MAGIC: u32 = 0x336e_c578;
const LENGTH: usize = 56;
/// Length of an entry of the map, in bytes: address, size, type, a reserved word.
const ENTRY: usize = 24;
/// The type of an entry for usable memory.
const USABLE: u32 = 1;
/// Largest number of entries, more than any machine has; a larger one is malformed.
const MOST_ENTRIES: u32 = 4096;
/// Length of the longest command line that is read, in bytes.
const MOST_TEXT: usize = 2048;

/// The decoded start information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartInfo {
    /// Address of the command line, which ends with a zero byte; 0 if there is none.
    pub command_line: u64,
    /// Address of ACPI's root pointer; 0 if there is none.
    pub rsdp: u64,
    map: u64,
    entries: u32,
}

/// A range of physical memory, from `start` to `end`, exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Address of the first byte.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
}

impl StartInfo {
    /// Decodes the start information at `address`; `None` if it is malformed.
    pub fn read(memory: &impl Memory, address: u64) -> Option<Self> {
        let bytes = Bytes(memory.read(address, LENGTH)?);
        let (magic, version) = (bytes.u32(0)?, bytes.u32(4)?);
        let entries = if version >= 1 { bytes.u32(48)? } else { 0 };
        (magic == MAGIC && entries <= MOST_ENTRIES).then_some(Self {
            command_line: bytes.u64(24)?,
            rsdp: bytes.u64(32)?,
            map: bytes.u64(40)?,
            entries,
        })
    }

    /// Returns the ranges of usable memory. Malformed ranges are left out.
    pub fn usable<'a, M: Memory>(
        &self,
        memory: &'a M,
    ) -> impl Iterator<Item = Range> + use<'a, '_, M> {
        (0..u64::from(self.entries)).filter_map(move |index| {
            let at = self.map.checked_add(index * ENTRY as u64)?;
            let entry = Bytes(memory.read(at, ENTRY)?);
            let (start, size, kind) = (entry.u64(0)?, entry.u64(8)?, entry.u32(16)?);
            let range = Range { start, end: start.checked_add(size)? };
            (kind == USABLE && size > 0).then_some(range)
        })
    }

    /// Returns the command line; empty if there is none, or if it is not UTF-8.
    pub fn text<'a>(&self, memory: &'a impl Memory) -> &'a str {
        let byte = |at: u64| memory.read(at, 1).map(|byte| byte[0]);
        let length = (0..MOST_TEXT)
            .take_while(|&at| {
                self.command_line != 0
                    && self
                        .command_line
                        .checked_add(at as u64)
                        .and_then(byte)
                        .is_some_and(|byte| byte != 0)
            })
            .count();
        memory
            .read(self.command_line, length)
            .and_then(|bytes| core::str::from_utf8(bytes).ok())
            .unwrap_or("")
    }
}
