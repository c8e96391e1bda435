//! The ACPI tables that a kernel needs to start all processors and to find the nodes.
//!
//! | table | what is read |
//! |---|---|
//! | root pointer, `RSDT` or `XSDT` | the addresses of the others |
//! | `APIC` (MADT) | the processors; the address of the local APIC |
//! | `SRAT` | the nodes of processors and of memory |
//! | `FACP` (FADT), `DSDT` | how to switch the machine off |
//!
//! Firmware is not trusted: each length is checked against the existing memory, a table with a
//! wrong checksum is ignored, and an entry of length zero ends its table. With a malformed table
//! less is known of the machine; nothing here panics.

use crate::bytes::{Bytes, Memory};
use crate::pvh::Range;

/// Length of a table's header, in bytes.
const HEADER: usize = 36;
/// Longest table, in bytes; one with a greater length is malformed.
const LONGEST: usize = 1 << 20;

/// The id by which an interrupt goes to every processor, so no processor has it. In an entry of
/// eight bits it is 255.
pub const EVERY: u32 = u32::MAX;

/// The tables of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a, M> {
    memory: &'a M,
    root: Bytes<'a>,
    /// Size of an address in the root table, in bytes.
    width: usize,
}

/// The node (proximity domain) of a processor or of a range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The processor whose APIC has this id.
    Processor {
        /// Id of the APIC.
        apic_id: u32,
        /// The proximity domain.
        domain: u32,
    },
    /// A range of memory.
    Memory {
        /// The range.
        range: Range,
        /// The proximity domain.
        domain: u32,
    },
}

/// How to switch the machine off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOff {
    /// Write `value` to the 16-bit port.
    Port {
        /// The port of the PM1a control register.
        port: u16,
        /// The sleep type of S5, and the bit that enables it.
        value: u16,
    },
    /// Write `value` to the byte of memory at this address.
    Byte {
        /// The address of the sleep control register.
        address: u64,
        /// The sleep type of S5, and the bit that enables it.
        value: u8,
    },
}

impl<'a, M: Memory> Tables<'a, M> {
    /// Finds the tables by the root pointer at `address`; `None` if it, or the root table, is
    /// malformed.
    pub fn find(memory: &'a M, address: u64) -> Option<Self> {
        let pointer = Bytes(memory.read(address, 20)?);
        if &pointer.array::<8>(0)? != b"RSD PTR " || !pointer.adds_up() {
            return None;
        }
        let extended = || {
            let pointer = Bytes(memory.read(address, 36)?);
            let root = table(memory, pointer.u64(24)?)?;
            (pointer.adds_up() && &root.array::<4>(0)? == b"XSDT").then_some((root, 8))
        };
        let plain = || {
            let root = table(memory, pointer.u32(16)?.into())?;
            (&root.array::<4>(0)? == b"RSDT").then_some((root, 4))
        };
        let is_new = pointer.u8(15)? >= 2;
        let (root, width) = is_new.then(extended).flatten().or_else(plain)?;
        Some(Self { memory, root, width })
    }

