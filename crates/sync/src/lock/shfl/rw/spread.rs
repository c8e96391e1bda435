//! Changing where readers are counted: in the lock's word, or by socket.
//!
//! | mode | `state` | a reader is counted | a writer |
//! |---|---|---|---|
//! | central | neither | in `state` | has the lock when `WRITER` is set |
//! | open | `OPEN` | on a line of its socket | – |
//! | draining | `OPEN`, `SHUT` | as in open, and none enters | has set `WRITER`, and waits |
//! | shut | `SHUT` | nowhere: none is in | has the lock; a turn's writers have it one by one |
//!
//! ```text
//!              a crowd of readers                 WRITER
//!   central ──────────────────────► open ─────────────────────► draining
//!    │ ▲                              ▲ ▲                        │     │
//!    │ │ a writer, after few readers  │ └── gives up ────────────┘     │ sum is 0
//!    │ │                              │                              ▼
//!    │ └───────────── shut ───────────┴── a writer leaves, ──────── shut
//!    │                                    or a reader comes in        ▲
//!    └────────────────────────────────────────────────────────────────┘
//!              a writer that has the lock, before a crowd of writers
//! ```
//!
//! - RW-7: while a reader is in, the mode changes from central to another only, and by the one
//!   exchange that moves the count from the state to a line. So a reader leaves where the mode says
//!   that readers are counted, wherever it came in; and it leaves the state by an exchange that
//!   requires the mode. It never subtracts first and checks afterwards: until it took that back,
//!   its subtraction would hide a reader that has come in through the state.
//! - RW-8: only a writer that has waited for all lines makes the mode central, and only if the
//!   state counts no reader. A reader that counts itself in, and finds another mode than central,
//!   is counted in the state until it takes that back, or takes a seat.
//! - RW-9: a reader that has counted itself in, and found the mode to be central, is in even if the
//!   mode is another by now: its count was moved, and a writer waits for it.
//! - RW-10: a reader is in by a line if it has counted itself there, and behind a fence the state
//!   is open and the lock names that indicator. A writer sets the mode to draining, and checks the
//!   lines behind a fence. So one of the two sees the other. If the lock names another indicator,
//!   or none, the line is another lock's by now, whose writers wait until the reader has taken its
//!   count back. And a thread that takes an indicator checks its sum behind a fence before it names
//!   the indicator: so the name that a reader finds behind its own fence does not come from an
//!   attempt, begun after the reader has counted itself, that will fail.
//! - RW-11: a reader that may read already (`Heed::Recursion`) also comes in by a line while the
//!   mode is draining. So a writer that has waited marks the state (verifying: `SHUT` and
//!   `UPGRADING`), checks the sum once more behind a fence, and takes the lock by an exchange that
//!   requires its mark. A reader that may read already, and finds the writer verifying, checks the
//!   sum: if it is 0 the reader does not read already; if not, it makes the writer drain again, and
//!   comes in.
//! - RW-12: a writer that is in, and waits for lines, has its process's mark in the state, set by
//!   the exchange that has set `WRITER`. In the child of a fork, where that writer does not exist,
//!   a thread that wants the lock ends the wait in the writer's place. The writer proceeds by
//!   exchanges that require its mark.
//!
//! - RW-14: a writer that leaves while readers are counted by socket lets them in, by the exchange
//!   that clears `WRITER`; a writer that becomes a reader does so right after it. Then it announces
//!   this at the gate. So readers wait at the gate only while `WRITER` is set; a reader that is
//!   awake checks by itself whether the lock still counts by socket ([`PIECE_NS`]).
//!
//! RW-15, by which a crowd of writers takes an indicator, is in `crowd.rs`.
//!
//! Writers that wait while readers are counted by socket do so as `writers.rs` describes.
//!
//! A reader that has come in through the state, in another mode than central, takes a seat: it lets
//! readers in if the mode is shut, counts itself on the line of its socket, and leaves the state,
//! for which writers had to wait until then. So the queue, its sleepers and its fairness depend
//! only on the state, and not on lines.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Budget, Clock, Deadline, Platform};

