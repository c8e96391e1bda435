//! Pseudorandom choices, where any of several places would do.

/// A thread's sequence of pseudorandom numbers: threads that draw from separate sequences do not
/// contend.
#[derive(Clone, Debug)]
pub struct Lot(u64);

impl Lot {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`, which must not be zero.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        // SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
        // (OOPSLA 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // The upper half is spread over the bound without a division.
        (((mixed >> 32) * bound as u64) >> 32) as usize
    }
}
