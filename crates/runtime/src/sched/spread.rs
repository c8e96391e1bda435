//! How tasks reach workers without tasks: from which workers they steal, and how many.
//!
//! The thief starts at a random one of the other workers, and tries each once, in an order with a
//! random start. The dissertation draws from all workers including the thief, which then takes the
//! next one: so one worker had twice the weight of the others, and the last was drawn by one thief
//! only.

use alloc::boxed::Box;

use antiphon_sync::queue::{Stolen, WorkQueue};

use super::policy::{Others, Own, Victim};

/// How tasks reach workers without tasks.
///
/// # Safety
///
/// See [`Policy`](super::Policy): the spread hands out only tasks that it has stolen.
pub unsafe trait Spread: Send + Sync {
    /// Steals tasks for a worker that has none.
    fn steal<Q: WorkQueue>(
        &self,
        own: &Own<'_, Q>,
        others: &Others<'_, Q>,
        random: impl FnOnce() -> u32,
    ) -> Stolen;
}

/// How many of the victim's tasks a thief takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// One task.
    One,
    /// Half of the tasks, rounded up.
    #[default]
    Half,
    /// Half, if the victim has at least this many tasks; otherwise none, because the victim is
    /// about to run them. So they wait if that worker is in a long task.
    HalfOfMany(u64),
}

impl Share {
    const fn of(self, there: u64) -> u64 {
        match self {
            Self::One => 1,
            Self::Half | Self::HalfOfMany(_) => there.div_ceil(2),
        }
    }

    /// Takes this share of the victim's tasks.
    pub(super) fn take<Q: WorkQueue>(self, own: &Own<'_, Q>, victim: Victim<'_, Q>) -> Stolen {
        match self {
            Self::HalfOfMany(least) if victim.tasks() < least => match victim.tasks() {
                0 => Stolen::Empty,
                _ => Stolen::Retry,
            },
            _ => own.steal(victim, move |there| self.of(there)),
        }
    }
}

/// Steals from any worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steal {
    /// How many tasks a thief takes.
    pub share: Share,
}

// SAFETY: tasks are handed out only from queues.
unsafe impl Spread for Steal {
    fn steal<Q: WorkQueue>(
        &self,
        own: &Own<'_, Q>,
        others: &Others<'_, Q>,
        random: impl FnOnce() -> u32,
    ) -> Stolen {
        let ranks = shuffled(others.count(), random());
        others.try_each(ranks, |victim| self.share.take(own, victim))
    }
}

/// Steals from the `range` nearest workers first, and then from the rest.
///
/// The dissertation's neighbours steal only from these, and spin for ever. Here a thief that finds
/// no task among them tries the others before it sleeps; otherwise a task could wait for a worker
/// that sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    /// The number of near workers.
    pub range: usize,
    /// How many tasks a thief takes.
    pub share: Share,
}

// SAFETY: tasks are handed out only from queues.
unsafe impl Spread for Neighbours {
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
        others.try_each(ranks, |victim| self.share.take(own, victim))
    }
}

/// Steals from any worker, and first from one that is drawn by weight.
///
/// A worker on a CPU of half the capacity takes twice as long for its tasks: with a weight of 2 it
/// is tried first twice as often.
#[derive(Clone, Debug)]
pub struct ByWeight {
    /// The weights of the workers, by number; 0 for those that are not there.
    pub weights: Box<[u32]>,
    /// How many tasks a thief takes.
    pub share: Share,
}

// SAFETY: tasks are handed out only from queues.
unsafe impl Spread for ByWeight {
    fn steal<Q: WorkQueue>(
        &self,
        own: &Own<'_, Q>,
        others: &Others<'_, Q>,
        random: impl FnOnce() -> u32,
    ) -> Stolen {
        let random = random();
        let drawn = drawn(&self.weights, own.seat(), random);
        let first = drawn.and_then(|worker| others.worker(worker));
        match first.map_or(Stolen::Empty, |victim| self.share.take(own, victim)) {
            got @ Stolen::Got(_) => got,
            told => match (Steal { share: self.share }).steal(own, others, || random) {
                Stolen::Empty => told,
                other => other,
            },
        }
    }
}

/// Returns a number whose weight is not 0, other than `me`; `None` if there is none.
fn drawn(weights: &[u32], me: usize, random: u32) -> Option<usize> {
    let others = || weights.iter().enumerate().filter(move |&(number, _)| number != me);
    let all: u64 = others().map(|(_, &weight)| u64::from(weight)).sum();
    let mut left = ((u128::from(random) * u128::from(all)) >> 32) as u64;
    let mut passed = |weight: u64| {
        let here = left < weight;
        left = left.wrapping_sub(weight);
        here
    };
    others().find(|&(_, &weight)| passed(weight.into())).map(|(number, _)| number)
}

/// Returns the numbers below `count`, each once, with an evenly drawn first number.
fn shuffled(count: usize, random: u32) -> impl Iterator<Item = usize> {
    let (low, high) = (random as usize & 0xffff, random as usize >> 16);
    // If there are no others, no number is used below.
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

    #[test]
    fn who_has_twice_the_weight_is_drawn_twice_as_often() {
        let mut drawn_first = [0_u32; 4];
        for random in 0..10_000_u32 {
            let random = random.wrapping_mul(0x9e37_79b9);
            drawn_first[drawn(&[5, 1, 2, 0], 0, random).expect("others have weight")] += 1;
        }
        assert_eq!([drawn_first[0], drawn_first[3]], [0, 0]);
        assert!((3_200..3_500).contains(&drawn_first[1]), "{drawn_first:?}");
        assert_eq!(drawn(&[5], 0, 7).or(drawn(&[], 0, 7)).or(drawn(&[5, 0], 0, u32::MAX)), None);
    }
}
