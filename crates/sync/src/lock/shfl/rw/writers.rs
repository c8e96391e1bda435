//! Turns of writers, which wait for each other and not for the lock's word.
//!
//! While a lock counts its readers by socket, a writer that must wait does so in a mutex of the
//! indicator. Only the mutex's owner uses the lock's word. It hands the mutex over together with
//! the lock: of many writers the first sets `WRITER` and waits for the readers of lines, and the
//! last lets readers in. In between no writer of the turn changes the lock's word; the lock is
//! handed on as a mutex is, between waiters that are awake, first within a socket
//! (`../handover.rs`).
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
//!                      a waiter is awake: hands over
//!   unlock_write ─────────────────────────────────► the next has turn n + 1
//!        └─► none of the turn is counted ──► ends it ──► unlocks the mutex ──► leaves
//! ```
//!
//! - HEIR-1: a writer is counted in `comers` from before it stands in the mutex until it gives up,
//!   or its turn is about to end: the last writer of a turn subtracts all its writers. The
//!   indicator is given back by an exchange that finds none counted, and closes it: the mutex is
//!   free then, and its queue empty. A writer that counts itself later finds the indicator closed;
//!   or another lock has it by now, and the writer's own lock does not.
//! - HEIR-2: where there is a turn, the writer that is in owns the mutex. Only that writer writes
//!   `turn`; it hands it on with both.
//! - HEIR-3: the lock is inherited by a hand-over that is certain (PASS-2). If no waiter can be
//!   handed the mutex, the writer ends the turn before it unlocks the mutex, and the next owner
//!   uses the lock's word.
//! - HEIR-4: a writer finishes with the indicator before it leaves the lock: afterwards the lock
//!   may be gone (RW-3), and it must find none counted to give the indicator back.
//! - HEIR-5: `comers` and `turn` belong to one process, and a writer uses the epoch in which it
//!   came, or the turn began. In the child of a fork, where the owner and the waiters of the mutex
//!   do not exist, the first arriving writer resets the mutex. A writer that has forked leaves as
//!   if there were no turn, and leaves the mutex alone.
//! - HEIR-6: a turn ends after [`RwForm::TURNS`] writers, or `SELDOM` times as many. It also ends
//!   if an urgent waiter stands in the queue; then the lock is kept for the head, if the head
//!   sleeps and has not been late. A writer that has waited for the backstop without success waits
//!   in the queue, as do writers with a deadline and urgent writers. After a backstop the owner of
//!   the mutex is perhaps not running, so no other writer is admitted until a turn has ended.
//! - HEIR-7: an owner of the mutex without a turn spins briefly for the lock's word, as an arriving
//!   writer that respects the queue's head may. Behind the waiters of the queue, which may sleep,
//!   it would have to wait until each has been woken by the waiter before it. A turn that has had
//!   all its writers ends with the lock kept for the head, if the head sleeps or was called: so no
//!   waiter of the queue is overtaken by turn after turn. Where urgent waiters stand in the queue,
//!   the owner waits there too.
//! - HEIR-8: a writer that waits in the lock's queue from before, and has no deadline, leaves the
//!   queue when it is the head and comes here, once in its wait. It leaves as a waiter that gives
//!   up does: the next waiter becomes the head, and is woken.
//!
//! *Limits.* A waiter that is handed the lock while it is in a signal handler, and forks there, has
//! a child in which no thread owns the lock that it was handed. The mutex has the same limit. It
//! also holds where a thread that the handler makes in the child uses the lock before the waiter
//! has left the mutex. And where the kernel does not wipe nodes in a child (`MADV_WIPEONFORK`), all
//! processes have one epoch: then a mutex that another thread of the parent owned stays locked in
//! the child, and contended writers there wait once for the backstop, and afterwards in the queue.
//!
//! [`Form::BACKSTOP_NS`]: crate::lock::Form::BACKSTOP_NS

use core::sync::atomic::Ordering::{AcqRel, Relaxed};

use antiphon_platform::{
    Atomic, Budget, Clock, Deadline, IndicatorMutex, Platform, Probe, Traced, TracedKind, Waiter,
};

use super::super::contended::Contended;
use super::super::fair::Patience;
use super::super::form::Form;
use super::super::mutex::ShflMutex;
use super::super::turn::Wait;
use super::super::urgent::Urgency;
use super::form::{InLine, Lasting};
use super::indicator::Lines;
use super::kind::{Kind, Write};
use super::state::{Heed, State};
use super::{RwForm, ShflRwLock};
use crate::arena;
use crate::policy::{Numa, Policy};

