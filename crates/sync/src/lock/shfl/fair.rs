//! Fairness: how long a head that was called may be overtaken.
//!
//! Other threads can take the lock while the called head is on its way, perhaps to a CPU that
//! another thread uses. This makes the lock fast, but must not go on for ever. So from a certain
//! time on the lock is kept for the head (`FAIR`): the head asks for it as soon as it runs; if the
//! head does not come, the thread that releases the lock reserves it.
//!
//! ```text
//!   asks ──► called ──── may be overtaken ────────► due ──► a release keeps it ──► takes it
//!              │◄ at least ►│ runs: may insist       │             │◄── lateness ──►│
//!              │◄────────────── patience ───────────►│
//! ```
//!
//! Keeping the lock for a head that runs costs no more than a hand-over. While the lock is kept for
//! a head that does not run, no thread can use it. How long that lasts depends on the machine's
//! other work: microseconds where the head only needs the CPU of the thread that it waits for, a
//! time slice where other programs want that CPU too. So the process remembers how late a head was,
//! and makes no head due until [`SHARE`] times as long has passed since its call; it remembers a
//! lesson for the same time. On any machine, a lock loses at most one part in [`SHARE`] of its time
//! to fairness. Where heads come late they do not spin either, because other programs want the
//! CPUs.
//!
//! The lateness is the time for which a kept lock stood idle, from due to taken, and not the time
//! from called to taken. The second contains the patience at the time, so each lesson would be
//! [`SHARE`] times the last, and soon no head would be due, even one that waits only for the CPU of
//! a thread of its own process. On a CPU that 150 other programs want, a head is half a second
//! late. When lessons ended after a second, they cost a third of the time there; hence [`LONGEST`].

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Clock, Platform, Waiter};

use super::form::Form;
use crate::arena;

/// At most one part in `SHARE` of the time may be lost to fairness.
const SHARE: u32 = 20;
/// The longest patience of a waiter: 17 seconds. That is [`SHARE`] times what a head needs for its
/// turn on a CPU that 250 other programs want, too.
const LONGEST: u32 = 1 << 24;
/// How long a head is [excused](Patience::excuse): about a second.
const EXCUSED: u32 = 1 << 20;
/// How long an overtaking thread must hold the lock, so that one more contending thread is a gain.
/// Threads with shorter sections spend their time waiting for the lock's cache line.
const LONG: u32 = 1;
/// Time that a lock loses when it is kept for a head without a CPU: two switches and a wake.
const HAND_OVER: u32 = 10_000 >> UNIT_BITS;
/// A head that is later than this lost its CPU to another program: half a millisecond.
const LATE: u32 = 500_000 >> UNIT_BITS;

/// The patience of waiters in a lock of form `F`. All accesses are relaxed: these words decide how
/// long something takes and not what its result is; a caller that is late may even write to the
/// node's next wait.
pub(super) struct Patience<F>(PhantomData<F>);

impl<F: Form> Patience<F> {
    /// Whether the patience of waiters never ends. If so, nothing is noted.
    pub(super) const ENDLESS: bool = F::PATIENCE_NS == u32::MAX;
    const LEAST: u32 = F::PATIENCE_NS >> UNIT_BITS;

    /// Resets the patience of `node`, the caller's, when its wait begins.
    pub(super) fn begin<P: Platform>(node: &Waiter<P>) {
        if !Self::ENDLESS {
            node.due.store(0, Relaxed);
        }
    }

    /// Notes that the waiter is called: its patience begins to run, unless it runs already.
    pub(super) fn call<P: Platform>(node: &Waiter<P>) {
        if !Self::ENDLESS && !Self::was_called(node) {
            let now = now::<P>();
            let patience = Lesson::load::<P>().at(now).max(Self::LEAST);
            node.called.store(now, Relaxed);
            node.due.store(now.wrapping_add(patience) | 1, Relaxed);
        }
    }

    /// Returns whether the waiter was called in this wait.
    pub(super) fn was_called<P: Platform>(node: &Waiter<P>) -> bool {
        !Self::ENDLESS && node.due.load(Relaxed) != 0
    }