use super::super::form::Form;
use super::form::Lasting;
use super::indicator::Lines;
use super::row::call_row;
use super::state::{Mark, State};

use super::{RwForm, ShflRwLock};
use crate::policy::Policy;

/// The unit of `rest`, in powers of two nanoseconds: 66 µs.
const REST_BITS: u32 = 16;
/// The longest rest, in units of `rest`: half of the range of a byte.
pub(super) const LONGEST_REST: u64 = 127;
/// About the cost of a writer's look at a line, including the transfer of the line back to a
/// reader.
const LINE_NS: u64 = 500;
/// How many times a reader tries to come in by a line before it uses the state.
const ROUNDS: u32 = 16;
/// How much time a reader that will not wait gives a writer to give up: the writer may only try as
/// well, and have found that reader in its way.
const VERDICT_NS: u32 = 1_000;
/// How many times a reader tries to make the lock count by socket before it leaves that to a later
/// reader.
const TRIES: u32 = 4;
/// How long a reader waits to be let in before it checks whether a writer is in at all: each check
/// takes the lock's cache line away from the writers.
const PIECE_NS: u32 = 50_000;
/// How many times a reader sleeps at the gate before it waits in the queue.
const SLEEPS: u32 = 4;
/// Readers are let in for as long as writers had the lock before, and for at most this time.
const MOST_NS: u64 = 20_000;
/// Fewer readers per line than this count as few.
const FEW: u64 = 2;

/// The result of a writer's wait for the readers of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Drained {
    /// The writer has the lock.
    Alone,
    /// The writer has given up, and is what it was before.
    Busy,
    /// The writer was taken for a writer of another process, and is what it was before (RW-12): it
    /// is in the child of a fork by a signal handler that interrupted it.
    Ended,
}

