//! The weight of each member of a group whose CPU the kernel shares out by weight.
//!
//! The scheduler of a CPU gives a group's share to the member whose work is the most important. A
//! group that can't choose which member runs can choose weights: the first in the order of
//! importance has four times the weight of the second, that has eight times the weight of each of
//! the rest, and all of them together keep the weight that they had without this. So the
//! importances converge, as far as the member with the least can catch up, and no thread outside of
//! the group gains or loses.
//!
//! - WEIGH-1: the weights of a group's members that want the CPU add up to the sum of the weights
//!   that they have joined with.
//! - WEIGH-2: a weight can't be set exactly; the next choice makes up for the remainder, so the
//!   mean is exact.
//! - WEIGH-3: each member changes its weight when it runs, so a member that should weigh less does
//!   so sooner than one that should weigh more. So weights move slowly towards their targets,
//!   because ranks change often; the weight of all together is observed, and each member weighs
//!   more by what that falls short.

/// A member of a group that wants the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rival {
    /// The importance of the member's work: the less, the more important.
    pub importance: u64,
    /// The weight that the member has joined with, at least 1.
    pub weight: u32,
}

/// The rates by rank; later ranks have the last rate: no member is kept from the CPU for good.
const RATES: [u64; 3] = [32, 8, 1];
/// The unit for a mean of several rates.
const ONE: u64 = 1 << 16;

/// Returns the weight that `me` should have among `others`, in 1024ths of the weight that it has
/// joined with (WEIGH-1). Members of equal importance get equal parts of the CPU.
pub(super) fn part(me: Rival, others: impl Iterator<Item = Rival> + Clone) -> u32 {
    let all = || core::iter::once(me).chain(others.clone());
    let rated = |one: Rival| rate(one, all()) * u64::from(one.weight);
    let (weights, rates) = all().fold((0_u64, 0_u64), |(weights, rates), one| {
        (weights + u64::from(one.weight), rates + rated(one))
    });
    // 128 bits are enough for any sum: weights have 32 bits, and there are 64 members.
    let part = u128::from(rate(me, all())) * u128::from(weights) * 1024 / u128::from(rates.max(1));
    u32::try_from(part).unwrap_or(u32::MAX)
}

/// Returns the rate of a member, by the number of members that are more important. Members of equal
/// importance have the mean of their rates.
fn rate(one: Rival, all: impl Iterator<Item = Rival>) -> u64 {
    let (mut before, mut alike) = (0, 0);
    for other in all {
        before += usize::from(other.importance < one.importance);
        alike += usize::from(other.importance == one.importance);
    }
    let last = RATES.len() - 1;
    let rates = (before..before + alike.max(1)).map(|rank| RATES[rank.min(last)] * ONE);
    rates.sum::<u64>() / alike.max(1) as u64
}

/// The control of a member's weight. All values are in 1024ths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// By how much the last weights were too small (WEIGH-2).
    left: i64,
    /// The member's part, averaged over the last [`MEAN_NS`].
    part: i64,
    /// The factor on its part that gives the member's weight (WEIGH-3).
    scale: i64,
}

/// The weights of 0 to 12 steps, in 1024ths: 1.25 to that power.
const POWERS: [u32; 13] =
    [1024, 1280, 1600, 2000, 2500, 3125, 3906, 4883, 6104, 7629, 9537, 11921, 14901];
/// The greatest number of steps, up and down.
pub const MOST_STEPS: i32 = POWERS.len() as i32 - 1;
/// The time over which parts are averaged, in nanoseconds.
const MEAN_NS: u64 = 200_000_000;
/// The reciprocal of the fraction by which each member makes up for a shortfall of all weights, at
/// each choice.
const GAIN: i64 = 16;

impl Control {
    pub(super) const NEW: Self = Self { left: 0, part: 1024, scale: 1024 };

    /// From now on all members of the group weigh `weigh` together, and have joined with `joined`.
    pub(super) fn see(&mut self, weigh: u64, joined: u64) {
        let joined = i64::try_from(joined.max(1)).unwrap_or(i64::MAX);
        let short = joined.saturating_sub_unsigned(weigh);
        let by = i128::from(short) * 1024 / i128::from(joined) / i128::from(GAIN);
        let by = i64::try_from(by).unwrap_or(0).clamp(-64, 64);
        self.scale = (self.scale + by).clamp(512, 2048);
    }

    /// Returns how many steps from the weight that the member has joined with are nearest to its
    /// part, which has been `part` for `since_ns`, and to the remainder.
    pub(super) fn next(&mut self, part: u32, since_ns: u64) -> i32 {
        let of_mean = since_ns.min(MEAN_NS) as i64;
        self.part += (i64::from(part) - self.part) * of_mean / MEAN_NS as i64;
        let wanted = (self.part * self.scale / 1024 + self.left).max(1);
        let apart = |steps: &i32| (i64::from(weight(*steps)) - wanted).abs();
        let steps = (-MOST_STEPS..=MOST_STEPS).min_by_key(apart).unwrap_or(0);
        // Limited to a weight of one: a member that can't have the weight it wants does not
        // accumulate the difference.
        self.left = (wanted - i64::from(weight(steps))).clamp(-1024, 1024);
        steps
    }
}

