//! Pseudo-random numbers, reproducible by their seed.

/// A small generator of a known sequence (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Puts `items` in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.draw() % (last as u64 + 1)) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_keeps_all_and_repeats_with_its_seed() {
        let order = |seed| {
            let mut items: Vec<_> = (0..20).collect();
            Random(seed).shuffle(&mut items);
            items
        };
        let mut sorted = order(7);
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..20));
    }
}