/// How long a writer waits for the readers of lines.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    /// The writer does not wait.
    Never,
    /// The writer waits until the deadline, or without limit.
    Until(Option<Deadline>),
}

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// Returns whether readers may be counted by socket at all.
    #[inline]
    pub(super) fn may_spread() -> bool {
        F::CROWD != u32::MAX && P::numa()
    }

    /// Gives back the indicator that the lock has taken to count its readers by socket, if the lock
    /// is free; never blocks. Must be called before the lock's memory is put to other uses:
    /// otherwise no other lock can have the indicator.
    #[inline]
    pub fn gather(&self) {
        if self.peek().is_spread() {
            self.gather_free();
        }
    }

    #[cold]
    #[inline(never)]
    fn gather_free(&self) {
        if !self.try_write_untold() {
            return;
        }
        if let Some(lines) = self.lines() {
            let _ = self.centralise(lines);
        }
        self.release_writer();
    }

    /// Returns the indicator that the lock names.
    pub(super) fn lines(&self) -> Option<Lines<P>> {
        // Relaxed: acquired with the state, whose mode says that the lock has an indicator.
        Lines::named(self.lines.load(Relaxed))
    }

    /// Returns whether readers are in by lines; may be stale at once, but not if the caller is one
    /// of them.
    pub(super) fn is_read_by_line(&self) -> bool {
        // Acquire: the name of the indicator, and the count of a caller that was moved there; pairs
        // with the release in `spread`.
        let seen = State(self.state.load(Acquire));
        seen.is_spread() && self.lines().is_some_and(|lines| lines.sum() != 0)
    }

    /// Returns whether the lock is held for reading, or a writer is about to have it: always true
    /// if the caller reads. Usually checks one line only, and may return true for a free lock whose
    /// readers have left on another socket than they came. For callers that check an unlock.
    #[inline]
    pub fn seems_read(&self) -> bool {
        // Acquire: as in `is_read_by_line`.
        let seen = State(self.state.load(Acquire));
        !seen.is_free() || seen.is_spread() && self.lines().is_some_and(Lines::seems_read)
    }

    /// The first step of a reader: comes in by a line, if readers are counted there; if it `waits`,
    /// it waits briefly where it must.
    #[inline]
    pub(super) fn sit_down(&self, waits: bool) -> bool {
        if !Self::may_spread() {
            return false;
        }
        // Relaxed: a reader that misses the name of the indicator counts itself in the state, and
        // one that finds it acquires in `has` before it is in.
        let seen = self.peek();
        seen.is_spread() && self.sit_down_here(seen, waits)
    }

    #[inline(never)]
    fn sit_down_here(&self, seen: State, waits: bool) -> bool {
        let name = self.lines.load(Relaxed);
        let Some(lines) = Lines::<P>::named(name) else { return false };
        // One budget for all rounds, because each writer of a sequence ends one round.
        let mut left_ns = Lasting::<F>::LINGER.ns;
        let mut sleeps = 0;
        if !seen.lets_sit() {
            if seen.is_abandoned(P::epoch()) {
                self.end_abandoned();
            } else if !waits || !self.wait_to_be_let_in(lines, name, &mut left_ns, &mut sleeps) {
                return false;
            }
        }
        let line = lines.join();
        for _ in 0..ROUNDS {
            line.enter();
            if self.has(name, State::lets_sit) {
                return true;
            }
            lines.take_back(&line);
            let open = if waits {
                self.wait_to_be_let_in(lines, name, &mut left_ns, &mut sleeps)
            } else {
                self.wait_for_verdict()
            };
            // Relaxed: loaded again if it is the same.
            if !open || self.lines.load(Relaxed) != name {
                return false;
            }
        }
        false
    }

    /// Called by a reader that will not wait, and that may be the only one to keep out a writer
    /// that will not wait either: returns whether readers are let in again soon.
    #[cold]
    fn wait_for_verdict(&self) -> bool {
        // Relaxed: loaded again.
        let budget = Budget::ns(VERDICT_NS);
        let verdict = self.state.spin_while(Relaxed, budget, |seen| State(seen).is_drained());
        verdict.is_ok_and(|seen| State(seen).lets_sit())
    }

    /// RW-12: ends the wait for lines of a writer that does not exist.
    #[cold]
    #[inline(never)]
    pub(super) fn end_abandoned(&self) {
        let epoch = P::epoch();
        // Acquire: the name of the indicator, whose gate we tell; pairs with the release in
        // `spread`. Threads that check again find the wait ended.
        // mutant: only a thread that forks between its mark and its exchange sets it after a fork.
        if State(self.state.load(Acquire)).is_abandoned(epoch)
            && let Some(lines) = self.lines()
        {
            let _ = self.end(lines, |seen| seen.is_abandoned(epoch));
        }
    }

    /// Ends a writer's wait for lines, if `is_its` is true of the state; returns whether it was.
    fn end(&self, lines: Lines<P>, is_its: impl Fn(State) -> bool) -> bool {
        // Release: that lines are even (LINE-5), if the writer has found no reader and was made to
        // drain again; pairs with the acquire of the next writer.
        // mutant: it takes lines that were not even, and a reader that makes a writer drain which
        // then gives up: more threads than a model has.
        let ended = self.change(Release, |seen| is_its(seen).then(|| seen.not_drained().0));
        let Ok(seen) = ended else { return false };
        if let (_, Some(name)) = seen.not_drained() {
            call_row::<P, F>(name, seen.is_fair());
        }
        lines.tell();
        true
    }

    /// RW-11: called by a reader that was refused although it may read already, perhaps by a writer
    /// that waits for it. Returns `false` if the caller does not read already, and a writer is in
    /// or about to be, or the lock is free and kept for a writer. Waits for no thread.
    #[cold]
    pub(super) fn sit_beside(&self) -> bool {
        // A caller that reads already finds a writer verifying at most once, because a writer that
        // drains again sees it. So other callers need not alternate with a writer for ever.
        let (mut again, mut misses) = (false, 0);
        while misses < 2 {
            // Acquire: the name of the indicator; and that lines are even, pairs with the fence in
            // `drain_lines`.
            // mutant: a name that is missed is looked up again, and lines that were not even are as
            // in `end`.
            let seen = State(self.state.load(Acquire));
            if !seen.is_verifying() && !seen.may_be_sat_in() {
                return false;
            }
            let name = self.lines.load(Relaxed);
            let Some(lines) = Lines::<P>::named(name) else { continue };
            if seen.is_verifying() {
                if again || lines.sum() == 0 {
                    return false;
                }
                // Relaxed: it only keeps the writer from going on, and orders nothing.
                let draining = seen.with_draining();
                again = self.state.compare_exchange(seen.0, draining.0, Relaxed, Relaxed).is_ok();
                continue;
            }
            let Some(line) = lines.any() else { continue };
            line.enter();
            if self.has(name, State::may_be_sat_in) {
                return true;
            }
            lines.take_back(&line);
            misses += 1;
        }
        false
    }

    /// RW-10: returns whether a reader that has counted itself on a line of the indicator of this
    /// name is in. `lets` says which modes admit it.
    #[inline]
    pub(super) fn has(&self, name: u16, lets: impl Fn(State) -> bool) -> bool {
        // Acquire: what writers have done; and the name. An addition to another lock's line comes
        // after that lock has taken it, and so after ours has given it back.
        lets(State(self.state.load(Acquire))) && self.lines.load(Relaxed) == name
    }

    /// Waits until readers are let in, while one writer follows another; returns whether they were.
    /// Waits awake for at most `left_ns`, from which it subtracts the time; then asleep, which it
    /// counts in `sleeps` (GATE-3). `name` is the name of `lines`.
    fn wait_to_be_let_in(
        &self,
        lines: Lines<P>,
        name: u16,
        left_ns: &mut u32,
        sleeps: &mut u32,
    ) -> bool {
        // Urgent waiters are served from the queue.
        if Self::is_urgent() {
            return false;
        }
        loop {
            let told = lines.told();
            let seen = self.peek();
            if seen.lets_sit() {
                return true;
            }
            // RW-14. A wait as in RW-12 is ended from the queue.
            if !seen.is_spread() || !seen.has_writer() || seen.is_abandoned(P::epoch()) {
                return false;
            }
            if *left_ns == 0 || P::slice_left_ns() != u32::MAX {
                *sleeps += 1;
                return *sleeps <= SLEEPS && lines.sleep::<F>(|| self.has(name, State::will_open));
            }
            let piece_ns = PIECE_NS.min(*left_ns);
            *left_ns -= piece_ns;
            if lines.wait_to_be_told(told, Budget::ns(piece_ns)) {
                return true;
            }
        }
    }

    /// RW-7: leaves by a line; called by a reader that has found a mode that requires it.
    #[inline(never)]
    pub(super) fn leave_line(&self) {
        if let Some(lines) = self.lines() {
            lines.leave();
        }
    }

    /// RW-8: called by a reader that has come in through the state, and found it as `found`. Takes
    /// a seat if readers are counted elsewhere.
    #[inline]
    pub(super) fn came_in(&self, found: State) {
        if found.is_spread() {
            self.take_seat();
        } else if found.is_crowd(F::CROWD) && Self::may_spread() {
            self.spread();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_seat(&self) {
        // The state counts us, so the mode can't become central, and no writer can be in.
        if let Some(lines) = self.lines() {
            // Relaxed: it continues the last writer's release sequence, and we have only read.
            if self.peek().is_shut()
                && self.change(Relaxed, |seen| seen.is_shut().then(|| seen.with_open())).is_ok()
            {
                lines.tell();
            }
            lines.join().sit();
        }
        self.leave_state();
    }

    /// Makes the lock count a crowd of readers by socket from now on, unless something prevents it.
    /// The caller is one of these readers, and the state counts it.
    #[cold]
    #[inline(never)]
    pub(super) fn spread(&self) {
        if !self.is_rested() || P::is_foreign(core::ptr::from_ref(self).addr()) {
            return;
        }
        // Relaxed: checked again below. If not 0, another thread is about to do it; if all of a
        // crowd tried at once they would find the indicators taken by each other, and rest.
        if self.lines.load(Relaxed) != 0 {
            return;
        }
        let Some((lines, name)) = Lines::<P>::claim() else { return self.rest(LONGEST_REST) };
        // Relaxed: published with the mode.
        if self.lines.compare_exchange(0, name, Relaxed, Relaxed).is_err() {
            return lines.give();
        }
        self.rest.store(0, Relaxed);
        let line = lines.join();
        let mut counted = 0;
        for _ in 0..TRIES {
            let seen = self.peek();
            let Some((spread, called)) = seen.spread() else { break };
            line.count_over(counted, seen.readers());
            counted = seen.readers();
            // RW-7. Release: pairs with the acquires of readers that sit down or stand up.
            if self.state.compare_exchange(seen.0, spread.0, Release, Relaxed).is_ok() {
                if let Some(name) = called {
                    call_row::<P, F>(name, seen.is_fair());
                }
                return;
            }
        }
        line.count_over(counted, 0);
        // Relaxed: the thread that writes it next has acquired an indicator.
        self.lines.store(0, Relaxed);
        lines.give();
    }

    /// Called by the owner of `WRITER`, which the caller has set by an exchange of `found`, and of
    /// its mark: waits for the readers that are in by lines, and then has the lock.
    pub(super) fn drain(&self, found: State, patience: Patience) -> Drained {
        // Without `WRITER` only a reader that the state counts lets readers in, and the state
        // counted none.
        if found.may_be_sat_in() {
            self.drain_lines(found.mark(), patience)
        } else {
            Drained::Alone
        }
    }

    #[cold]
    #[inline(never)]
    fn drain_lines(&self, mark: Mark, patience: Patience) -> Drained {
        // The name is acquired with the state that was found.
        let lines = self.lines().expect("a thread that opens lines has named them");
        let is_mine = |seen: State| seen.drainer() == Some(mark);
        if let Patience::Until(_) = patience {
            Self::let_readers_come(lines);
        }
        loop {
            // RW-10. Relaxed: by the fence.
            if self.change(Relaxed, |seen| is_mine(seen).then(|| seen.with_draining())).is_err() {
                return Drained::Ended;
            }
            // mutant: a writer that misses a reader here verifies in vain, and drains again.
            P::fence(SeqCst);
            let empty = match patience {
                Patience::Never => lines.sum() == 0,
                Patience::Until(deadline) => lines.wait_until_empty::<F>(deadline),
            };
            if !empty {
                return if self.end(lines, is_mine) { Drained::Busy } else { Drained::Ended };
            }
            // RW-11. Relaxed: by the fence.
            if self.change(Relaxed, |seen| is_mine(seen).then(|| seen.with_verifying())).is_err() {
                return Drained::Ended;
            }
            P::fence(SeqCst);
            // RW-11: a reader may have made us drain again. Relaxed: by the sum, which acquires
            // what readers have done.
            let verified =
                |seen: State| (is_mine(seen) && seen.is_verifying()).then(|| seen.drained());
            if lines.is_empty() && self.change(Relaxed, verified).is_ok() {
                break;
            }
            if let Patience::Never = patience {
                return if self.end(lines, is_mine) { Drained::Busy } else { Drained::Ended };
            }
        }
        Self::note(lines);
        self.rest.store(0, Relaxed);
        Drained::Alone
    }

    /// Notes whether many readers have come by lines since the last writer had to wait; called by
    /// the writer.
    fn note(lines: Lines<P>) {
        // Relaxed, here and below: the owner's words, handed on with the lock.
        let owner = lines.owner();
        let entered = lines.entered();
        let since = entered.wrapping_sub(owner.entered.load(Relaxed));
        owner.entered.store(entered, Relaxed);
        owner.since_ns.store(P::now(Clock::Monotonic), Relaxed);
        // No line is in use yet where only writers have come.
        let few = since < FEW * u64::from(lines.count().max(1));
        let idle = if few { owner.idle.load(Relaxed).saturating_add(1) } else { 0 };
        owner.idle.store(idle, Relaxed);
    }

    /// Releases what was acquired for writing, where others wait or readers are counted by socket.
    #[cold]
    #[inline(never)]
    pub(super) fn release_writer(&self) {
        let seen = self.peek();
        if !seen.is_spread() {
            self.leave(State::release_writer);
            return;
        }
        let Some(lines) = self.lines() else { return };
        if self.pass_turn_on(lines) {
            return;
        }
        // The waiters in the queue are a crowd that is about to move (HEIR-8).
        if Self::is_read_seldom(lines) && !self.has_waiters() && self.centralise(lines) {
            self.leave(State::release_writer);
            return;
        }
        self.note_turns(lines);
        self.leave(|seen| seen.with_open().release_writer());
        lines.tell();
    }

    /// Returns whether readers have been few for some time.
    pub(super) fn is_read_seldom(lines: Lines<P>) -> bool {
        // Relaxed: the owner's word.
        lines.owner().idle.load(Relaxed) >= F::IDLE
    }

    /// Waits while readers come in; called by a writer that follows a long sequence of writers.
    fn let_readers_come(lines: Lines<P>) {
        // Relaxed, here and below: the owner's words.
        let until = lines.owner().until_ns.load(Relaxed);
        if F::LINGER.ns == 0 || until == 0 {
            return;
        }
        // Readers that found the lines closed are not counted. So they may seem few for lack of
        // just this time; only where no line is in use have none come.
        if lines.count() == 0 {
            return;
        }
        let left = until.saturating_sub(P::now(Clock::Monotonic)).min(MOST_NS);
        if left > 0 {
            let _ = lines.wait_to_be_told(lines.told(), Budget::ns(left as u32));
        }
    }

    /// Notes for how long readers are let in; called by the last writer of a sequence.
    fn note_turns(&self, lines: Lines<P>) {
        let owner = lines.owner();
        let since = owner.since_ns.load(Relaxed);
        let now = P::now(Clock::Monotonic);
        owner.until_ns.store(now + now.saturating_sub(since).min(MOST_NS), Relaxed);
    }

    /// RW-8: counts readers in the state from now on, if it counts none; called by the writer.
    fn centralise(&self, lines: Lines<P>) -> bool {
        if !lines.dismiss_writers() {
            return false;
        }
        // Relaxed: published with the release of the lock.
        if self.change(Relaxed, State::centralised).is_err() {
            lines.admit_writers();
            return false;
        }
        let took_ns = u64::from(F::IDLE) * u64::from(lines.count()) * LINE_NS;
        self.rest((took_ns * u64::from(F::REST)) >> REST_BITS);
        self.lines.store(0, Relaxed);
        // GATE-1.
        lines.rouse_sleepers();
        lines.give();
        true
    }

    /// Lets readers in, and leaves by `leave`; called by a writer that stays in a way that keeps no
    /// readers out.
    pub(super) fn let_readers_in(&self, leave: impl Fn(State) -> (State, Option<u16>)) {
        if !self.peek().is_spread() {
            return self.leave(leave);
        }
        self.end_turn();
        let lines = self.lines();
        self.leave(|seen| leave(seen.with_open()));
        if let Some(lines) = lines {
            lines.tell();
        }
    }

    /// Prevents readers from being counted by socket for this many `units` of `rest`.
    pub(super) fn rest(&self, units: u64) {
        let units = units.clamp(1, LONGEST_REST);
        let until = now::<P>().wrapping_add(units as u8);
        // Relaxed: it orders nothing.
        self.rest.store(until.max(1), Relaxed);
    }

    pub(super) fn is_rested(&self) -> bool {
        // Relaxed: it orders nothing.
        let until = self.rest.load(Relaxed);
        until == 0 || until.wrapping_sub(now::<P>()).cast_signed() <= 0
    }
}

fn now<P: Platform>() -> u8 {
    (P::now(Clock::Monotonic) >> REST_BITS) as u8
}