    /// Returns the first well-formed table with this signature.
    fn table(&self, signature: &[u8; 4]) -> Option<Bytes<'a>> {
        let entries = self.root.0.get(HEADER..)?.chunks_exact(self.width);
        entries
            .filter_map(|entry| match self.width {
                8 => Bytes(entry).u64(0),
                _ => Bytes(entry).u32(0).map(u64::from),
            })
            .filter_map(|address| table(self.memory, address))
            .find(|table| table.array(0).as_ref() == Some(signature))
    }

    /// Returns the address of the local APICs' registers.
    pub fn local_apic(&self) -> Option<u64> {
        const OVERRIDE: u8 = 5;
        let table = self.table(b"APIC")?;
        let moved = entries(table, 44)
            .find_map(|(kind, entry)| (kind == OVERRIDE).then(|| entry.u64(4)).flatten());
        moved.or_else(|| table.u32(HEADER).map(u64::from))
    }

    /// Returns the APIC ids of the enabled processors, in the firmware's order, as it lists them:
    /// an id may come twice, and may be [`EVERY`], which no processor has. Processors that could be
    /// plugged in later are left out.
    pub fn processors(&self) -> impl Iterator<Item = u32> + use<'a, M> {
        const ENABLED: u32 = 1;
        let listed = self.table(b"APIC").map(|table| entries(table, 44));
        listed.into_iter().flatten().filter_map(|(kind, entry)| {
            let (id, flags) = match kind {
                0 => (widened(entry.u8(3)?), entry.u32(4)?),
                9 => (entry.u32(4)?, entry.u32(8)?),
                _ => return None,
            };
            (flags & ENABLED != 0).then_some(id)
        })
    }

    /// Returns the nodes of processors and of memory ranges.
    pub fn affinities(&self) -> impl Iterator<Item = Affinity> + use<'a, M> {
        const ENABLED: u32 = 1;
        let listed = self.table(b"SRAT").map(|table| entries(table, 48));
        listed.into_iter().flatten().filter_map(|(kind, entry)| {
            let (affinity, flags) = match kind {
                0 => {
                    let high = entry.array::<3>(9)?;
                    let domain = [entry.u8(2)?, high[0], high[1], high[2]];
                    let domain = u32::from_le_bytes(domain);
                    let apic_id = widened(entry.u8(3)?);
                    (Affinity::Processor { apic_id, domain }, entry.u32(4)?)
                }
                1 => {
                    let start = entry.u64(8)?;
                    let end = start.checked_add(entry.u64(16)?)?;
                    let domain = entry.u32(2)?;
                    let flags = entry.u32(28)?;
                    (Affinity::Memory { range: Range { start, end }, domain }, flags)
                }
                2 => {
                    let (apic_id, domain) = (entry.u32(8)?, entry.u32(4)?);
                    (Affinity::Processor { apic_id, domain }, entry.u32(12)?)
                }
                _ => return None,
            };
            (flags & ENABLED != 0).then_some(affinity)
        })
    }

    /// Returns how to switch the machine off, if the tables give it in a form that needs no
    /// interpreter.
    pub fn power_off(&self) -> Option<PowerOff> {
        const REDUCED: u32 = 1 << 20;
        const SYSTEM_MEMORY: u8 = 0;
        let fadt = self.table(b"FACP")?;
        let code = fadt.u64(140).filter(|&address| address != 0);
        let code = code.or_else(|| fadt.u32(40).map(u64::from))?;
        let kind = sleep_type(table(self.memory, code)?)?;
        if fadt.u32(112)? & REDUCED != 0 {
            // The address of the sleep control register, after four bytes that describe it.
            let (space, address) = (fadt.u8(244)?, fadt.u64(248)?);
            let value = kind << 2 | 1 << 5;
            return (space == SYSTEM_MEMORY && address != 0)
                .then_some(PowerOff::Byte { address, value });
        }
        let port = u16::try_from(fadt.u32(64)?).ok().filter(|&port| port != 0)?;
        Some(PowerOff::Port { port, value: u16::from(kind) << 10 | 1 << 13 })
    }
}

/// Returns the id of an entry of eight bits.
fn widened(id: u8) -> u32 {
    if id == u8::MAX { EVERY } else { id.into() }
}

/// Returns the well-formed table at `address`, including its header.
fn table<M: Memory>(memory: &M, address: u64) -> Option<Bytes<'_>> {
    let length = Bytes(memory.read(address, HEADER)?).u32(4)? as usize;
    if !(HEADER..=LONGEST).contains(&length) {
        return None;
    }
    let table = Bytes(memory.read(address, length)?);
    table.adds_up().then_some(table)
}

/// Returns the entries of a table from `at` on, each with its type. The second byte of an entry is
/// its length.
fn entries(table: Bytes<'_>, at: usize) -> impl Iterator<Item = (u8, Bytes<'_>)> {
    let mut rest = table.from(at);
    core::iter::from_fn(move || {
        let bytes = rest?;
        let length = usize::from(bytes.u8(1)?);
        let entry = bytes.0.get(..length).filter(|_| length >= 2)?;
        rest = bytes.from(length);
        Some((entry[0], Bytes(entry)))
    })
}

/// Returns the sleep type of the state S5: the first number of the package `_S5_` in the machine's
/// byte code, which is searched for the bytes of this name. The type has three bits.
fn sleep_type(code: Bytes<'_>) -> Option<u8> {
    const PACKAGE: u8 = 0x12;
    const BYTE: u8 = 0x0a;
    let at = code.0.windows(5).position(|bytes| bytes == b"_S5_\x12")? + 4;
    debug_assert_eq!(code.u8(at), Some(PACKAGE));
    // The two highest bits of a package's length are the number of its further bytes. The number of
    // elements follows the length.
    let more = usize::from(code.u8(at + 1)? >> 6);
    let first = at + 3 + more;
    match code.u8(first)? {
        BYTE => code.u8(first + 1).map(|kind| kind & 7),
        // The codes of Zero and One are 0 and 1.
        small @ (0 | 1) => Some(small),
        _ => None,
    }
}