    /// Returns whether the waiter, which runs, has been overtaken for long enough to have the lock
    /// kept.
    pub(super) fn may_insist<P: Platform>(node: &Waiter<P>) -> bool {
        Self::was_called(node) && now::<P>().wrapping_sub(node.called.load(Relaxed)) >= Self::LEAST
    }

    /// Returns whether the waiter was called, and its patience has run out.
    pub(super) fn is_over<P: Platform>(node: &Waiter<P>) -> bool {
        if Self::ENDLESS {
            return false;
        }
        let due = node.due.load(Relaxed);
        // No waiter is due later than `LONGEST` from now: such a time is long past, and the clock
        // has wrapped.
        due != 0 && due.wrapping_sub(now::<P>()).wrapping_sub(1) > LONGEST
    }

    /// Returns whether the caller, which releases a lock and overtakes its head, must check if the
    /// head is due: once in [`Form::LOOK`] times.
    #[inline]
    pub(super) fn looks<P: Platform>() -> bool {
        let counts = || {
            P::local(|local| {
                let times = local.overtook.load(Relaxed).wrapping_add(1);
                local.overtook.store(times, Relaxed);
                times.is_multiple_of(F::LOOK)
            })
        };
        !Self::ENDLESS && counts()
    }

    /// Returns whether the head of this name, which was called and which the caller overtakes, is
    /// due. If so, the lock must be kept for the head, which may wait for the caller's CPU. Touches
    /// only nodes.
    pub(super) fn is_due<P: Platform>(name: u16) -> bool {
        let head = arena::<P>().resolve_index(name.into());
        head.is_some_and(|head| Self::keep_if(Self::is_over(head), head))
    }

    /// Returns the head of this name, if it could have come long ago and the threads that overtake
    /// it hold the lock for long enough that others would have come in beside them: [`LONG`] for
    /// the caller, which checks once in [`Form::LOOK`] times. Touches only nodes.
    pub(super) fn late<P: Platform>(name: u16) -> Option<&'static Waiter<P>> {
        let now = now::<P>();
        let looked = P::local(|local| {
            let looked = local.looked.load(Relaxed);
            local.looked.store(now, Relaxed);
            looked
        });
        let long = now.wrapping_sub(looked) >= LONG * F::LOOK;
        arena::<P>().resolve_index(name.into()).filter(|head| long && Self::may_insist(head))
    }

    /// Returns whether the lock must be kept for a late head: the head is due, and the
    /// [`HAND_OVER`] that this costs the others is at most one part in [`SHARE`] of the time.
    pub(super) fn keeps_for<P: Platform>(head: &Waiter<P>) -> bool {
        let called = now::<P>().wrapping_sub(head.called.load(Relaxed));
        Self::keep_if(called >= SHARE * HAND_OVER && Self::is_over(head), head)
    }

    /// Returns whether heads have been late recently.
    pub(super) fn heads_are_late<P: Platform>() -> bool {
        if Self::ENDLESS {
            return false;
        }
        let lesson = Lesson::load::<P>();
        // In this order, because usually nothing was learnt, and then the clock is not read.
        lesson.patience > SHARE * LATE && lesson.left(now::<P>()) > 0
    }

    /// Notes that the lock was kept for the waiter, which did not come: it is not due again for a
    /// long time.
    pub(super) fn excuse<P: Platform>(node: &Waiter<P>) {
        if !Self::ENDLESS {
            node.due.store(now::<P>().wrapping_add(EXCUSED) | 1, Relaxed);
        }
    }

    /// [Excuses](Self::excuse) the waiter, which another waiter has passed by, unless it may be on
    /// its way: it was called less than a backstop ago, and the lock was not `kept` for it, or not
    /// for longer than [`LATE`].
    pub(super) fn excuse_late<P: Platform>(node: &Waiter<P>, kept: bool) {
        let (now, due) = (now::<P>(), node.due.load(Relaxed));
        let backstop = (F::BACKSTOP_NS >> UNIT_BITS).min(u64::from(u32::MAX / 2)) as u32;
        let is_late = kept && now.wrapping_sub(due) > LATE;
        let called = now.wrapping_sub(node.called.load(Relaxed));
        if is_late || due != 0 && called >= backstop {
            Self::excuse(node);
        }
    }

    /// Returns whether the waiter was [excused](Self::excuse) of late.
    pub(super) fn is_excused<P: Platform>(node: &Waiter<P>) -> bool {
        let due = node.due.load(Relaxed);
        !Self::ENDLESS
            && due != 0
            && (EXCUSED / 2..=EXCUSED + 1).contains(&due.wrapping_sub(now::<P>()))
    }

    /// Notes that the lock is kept for the waiter from now on.
    pub(super) fn keep<P: Platform>(node: &Waiter<P>) {
        if !Self::ENDLESS {
            node.due.store(now::<P>(), Relaxed);
        }
    }

    /// Notes that the lock is kept for the waiter from now on, if it `is_due`; returns `is_due`.
    pub(super) fn keep_if<P: Platform>(is_due: bool, node: &Waiter<P>) -> bool {
        if is_due {
            Self::keep(node);
        }
        is_due
    }

    /// Notes that the head has the lock: the process learns how late the head was, if the lock was
    /// kept for it.
    pub(super) fn learn<P: Platform>(node: &Waiter<P>, kept: bool) {
        if Self::ENDLESS || !kept {
            return;
        }
        let due = node.due.load(Relaxed);
        if due != 0 {
            let now = now::<P>();
            // Negative if the head took the lock before the owner had noted the time.
            let late = now.wrapping_sub(due).cast_signed().max(0);
            Lesson::learn::<P>(late.cast_unsigned(), now);
        }
    }
}

