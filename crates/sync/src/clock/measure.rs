//! Measuring how far the counters of CPUs are apart.
//!
//! Two threads, each on its own CPU, pass a word back and forth. The thread that writes the word
//! stores its stamp in it; the thread that sees the change reads its own counter and subtracts:
//!
//! ```text
//! leader    reads s ── writes s ──────────── sees t ── reads, minus t
//!                              ╲            ╱
//! follower                      sees s ── reads, minus s; reads t ── writes t
//! ```
//!
//! The word was written after its stamp was read, and seen before the other counter was. So each
//! difference is how far the reader's counter is ahead, plus the time that has passed: never less
//! than the first. The minimum of many is close to it, because in some rounds no thread was
//! interrupted.
//!
//! ```text
//! word    stamp << 1 | whose        whose: 1 the leader's, 0 the follower's
//!         0                         no thread was here
//!         all ones                  the leader is done
//! ```
//!
//! The two threads share only this word, so its accesses are relaxed:
//! [`counter`](antiphon_platform::Clocks::counter) promises that readings stay where they are in
//! the program. A stamp loses its highest bit, which comes back with the difference.
//!
//! **All CPUs.** One CPU, the hub, meets each of the others in turn: n − 1 meetings, two threads at
//! a time. The bound between two others, `a` and `b`, follows by the hub: `b` is ahead of `a` by at
//! most the sum of what the hub is ahead of `a` and `b` is ahead of the hub. That proves a bound,
//! as a meeting of the two would; it adds up two delays instead of one, so the bound is up to twice
//! as large. *Turned down:* all pairs, as published: 18 336 meetings on 192 CPUs and two million on
//! 2048, while the program waits for its clock.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Budget, Clock, Platform};

const DONE: u64 = u64::MAX;
const LEADERS: u64 = 1;
/// Minimum number of rounds, however long they take: in the first rounds the other thread may not
/// have its CPU yet.
const LEAST_ROUNDS: u32 = 16;
/// How long a thread spins for an answer before it lets others run: as long as a time slice, so
/// that even on a busy machine both threads sometimes run at the same time.
const SPIN: Budget = Budget::ns(4_000_000);

/// Where a leader and a follower meet, once. All bits zero: no thread has come. It fills two cache
/// lines, because CPUs fetch the next line along.
#[repr(C, align(128))]
pub struct Meeting<P: Platform> {
    word: P::U64,
}

/// An upper bound of how far the counter of a thread's own CPU is ahead of the other's, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// The minimum of all samples. Negative if the own counter is behind.
    pub ahead: i64,
    /// The step in which the counter counts, or a multiple of it.
    pub step: u64,
}

impl<P: Platform> Meeting<P> {
    /// A meeting to which no thread has come.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { word: P::U64::ZERO }
    }

    /// Meets a follower for `rounds` rounds (one, if 0), or until `within_ns` nanoseconds have
    /// passed and at least 16 rounds were made. Waits for the follower by spinning.
    pub fn lead(&self, rounds: u32, within_ns: u64) -> Least {
        let end_ns = P::now(Clock::Monotonic).saturating_add(within_ns);
        let mut samples = Samples::begin::<P>();
        for round in 0..rounds.max(1) {
            if round >= LEAST_ROUNDS && P::now(Clock::Monotonic) > end_ns {
                break;
            }
            self.word.store(P::counter() << 1 | LEADERS, Relaxed);
            let word = self.wait_while(|word| word & LEADERS != 0);
            samples.add(word, P::counter());
        }
        self.word.store(DONE, Relaxed);
        samples.least()
    }

    /// Meets a leader for as long as the leader wants. Waits for it by spinning.
    pub fn follow(&self) -> Least {
        let mut samples = Samples::begin::<P>();
        loop {
            let word = self.wait_while(|word| word & LEADERS == 0);
            if word == DONE {
                return samples.least();
            }
            samples.add(word, P::counter());
            self.word.store(P::counter() << 1, Relaxed);
        }
    }

    fn wait_while(&self, keep: impl Fn(u64) -> bool) -> u64 {
        let word = self.word.spin_while(Relaxed, SPIN, &keep);
        word.unwrap_or_else(|_| self.word.wait_while(Relaxed, keep))
    }
}

/// The samples of one side.
struct Samples {
    ahead: i64,
    step: u64,
    last: u64,
}

impl Samples {
    /// Waits for the next step of the counter.
    fn begin<P: Platform>() -> Self {
        let first = P::counter();
        let last = P::counter_after(first);
        Self { ahead: i64::MAX, step: last.wrapping_sub(first), last }
    }

    /// Adds a sample: the other thread's word, and the own counter when the word was seen.
    fn add(&mut self, word: u64, now: u64) {
        let ahead = (now << 1).wrapping_sub(word & !LEADERS).cast_signed() >> 1;
        self.ahead = self.ahead.min(ahead);
        self.step = common_divisor(self.step, now.wrapping_sub(self.last));
        self.last = now;
    }

