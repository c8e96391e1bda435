//! Writers that wait for each other, and not for the lock's word.
//!
//! While a lock counts its readers by socket, a writer that has to wait does so in a mutex of the
//! indicator. Only the mutex's owner wants the lock's word. It hands the mutex over together with
//! the lock: of many writers the first sets `WRITER` and waits for the readers of lines, and the
//! last lets readers in. In between no writer touches the lock's word; the lock goes on as a mutex
//! does, between waiters that are awake, within a socket first (`../handover.rs`).
//!
//! ```text
//!   comers  63    32     31       30    29      0        turn  31    16 15      0
//!          │  epoch  │ CLOSED │ RENEWED │ writers │            │  epoch │ number  │
//!
//!                                   no turn: sets WRITER, waits for readers
//!   write ──► counted ──► owns the mutex ──────────────────────────────────► turn 1
//!                                   └──────────────────────────────────────► turn n + 1
//!                                      a turn: has inherited WRITER
//!
//!                                   a waiter is awake: hands over
//!   unlock_write ──► not counted ──────────────────────────────► the next has turn n + 1
//!                            └─► ends the turn ──► unlocks the mutex ──► leaves
//! ```
//!
//! - HEIR-1: a writer is counted in `comers` from before it stands in the mutex until it has the
//!   lock and is about to leave it, or gives up. The indicator is given back by an exchange that
//!   finds none counted, and closes it: the mutex is free then, and its queue empty. A writer that
//!   counts itself later finds it closed; or another lock has it by now, and the writer's own lock
//!   does not.
//! - HEIR-2: there is a turn if, and only if, the writer that is in owns the mutex. Only that
//!   writer writes `turn`; it hands it on with both.
//! - HEIR-3: the lock is inherited by a hand-over that is certain (PASS-2). If no waiter can be
//!   handed the mutex, the writer ends the turn before it unlocks the mutex, and the next owner
//!   goes by the lock's word.
//! - HEIR-4: what a writer does to the indicator, it does before it leaves the lock: the lock may
//!   be gone then (RW-3), and must find none counted to give the indicator back.
//! - HEIR-5: `comers` and `turn` are those of one process. In the child of a fork, where the owner
//!   and the waiters of the mutex do not exist, the first that comes makes the mutex anew; and a
//!   writer that has forked leaves as if there were no turn.
//! - HEIR-6: a turn ends after [`RwForm::TURNS`] writers, or if an urgent waiter stands in the
//!   queue; and a writer that has waited for [`Form::BACKSTOP_NS`] in the mutex, whose owner may
//!   not run, waits in the queue, as do writers with a deadline and urgent ones.
//!
//! [`Form::BACKSTOP_NS`]: crate::lock::Form::BACKSTOP_NS

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use antiphon_platform::{
    Atomic, Clock, Deadline, IndicatorMutex, Platform, Probe, Traced, TracedKind,
};

use super::super::contended::Contended;
use super::super::mutex::ShflMutex;
use super::super::turn::Wait;
use super::super::urgent::Urgency;
use super::form::InLine;
use super::indicator::Lines;
use super::state::State;
use super::{RwForm, ShflRwLock};
use crate::arena;
use crate::policy::{Numa, Policy};

/// No writer may come: the indicator is about to be given back, or was.
const CLOSED: u64 = 1 << 31;
/// The mutex is being made anew.
const RENEWED: u64 = 1 << 30;
const COUNT: u64 = RENEWED - 1;
const EPOCH_SHIFT: u32 = 32;
/// In `turn`: above the number.
const TURN_EPOCH_SHIFT: u32 = 16;

type Mutex<P, F> = ShflMutex<P, Numa, InLine<F>>;

/// The comers of a process, none of which is counted.
fn none(epoch: u32) -> u64 {
    u64::from(epoch) << EPOCH_SHIFT
}

fn is_of(comers: u64, epoch: u32) -> bool {
    comers >> EPOCH_SHIFT == epoch.into()
}