/// What the process has learnt of late heads: the patience to use, and when it was learnt. A lesson
/// is valid for as long as its own patience lasts.
struct Lesson {
    patience: u32,
    learnt: u32,
}

impl Lesson {
    fn load<P: Platform>() -> Self {
        let bits = arena::<P>().lesson.load(Relaxed);
        Self { patience: (bits >> 32) as u32, learnt: bits as u32 }
    }

    /// Returns the patience to use at `now`.
    fn at(&self, now: u32) -> u32 {
        if self.left(now) == 0 { 0 } else { self.patience }
    }

    /// Returns how long the lesson is still valid.
    fn left(&self, now: u32) -> u32 {
        self.patience.saturating_sub(now.wrapping_sub(self.learnt))
    }

    /// Records that a head was `late` by this much. An earlier lesson that lasts longer stays.
    fn learn<P: Platform>(late: u32, now: u32) {
        let patience = late.saturating_mul(SHARE).min(LONGEST);
        if patience > Self::load::<P>().left(now) {
            arena::<P>().lesson.store(u64::from(patience) << 32 | u64::from(now), Relaxed);
        }
    }
}

/// The unit of all times in this file is 1024 ns.
const UNIT_BITS: u32 = 10;

/// Returns the present time in units of 1024 ns, made odd; wraps around after 73 minutes.
fn now<P: Platform>() -> u32 {
    (P::now(Clock::Monotonic) >> UNIT_BITS) as u32 | 1
}

#[cfg(test)]
mod tests {
    extern crate std;

    use antiphon_sim::{Machine, Sim, Simulation, work};

    use super::*;
    use crate::lock::Standard;

    type Standards = Patience<Standard>;

    /// Runs `test` on one thread of a simulated machine, which alone tells the time.
    fn simulated(test: fn(&Waiter<Sim>)) {
        let thread = move |_| {
            let node = Waiter::NEW;
            test(&node);
        };
        let done =
            Simulation::new(Machine::two_sockets(), 1).threads(1, thread).grace_ns(1 << 50).run(0);
        assert!(done.is_ok(), "{:?}", done.err());
    }

