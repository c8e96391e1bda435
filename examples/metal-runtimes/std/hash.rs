//! Hashes: without a source of random numbers, the same in each run.

pub use core::hash::{Hash, Hasher};

/// The hash of Fowler, Noll and Vo, with 64 bits.
#[derive(Clone, Debug)]
pub struct DefaultHasher(u64);

impl DefaultHasher {
    /// Of nothing yet.
    #[expect(clippy::new_without_default, reason = "the runtimes ask for no other")]
    #[must_use]
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for DefaultHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