/// The weight of `steps` steps: each step up is 1.25 times less, like nice values.
pub(super) fn weight(steps: i32) -> u32 {
    let power = POWERS[(steps.unsigned_abs() as usize).min(POWERS.len() - 1)];
    if steps <= 0 { power } else { 1024 * 1024 / power }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn parts(members: &[(u64, u32)]) -> Vec<u32> {
        let rival = |&(importance, weight): &(u64, u32)| Rival { importance, weight };
        let part_of = |at: usize| {
            let others = members.iter().enumerate().filter(move |(other, _)| *other != at);
            part(rival(&members[at]), others.map(|(_, it)| rival(it)))
        };
        (0..members.len()).map(part_of).collect()
    }

    #[test]
    fn the_most_important_has_four_times_the_next_and_all_have_what_they_had() {
        assert_eq!(parts(&[(5, 1024)]), [1024]);
        assert_eq!(parts(&[(5, 1024), (9, 1024)]), [1638, 409]);
        assert_eq!(parts(&[(9, 7), (9, 7), (9, 7)]), [1024; 3]);
        let many: Vec<_> = (0..64).map(|n| (n * n, 1024)).collect();
        let parts = parts(&many);
        assert!(parts.is_sorted_by(|one, next| one >= next), "{parts:?}");
        assert!(parts.iter().all(|&part| part > 0), "nobody is kept from the CPU");
        assert!((64 * 1024 - 64..=64 * 1024).contains(&parts.iter().sum::<u32>()), "{parts:?}");
    }

    #[test]
    fn weights_count_as_so_many_members() {
        let parts = parts(&[(1, 3000), (2, 1000)]);
        let sum = u64::from(parts[0]) * 3000 + u64::from(parts[1]) * 1000;
        assert!((4000 * 1024 - 4000..=4000 * 1024).contains(&sum), "{parts:?}");
        assert!(parts[0].abs_diff(4 * parts[1]) <= 4, "{parts:?}");
    }

    /// Eight members whose frames cost from 6 to 27 ms, and four that only compute. At each turn
    /// the member with the least CPU time for its weight runs for 2 ms, and only a running member
    /// changes its weight.
    #[test]
    fn who_is_behind_catches_up_and_others_have_what_they_had() {
        let costs_ns: [u64; 8] = core::array::from_fn(|n| 6_000_000 + 3_000_000 * n as u64);
        let (mut controls, mut steps) = ([Control::NEW; 8], [0; 8]);
        let (mut had_ns, mut virtual_ns) = ([0_u64; 12], [0_u64; 12]);
        let (turn_ns, turns) = (2_000_000, 10_000);
        let mut looked = [0; 8];
        for turn in 0..turns {
            let runs = (0..12).min_by_key(|&n| virtual_ns[n]).expect("twelve");
            let mut weighs = 1024;
            if let Some(control) = controls.get_mut(runs) {
                let members: Vec<_> = (0..8).map(|n| (had_ns[n] / costs_ns[n], 1024)).collect();
                let since_ns = turn_ns * (turn - core::mem::replace(&mut looked[runs], turn));
                steps[runs] = control.next(parts(&members)[runs], since_ns);
                control.see(steps.iter().map(|&steps| u64::from(weight(steps))).sum(), 8 * 1024);
                weighs = weight(steps[runs]);
            }
            had_ns[runs] += turn_ns;
            virtual_ns[runs] += turn_ns * 1024 / u64::from(weighs);
        }
        let frames: Vec<_> = (0..8).map(|n| had_ns[n] / costs_ns[n]).collect();
        // The costs differ by a factor of four and a half.
        let (least, most) = (frames.iter().min(), frames.iter().max());
        assert!(least.zip(most).is_some_and(|(least, most)| most * 5 <= least * 6), "{frames:?}");
        let share = had_ns[..8].iter().sum::<u64>() as f64 / (turn_ns * turns) as f64;
        assert!((share - 8.0 / 12.0).abs() < 0.01, "{share}");
    }

    #[test]
    fn in_the_mean_a_weight_is_what_it_is_to_be() {
        for part in [100, 256, 700, 1024, 1100, 1950, 4000, 12_000] {
            let mut control = Control::NEW;
            let sum: i64 = (0..1000).map(|_| i64::from(weight(control.next(part, MEAN_NS)))).sum();
            let mean = sum / 1000;
            assert!((mean - i64::from(part)).abs() <= 1 + i64::from(part) / 100, "{part}: {mean}");
        }
        // A weight that can't be had is not saved up.
        let mut control = Control::NEW;
        assert!((0..100).all(|_| control.next(u32::MAX, MEAN_NS) == -MOST_STEPS));
        assert!((0..3).map(|_| control.next(1024, MEAN_NS)).any(|steps| steps == 0));
    }
}