    fn least(self) -> Least {
        Least { ahead: self.ahead, step: self.step }
    }
}

/// Returns the greatest common divisor; if one number is 0, the other one.
fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// How far the counters of a hub and of all CPUs that it has met can be apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// Bound for the hub and any other CPU.
    direct: i64,
    /// Bound for any two other CPUs, by way of the hub, if it has met two.
    around: Option<i64>,
    /// The largest bound of any CPU ahead of the hub, and of the hub ahead of any CPU.
    furthest: Option<(i64, i64)>,
    step: u64,
}

impl Apart {
    /// The result for a hub alone.
    #[must_use]
    pub const fn new() -> Self {
        Self { direct: 0, around: None, furthest: None, step: 0 }
    }

    /// Adds a further CPU: the samples of the hub, as the leader, and of that CPU.
    pub fn add(&mut self, hub: Least, other: Least) {
        self.direct = self.direct.max(other.ahead).max(hub.ahead);
        let (mut ahead, mut behind) = (other.ahead, hub.ahead);
        if let Some((others_ahead, hub_ahead)) = self.furthest {
            let both = (other.ahead + hub_ahead).max(hub.ahead + others_ahead);
            self.around = self.around.max(Some(both));
            (ahead, behind) = (ahead.max(others_ahead), behind.max(hub_ahead));
        }
        self.furthest = Some((ahead, behind));
        self.step = self.step.max(hub.step).max(other.step);
    }

    /// Returns the bound in ticks, rounded up: a difference below a counter's step is not seen, and
    /// by way of the hub this happens twice.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        let with = |bound: i64, steps: u64| {
            bound.max(0).cast_unsigned().saturating_add(self.step.saturating_mul(steps))
        };
        self.around.map_or(0, |around| with(around, 2)).max(with(self.direct, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn least(ahead: i64) -> Least {
        Least { ahead, step: 1 }
    }

    fn of(samples: &[(u64, u64)]) -> Least {
        let mut all = Samples { ahead: i64::MAX, step: 0, last: 0 };
        samples.iter().for_each(|&(stamp, now)| all.add(stamp << 1 | LEADERS, now));
        all.least()
    }

    #[test]
    fn a_round_in_which_a_thread_lost_its_cpu_changes_nothing() {
        let quiet = [(1_000, 1_140), (2_000, 2_150), (3_000, 3_145)];
        assert_eq!(of(&quiet).ahead, 140);
        for lost in 0..3 {
            let mut samples = quiet;
            samples[lost].1 += 10_000_000;
            assert!((140..=145).contains(&of(&samples).ahead), "{lost}");
        }
        // In all rounds: still a bound, but a wide one.
        assert_eq!(of(&[(1_000, 9_001_000)]).ahead, 9_000_000);
    }

    #[test]
    fn a_counter_may_be_behind_and_its_highest_bit_may_change() {
        assert_eq!(of(&[(5_000, 4_100), (6_000, 5_200)]).ahead, -900);
        let high = 1 << 63;
        assert_eq!(of(&[(high - 10, high + 90)]).ahead, 100);
        assert_eq!(of(&[(high + 10, high - 90)]).ahead, -100);
    }

    #[test]
    fn a_step_is_what_all_distances_are_made_of() {
        assert_eq!(of(&[(0, 40), (0, 120), (0, 120), (0, 360)]).step, 40);
        assert_eq!(of(&[(0, 40), (0, 121), (0, 123)]).step, 1);
    }

    #[test]
    fn two_cpus_are_apart_by_the_larger_way() {
        let mut apart = Apart::new();
        assert_eq!(apart.ticks(), 0);
        apart.add(least(140), least(160));
        assert_eq!(apart.ticks(), 161);
        // 800 behind: this decides.
        apart.add(least(950), least(-650));
        assert_eq!(apart.ticks(), 950 + 160 + 2);
    }

    #[test]
    fn coarse_counters_are_rounded_twice_by_way_of_the_hub() {
        let coarse = |ahead| Least { ahead, step: 40 };
        let mut apart = Apart::new();
        apart.add(coarse(0), coarse(0));
        assert_eq!(apart.ticks(), 40);
        apart.add(coarse(0), coarse(0));
        assert_eq!(apart.ticks(), 80);
    }

    #[test]
    fn the_bound_covers_any_two_of_many() {
        let mut state = 1_u64;
        let mut random = move |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % most) as i64
        };
        for _ in 0..200 {
            let offsets: [i64; 8] = core::array::from_fn(|_| random(1_000));
            let mut apart = Apart::new();
            for offset in &offsets[1..] {
                let hub = least(offsets[0] - offset + random(50));
                apart.add(hub, least(offset - offsets[0] + random(50)));
            }
            let furthest = offsets.iter().max().unwrap() - offsets.iter().min().unwrap();
            assert!(apart.ticks() >= furthest as u64, "{offsets:?}: {apart:?}");
            assert!(apart.ticks() <= furthest as u64 + 2 * 50 + 1, "{offsets:?}: {apart:?}");
        }
    }
}