    #[test]
    fn a_called_waiter_is_due_when_its_patience_ends() {
        simulated(|node| {
            Standards::begin(node);
            assert!(!Standards::was_called(node) && !Standards::is_over(node));
            Standards::call(node);
            assert!(Standards::was_called(node) && !Standards::is_over(node));
            work(u64::from(Standard::PATIENCE_NS) / 2);
            Standards::call(node);
            assert!(!Standards::is_over(node));
            work(u64::from(Standard::PATIENCE_NS) / 2 + 4096);
            assert!(Standards::is_over(node), "a second call gives no more time");
            Standards::excuse_late(node, true);
            assert!(Standards::is_over(node), "it may be on its way");
            work(u64::from(LATE + 1) << UNIT_BITS);
            Standards::excuse_late(node, true);
            assert!(!Standards::is_over(node));
            work(u64::from(EXCUSED + 4) << UNIT_BITS);
            assert!(Standards::is_over(node));
        });
    }

    #[test]
    fn where_a_head_was_late_all_are_patient_for_twenty_times_as_long_and_then_no_more() {
        simulated(|node| {
            const LATE: u32 = 1000;
            Standards::begin(node);
            Standards::keep(node);
            work(u64::from(LATE) << UNIT_BITS);
            Standards::learn(node, true);
            assert!(Standards::heads_are_late::<Sim>());
            let learnt = Lesson::load::<Sim>().patience;
            assert!((SHARE * (LATE - 2)..=SHARE * (LATE + 2)).contains(&learnt), "{learnt}");

            // A head that was hardly late changes nothing.
            Standards::keep(node);
            Standards::learn(node, true);
            assert_eq!(Lesson::load::<Sim>().patience, learnt);

            let other = Waiter::<Sim>::NEW;
            Standards::begin(&other);
            Standards::call(&other);
            work(u64::from(learnt - 4) << UNIT_BITS);
            assert!(!Standards::is_over(&other), "others have learnt of it");
            assert!(Standards::may_insist(&other), "one that runs may ask all the same");
            work(8 << UNIT_BITS);
            assert!(Standards::is_over(&other) && !Standards::heads_are_late::<Sim>());

            Standards::begin(&other);
            Standards::call(&other);
            work(u64::from(Standard::PATIENCE_NS) + 4096);
            assert!(Standards::is_over(&other), "the lesson is forgotten");
        });
    }

    #[test]
    fn a_head_that_is_late_by_the_turn_of_a_crowd_is_waited_for_as_long_as_that_deserves() {
        simulated(|node| {
            const LATE: u32 = 600_000;
            Standards::begin(node);
            Standards::keep(node);
            work(u64::from(LATE) << UNIT_BITS);
            Standards::learn(node, true);
            let learnt = Lesson::load::<Sim>().patience;
            assert!(learnt >= SHARE * (LATE - 2), "{learnt}");
            work(u64::from(learnt - 4) << UNIT_BITS);
            assert!(Standards::heads_are_late::<Sim>());

            Standards::keep(node);
            work(u64::from(u32::MAX / 2) << UNIT_BITS);
            Standards::learn(node, true);
            assert_eq!(Lesson::load::<Sim>().patience, LONGEST, "and no longer");
        });
    }

    #[test]
    fn a_lock_is_kept_for_a_late_head_when_that_costs_one_part_in_twenty() {
        simulated(|node| {
            Standards::begin(node);
            Standards::call(node);
            work(u64::from(Standard::PATIENCE_NS) + 4096);
            assert!(Standards::is_over(node) && !Standards::keeps_for(node));
            work(u64::from(SHARE * HAND_OVER) << UNIT_BITS);
            assert!(Standards::keeps_for(node));
            Standards::excuse(node);
            assert!(!Standards::keeps_for(node), "it is not due");
        });
    }

    #[test]
    fn a_lock_that_was_not_kept_teaches_nothing() {
        simulated(|node| {
            Standards::begin(node);
            Standards::call(node);
            work(1 << 30);
            Standards::learn(node, false);
            assert_eq!(Lesson::load::<Sim>().patience, 0);
        });
    }

    #[test]
    fn a_time_that_is_long_past_stays_past_when_the_clock_wraps() {
        simulated(|node| {
            for ago in [0, 1 << 20, 1 << 31, u32::MAX - 2 * LONGEST] {
                node.due.store(now::<Sim>().wrapping_sub(ago) | 1, Relaxed);
                work(4096);
                assert!(Standards::is_over(node), "{ago} units ago");
            }
        });
    }
}