/// No writer may be counted: the indicator is about to be given back, or was.
const CLOSED: u64 = 1 << 31;
/// A thread is resetting the mutex.
const RENEWED: u64 = 1 << 30;
const COUNT: u64 = RENEWED - 1;
const EPOCH_SHIFT: u32 = 32;
/// In `turn`: position of the epoch, above the number.
const TURN_EPOCH_SHIFT: u32 = 16;

/// Factor for the number of writers in a turn where readers are few.
const SELDOM: u32 = 4;
/// How long a writer that will begin a turn spins before it checks whether its CPU is wanted.
const PIECE_NS: u32 = 50_000;
/// How many writers have the lock within one backstop: with sections of 200 µs they take 13 ms.
/// Writers of a running turn that have left are counted too, so the backstop may be longer than the
/// waiting writers need, by up to two times its length.
const WRITERS_A_BACKSTOP: u64 = 64;

type Mutex<P, F> = ShflMutex<P, Numa, InLine<Lasting<F>>>;

/// Returns the value of `comers` for a process with no writer counted.
fn none(epoch: u32) -> u64 {
    u64::from(epoch) << EPOCH_SHIFT
}

fn is_of(comers: u64, epoch: u32) -> bool {
    comers >> EPOCH_SHIFT == epoch.into()
}

/// Returns `comers` with one writer less. While writers are counted, the indicator is not about to
/// be given back: it was closed for writers that are gone by now.
fn one_less(comers: u64) -> u64 {
    let left = comers - 1;
    if left & COUNT == 0 { left & !CLOSED } else { left }
}

