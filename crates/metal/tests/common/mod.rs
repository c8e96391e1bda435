//! Firmware's tables in memory, for tests.

use antiphon_metal::bytes::Memory;

/// Physical memory that begins at `BASE`.
pub struct Ram(pub Vec<u8>);

pub const BASE: u64 = 0x1000;

impl Memory for Ram {
    fn read(&self, address: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(address.checked_sub(BASE)?).ok()?;
        self.0.get(from..from.checked_add(length)?)
    }
}

/// A table with its header and the right checksum.
pub fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut table = signature.to_vec();
    table.extend((36 + body.len() as u32).to_le_bytes());
    table.resize(36, 0);
    table.extend(body);
    let sum = table.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    table[9] = 0_u8.wrapping_sub(sum);
    table
}

/// Memory with a root pointer at `BASE`, an XSDT, and these tables.
pub fn machine(tables: &[Vec<u8>]) -> Ram {
    let mut ram = vec![0; 36];
    let mut addresses = Vec::new();
    for table in tables {
        addresses.extend((BASE + ram.len() as u64).to_le_bytes());
        ram.extend(table);
    }
    let root = BASE + ram.len() as u64;
    ram.extend(table(b"XSDT", &addresses));
    ram[..8].copy_from_slice(b"RSD PTR ");
    ram[15] = 2;
    ram[20..24].copy_from_slice(&36_u32.to_le_bytes());
    ram[24..32].copy_from_slice(&root.to_le_bytes());
    for (at, end) in [(8, 20), (32, 36)] {
        let sum = ram[..end].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        ram[at] = 0_u8.wrapping_sub(sum);
    }
    Ram(ram)
}
