//! Reads of the firmware's tables in memory, each checked against the end of its table.

/// Physical memory that a parser may read.
pub trait Memory {
    /// Returns the `length` bytes at `address`; `None` unless all of them are memory.
    fn read(&self, address: u64, length: usize) -> Option<&[u8]>;
}

/// Little-endian fields of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    pub(crate) fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    pub(crate) fn u32(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    pub(crate) fn from(self, at: usize) -> Option<Bytes<'a>> {
        self.0.get(at..).map(Bytes)
    }

    /// Returns whether the sum of the bytes is zero, as in a well-formed table.
    pub(crate) fn adds_up(self) -> bool {
        self.0.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) == 0
    }
}
