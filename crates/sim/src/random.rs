//! Seeded pseudo-random numbers.

/// A generator of the splitmix64 family: small, and good enough to break lockstep.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates sequence number `stream` of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(mix(mix(seed).wrapping_add(stream)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to `most`.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        // The bias is below one in 2^40 for the delays that use this.
        if most == u64::MAX { self.next() } else { self.next() % (most + 1) }
    }
}

/// A bijection of the 64-bit numbers that flips about half of the bits for each bit changed.
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
