//! How tasks come to workers that have none: whom they steal from, and how much.
//!
//! Where one begins is drawn from all, and each is tried once, in an order that begins elsewhere
//! each time. The dissertation's choice was from all including the thief, who then took the next:
//! so one had twice the weight of the others, and the last had none but for one thief.

use antiphon_sync::queue::{Stolen, WorkQueue};

use super::policy::{Others, Own};

/// How tasks spread.
pub trait Spread: Send + Sync {
    /// Takes tasks of others for a worker that has none.
    fn steal<Q: WorkQueue>(
        &self,
        own: &Own<'_, Q>,
        others: &Others<'_, Q>,
        random: impl FnOnce() -> u32,
    ) -> Stolen;
}

/// How much a thief takes of what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// One.
    One,
    /// Half, rounded up.
    Half,
}

impl Share {
    const fn of(self, there: u64) -> u64 {
        match self {
            Self::One => 1,
            Self::Half => there.div_ceil(2),
        }
    }
}

/// From anybody.
#[derive(Clone, Copy, Debug)]
pub struct Steal {
    /// How much.
    pub share: Share,
}

impl Spread for Steal {
    fn steal<Q: WorkQueue>(
        &self,
        own: &Own<'_, Q>,
        others: &Others<'_, Q>,
        random: impl FnOnce() -> u32,
    ) -> Stolen {
        let ranks = shuffled(others.count(), random());
        let share = self.share;
        others.try_each(ranks, |victim| own.steal(victim, move |there| share.of(there)))
    }
}

/// From the `range` nearest first, and then from the rest.
///
/// The dissertation's neighbours take from these alone, and spin for ever; here who finds nothing
/// among them looks farther before it sleeps, or a task could wait for a worker that sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    /// How many.
    pub range: usize,
    /// How much.
    pub share: Share,
}

impl Spread for Neighbours {
    fn steal<Q: WorkQueue>(
        &self,
        own: &Own<'_, Q>,
        others: &Others<'_, Q>,
        random: impl FnOnce() -> u32,
    ) -> Stolen {
        let (all, random) = (others.count(), random());
        let near = self.range.min(all);
        let far = shuffled(all - near, random).map(|rank| rank + near);
        let ranks = shuffled(near, random).chain(far);
        let share = self.share;
        others.try_each(ranks, |victim| own.steal(victim, move |there| share.of(there)))
    }
}

/// The numbers below `count`, each once, the first of them drawn evenly.
fn shuffled(count: usize, random: u32) -> impl Iterator<Item = usize> {
    let (low, high) = (random as usize & 0xffff, random as usize >> 16);
    // Where there is none, nothing is asked for below.
    let of = count.max(1);
    let step = (high % of + 1..).find(|&step| coprime(step, of)).unwrap_or(1);
    (0..count).map(move |turn| (low + turn * step) % of)
}

fn coprime(mut a: usize, mut b: usize) -> bool {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_victim_is_tried_once() {
        for count in 0..40 {
            for random in [0, 1, 0x0003_0007, 0xffff_ffff, 0x1234_5678] {
                let mut ranks: Vec<_> = shuffled(count, random).collect();
                ranks.sort_unstable();
                assert_eq!(ranks, (0..count).collect::<Vec<_>>());
            }
        }
    }

    /// The defect of the dissertation's choice.
    #[test]
    fn none_is_tried_first_more_often_than_others() {
        const COUNT: usize = 5;
        let mut first = [0_u32; COUNT];
        for random in 0..10_000_u32 {
            first[shuffled(COUNT, random.wrapping_mul(0x9e37_79b9)).next().unwrap()] += 1;
        }
        assert!(first.iter().all(|&times| (1_900..2_100).contains(&times)), "{first:?}");
    }
}