/// Operations of the writers that wait for each other.
impl<P: Platform> Lines<P> {
    fn mutex<F: RwForm>(self) -> &'static Mutex<P, F> {
        const {
            assert!(size_of::<Mutex<P, F>>() == size_of::<IndicatorMutex<P>>());
            assert!(align_of::<Mutex<P, F>>() == align_of::<IndicatorMutex<P>>());
        }
        let words = core::ptr::from_ref(&self.writers().mutex);
        // SAFETY: both types are `repr(C)` with the same fields in the same order, and no others
        // that have a size; the form is a marker. All fields are atomics, which may be shared, and
        // the words are never freed.
        unsafe { &*words.cast() }
    }

    /// Replaces `comers` by `change` of it; returns `false` if `change` gives `None`.
    fn change_comers(self, change: impl Fn(u64) -> Option<u64>) -> bool {
        let comers = &self.writers().comers.0;
        let mut seen = comers.load(Relaxed);
        while let Some(new) = change(seen) {
            // AcqRel: an arriving writer finds the mutex as it was reset or given back, and finds
            // that its own lock no longer has an indicator that went to another lock (HEIR-1). Each
            // change pairs with the changes before it.
            // mutant: no drawn execution reads or writes a word of the mutex as it was before the
            // reset, or has another lock take the indicator in between.
            match comers.compare_exchange(seen, new, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// HEIR-5: resets the mutex if it is another process's; meanwhile no writer is admitted. An
    /// indicator that was closed while no writer was counted stays closed: a thread of this process
    /// may be about to give the indicator back.
    fn renew(self) {
        let epoch = P::epoch();
        let closed = |seen| if seen & COUNT == 0 { seen & CLOSED } else { 0 };
        let anew = |seen| none(epoch) | RENEWED | closed(seen);
        if self.change_comers(|seen| (!is_of(seen, epoch)).then(|| anew(seen))) {
            let mutex = &self.writers().mutex;
            // Relaxed: published by the change below.
            mutex.locked.store(0, Relaxed);
            mutex.head.store(0, Relaxed);
            mutex.tail.store(0, Relaxed);
            self.change_comers(|seen| Some(seen & !RENEWED));
        }
    }

    /// Admits writers, for a lock that has just taken the indicator, or has not given it back. Does
    /// nothing while another thread resets the mutex.
    pub(super) fn admit_writers(self) {
        self.renew();
        self.change_comers(|seen| (seen & RENEWED == 0).then_some(seen & !CLOSED));
    }

    /// HEIR-1: stops admitting writers if none is counted; returns whether none is. The caller has
    /// the lock.
    pub(super) fn dismiss_writers(self) -> bool {
        self.renew();
        self.change_comers(|seen| (seen & COUNT == 0).then_some(seen | CLOSED))
    }

    /// Counts the caller as a writer; returns `false` if none is admitted.
    fn come(self, epoch: u32) -> bool {
        if !is_of(self.writers().comers.0.load(Relaxed), epoch) {
            self.renew();
        }
        self.change_comers(|seen| (seen & !COUNT == none(epoch)).then_some(seen + 1))
    }

    /// Subtracts the caller, which was counted in the process of that epoch.
    fn go(self, epoch: u32) {
        self.change_comers(|seen| is_of(seen, epoch).then(|| one_less(seen)));
    }

    /// Subtracts the writers of a turn, and admits writers again (HEIR-6). Called by the last of
    /// them, which owns the mutex and has the lock.
    fn go_on(self, turn: Turn) {
        let gone = u64::from(turn.number);
        self.change_comers(|seen| is_of(seen, turn.epoch).then(|| (seen - gone) & !CLOSED));
    }

    /// HEIR-6: admits no writer until the owner of the mutex proceeds. The caller is counted.
    fn close_to_writers(self, epoch: u32) {
        self.change_comers(|seen| is_of(seen, epoch).then_some(seen | CLOSED));
    }

    /// Returns how many writers are counted: at least as many as wait, because writers of a running
    /// turn are counted until it ends. May be stale at once.
    fn writers_waiting(self) -> u64 {
        self.writers().comers.0.load(Relaxed) & COUNT
    }

    /// HEIR-2: returns the turn, if any. For the writer that owns the lock, or the owner of the
    /// mutex.
    fn turn(self) -> Option<Turn> {
        // Relaxed, here and below: handed on with the mutex and the lock.
        let turn = self.owner().turn.load(Relaxed);
        let (epoch, number) = (turn >> TURN_EPOCH_SHIFT, turn & ((1 << TURN_EPOCH_SHIFT) - 1));
        (turn != 0 && epoch == P::epoch()).then_some(Turn { epoch, number })
    }

    fn begin_turn(self, turn: Turn) {
        self.owner().turn.store(turn.epoch << TURN_EPOCH_SHIFT | turn.number, Relaxed);
    }

    /// HEIR-3: ends the turn; the caller has the lock and owns the mutex.
    fn end_turn<F: RwForm>(self, turn: Turn) {
        // HEIR-4.
        self.go_on(turn);
        self.owner().turn.store(0, Relaxed);
        // HEIR-5.
        if turn.epoch == P::epoch() {
            // SAFETY: HEIR-2. SECTION-6: no writer tells a section of this mutex.
            unsafe { self.mutex::<F>().unlock_untold() };
        }
    }
}

/// A turn of writers: its process, and how many have had the lock in it.
#[derive(Clone, Copy)]
struct Turn {
    epoch: u32,
    number: u32,
}

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// Acquires the lock for writing where readers are counted by socket: waits for other writers
    /// first. Returns `false` if the caller must wait in the queue.
    pub(super) fn write_in_turn(&self) -> bool {
        // Relaxed: a writer that misses the name of the indicator waits in the queue, and one that
        // finds it acquires in `has`.
        if !self.peek().is_spread() || Self::is_urgent() {
            return false;
        }
        let name = self.lines.load(Relaxed);
        let epoch = P::epoch();
        let Some(lines) = Lines::<P>::named(name).filter(|lines| lines.come(epoch)) else {
            return false;
        };
        // HEIR-1.
        if !self.has(name, State::is_spread) {
            lines.go(epoch);
            return false;
        }
        let had = self.wait_for_writers(lines);
        if epoch != P::epoch() {
            // HEIR-5: this is the child of a fork in a signal handler that has interrupted the
            // wait. The mutex is the parent's, or that of another thread, which has reset it.
            return false;
        }
        if !had {
            lines.close_to_writers(epoch);
            lines.go(epoch);
            return false;
        }
        if lines.turn().is_none() {
            let alone = self.write_alone(self.enter_beside_queue(), None, false);
            debug_assert!(alone.is_ok(), "no deadline");
            lines.begin_turn(Turn { epoch, number: 1 });
        }
        true
    }

    /// HEIR-8: returns whether writers wait for each other and more are admitted.
    pub(super) fn takes_turns(&self) -> bool {
        // Relaxed: a hint; `write_in_turn` looks again.
        if !self.peek().is_spread() {
            return false;
        }
        let admits = |lines: Lines<P>| {
            // Relaxed: a hint.
            lines.writers().comers.0.load(Relaxed) & !COUNT == none(P::epoch())
        };
        // The urgency is asked last, because that may be a system call.
        self.lines().is_some_and(admits) && !Self::is_urgent()
    }

    /// HEIR-7: comes in for a turn without standing in the queue; returns `None` if the caller must
    /// wait there.
    fn enter_beside_queue(&self) -> Option<State> {
        let mut left_ns = Lasting::<F>::LINGER.ns;
        let mut piece_ns = F::HEAD_SPIN.ns.min(left_ns);
        loop {
            // An urgent waiter may be the head, awake and without a name: then nothing in the state
            // would keep the caller from overtaking it again and again.
            if Urgency::moved(&self.tail).has_company() {
                return None;
            }
            if let Some(found) = self.enter::<Write>(Heed::All) {
                return Some(found);
            }
            if piece_ns == 0 {
                return None;
            }
            let kept_out = |seen| Write::enter(State(seen), Heed::All).is_none();
            // Relaxed: the caller tries next. The budget counts in either case.
            let _ = self.state.spin_while(Relaxed, Budget::ns(piece_ns), kept_out);
            left_ns -= piece_ns;
            // LINGER-4.
            let may_stay = P::slice_left_ns() == u32::MAX;
            piece_ns = if may_stay { left_ns.min(PIECE_NS) } else { 0 };
        }
    }

    /// HEIR-6: returns whether the caller has real-time priority, as far as known. Asks the
    /// platform only if there have been urgent waiters.
    pub(super) fn is_urgent() -> bool {
        // Relaxed: decides about order only.
        arena::<P>().saw_urgent.load(Relaxed) != 0 && P::urgency() > 0
    }

    /// Waits for the mutex; returns `false` after the backstop, which grows with the number of
    /// writers: if all run, the last of a crowd has its turn before that.
    fn wait_for_writers(&self, lines: Lines<P>) -> bool {
        let backstop = (F::BACKSTOP_NS != 0).then(|| Deadline {
            clock: Clock::Monotonic,
            ns: P::now(Clock::Monotonic)
                + F::BACKSTOP_NS * (1 + lines.writers_waiting() / WRITERS_A_BACKSTOP),
        });
        let traced = Traced::new(self, TracedKind::Write);
        P::probe(Probe::WaitStart(traced));
        let had = lines.mutex::<F>().wait_contended(backstop) == Wait::Acquired;
        let inherits = had && lines.turn().is_some();
        P::probe(if inherits { Probe::Acquired(traced) } else { Probe::GaveUp(traced) });
        had
    }

    /// Returns how many writers a turn may have.
    fn turns(lines: Lines<P>) -> u32 {
        let seldom = Self::is_read_seldom(lines);
        u32::from(F::TURNS) * if seldom { SELDOM } else { 1 }
    }

    /// Called by the writer, which leaves: hands the lock to the next writer of the turn. Returns
    /// `false` if the caller still has the lock, and the turn has ended.
    pub(super) fn pass_turn_on(&self, lines: Lines<P>) -> bool {
        let Some(turn) = lines.turn() else { return false };
        // HEIR-6.
        if Urgency::moved(&self.tail).has_company() {
            self.keep_for_head(|head| !Patience::<F>::is_excused(head));
        } else if turn.number < Self::turns(lines) {
            lines.begin_turn(Turn { number: turn.number + 1, ..turn });
            let mutex = lines.mutex::<F>();
            if mutex.hands_over() && mutex.hand_over() {
                return true;
            }
        } else {
            // HEIR-7. An excused head may be running.
            self.keep_for_head(|_| true);
        }
        lines.end_turn::<F>(turn);
        false
    }

    /// Keeps the lock for the head of the queue, if it sleeps or was called, and `comes`.
    fn keep_for_head(&self, comes: impl Fn(&Waiter<P>) -> bool) {
        // Relaxed: orders nothing. The named head clears the flag when it comes.
        let _ = self.change(Relaxed, |seen| {
            let head = arena::<P>().resolve_index(seen.name().into());
            (seen.is_called() && head.is_some_and(&comes)).then(|| seen.with_fair())
        });
    }

    /// Called by the writer, which is about to become a reader: ends the turn, if any.
    pub(super) fn end_turn(&self) {
        if self.peek().is_spread()
            && let Some(lines) = self.lines()
            && let Some(turn) = lines.turn()
        {
            lines.end_turn::<F>(turn);
        }
    }
}
