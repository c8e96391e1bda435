//! Reading what firmware has left in memory: each read is checked against the end of its table.

/// Physical memory, as far as a parser may look at it.
pub trait Memory {
    /// The `length` bytes at `address`; `None` if they are not all there.
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

    /// Whether the bytes add up to zero, as those of a sound table do.
    pub(crate) fn adds_up(self) -> bool {
        self.0.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) == 0
    }
}