/// The writers that wait for each other.
impl<P: Platform> Lines<P> {
    fn mutex<F: RwForm>(self) -> &'static Mutex<P, F> {
        const {
            assert!(size_of::<Mutex<P, F>>() == size_of::<IndicatorMutex<P>>());
            assert!(align_of::<Mutex<P, F>>() == align_of::<IndicatorMutex<P>>());
        }
        let words = core::ptr::from_ref(&self.writers().mutex);
        // SAFETY: both types are `repr(C)` with the same fields in the same order, and no others of
        // any size; the form is a marker. All fields are atomics, which may be shared, and the
        // words live for ever.
        unsafe { &*words.cast() }
    }

    /// Replaces `comers` by `change` of it; `false` if they are not to be changed.
    fn change_comers(self, change: impl Fn(u64) -> Option<u64>) -> bool {
        let comers = &self.writers().comers;
        let mut seen = comers.load(Relaxed);
        while let Some(new) = change(seen) {
            // AcqRel: a writer that comes finds the mutex as it was made or given back, and its own
            // lock without an indicator that was another's before (HEIR-1). Each change pairs with
            // those before it.
            match comers.compare_exchange(seen, new, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// HEIR-5: makes the mutex anew if it is of another process; none is admitted then.
    fn renew(self) {
        let anew = none(P::epoch()) | CLOSED | RENEWED;
        if self.change_comers(|seen| (!is_of(seen, P::epoch())).then_some(anew)) {
            let mutex = &self.writers().mutex;
            // Relaxed: published by the change below.
            mutex.locked.store(0, Relaxed);
            mutex.head.store(0, Relaxed);
            mutex.tail.store(0, Relaxed);
            self.change_comers(|seen| Some(seen & !RENEWED));
        }
    }

    /// Admits writers, for a lock that has just taken the indicator, or has not given it back; or
    /// in another process than before. Not while another thread makes the mutex anew.
    pub(super) fn admit_writers(self) {
        self.renew();
        self.change_comers(|seen| (seen & RENEWED == 0).then_some(seen & !CLOSED));
    }

    /// HEIR-1: admits no writer any longer if none is counted; returns whether none is. The caller
    /// has the lock.
    pub(super) fn dismiss_writers(self) -> bool {
        self.renew();
        self.change_comers(|seen| (seen & COUNT == 0).then_some(seen | CLOSED))
    }

    /// Counts the caller as a writer; `false` if none is admitted.
    fn come(self, epoch: u32) -> bool {
        if !is_of(self.writers().comers.load(Relaxed), epoch) {
            self.admit_writers();
        }
        self.change_comers(|seen| (seen & !COUNT == none(epoch)).then_some(seen + 1))
    }

    /// Counts the caller no longer, which was counted in the process of that epoch.
    fn go(self, epoch: u32) {
        self.change_comers(|seen| is_of(seen, epoch).then(|| seen - 1));
    }

    /// HEIR-2: the number of the turn, if there is one; for the writer that owns the lock, or the
    /// owner of the mutex.
    fn turn(self) -> Option<u32> {
        // Relaxed, here and below: handed on with the mutex and the lock.
        let turn = self.owner().turn.load(Relaxed);
        let is_ours = turn != 0 && turn >> TURN_EPOCH_SHIFT == P::epoch();
        is_ours.then_some(turn & ((1 << TURN_EPOCH_SHIFT) - 1))
    }

    fn begin_turn(self, number: u32) {
        self.owner().turn.store(P::epoch() << TURN_EPOCH_SHIFT | number, Relaxed);
    }

    /// HEIR-3: ends the turn; the caller, which has the lock, owns the mutex, and is not counted.
    fn end_turn<F: RwForm>(self) {
        self.owner().turn.store(0, Relaxed);
        // SAFETY: HEIR-2.
        unsafe { self.mutex::<F>().unlock() };
    }
}

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// Acquires the lock for writing where readers are counted by socket: waits for other writers
    /// first. `false`: the caller is to wait in the queue.
    pub(super) fn write_in_turn(&self) -> bool {
        // Acquire: the name of the indicator; pairs with the release in `spread`.
        if !State(self.state.load(Acquire)).is_spread() || Self::is_urgent() {
            return false;
        }
        let name = self.lines.load(Relaxed);
        let epoch = P::epoch();
        let Some(lines) = Lines::<P>::named(name).filter(|lines| lines.come(epoch)) else {
            return false;
        };
        // HEIR-1.
        if !self.has(name, State::is_spread) || !self.wait_for_writers(lines) {
            lines.go(epoch);
            return false;
        }
        if epoch != P::epoch() {
            // HEIR-5: the child of a fork in a signal handler, which has interrupted the wait.
            // SAFETY: locked above.
            unsafe { lines.mutex::<F>().unlock() };
            return false;
        }
        if lines.turn().is_none() {
            let had = self.write_alone(None);
            debug_assert!(had, "no deadline");
            if epoch == P::epoch() {
                lines.begin_turn(1);
            }
        }
        true
    }

    /// HEIR-6: whether the caller is of real-time priority, as far as that is known. It is asked
    /// only where there have been urgent waiters.
    pub(super) fn is_urgent() -> bool {
        // Relaxed: decides about order only.
        arena::<P>().saw_urgent.load(Relaxed) != 0 && P::urgency() > 0
    }

    /// Waits for the mutex; `false` after the backstop.
    fn wait_for_writers(&self, lines: Lines<P>) -> bool {
        let backstop = (F::BACKSTOP_NS != 0).then(|| Deadline {
            clock: Clock::Monotonic,
            ns: P::now(Clock::Monotonic) + F::BACKSTOP_NS,
        });
        let traced = Traced::new(self, TracedKind::Write);
        P::probe(Probe::WaitStart(traced));
        let had = lines.mutex::<F>().wait_contended(backstop) == Wait::Acquired;
        let inherits = had && lines.turn().is_some();
        P::probe(if inherits { Probe::Acquired(traced) } else { Probe::GaveUp(traced) });
        had
    }

    /// Called by the writer, which leaves: hands the lock to the next writer of the turn. `false`
    /// if the lock is still the caller's, and there is no turn any longer.
    pub(super) fn pass_turn_on(&self, lines: Lines<P>) -> bool {
        let Some(turn) = lines.turn() else { return false };
        // HEIR-4.
        lines.go(P::epoch());
        // HEIR-6.
        if turn < F::TURNS.into() && !Urgency::moved(&self.tail).has_company() {
            lines.begin_turn(turn + 1);
            let mutex = lines.mutex::<F>();
            if mutex.hands_over() && mutex.hand_over() {
                return true;
            }
        }
        lines.end_turn::<F>();
        false
    }

    /// Called by the writer, which is about to become a reader: ends the turn, if there is one.
    pub(super) fn end_turn(&self) {
        if self.peek().is_spread()
            && let Some(lines) = self.lines()
            && lines.turn().is_some()
        {
            lines.go(P::epoch());
            lines.end_turn::<F>();
        }
    }
}
