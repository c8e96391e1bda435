//! Where readers are counted: in the lock's word, or by socket.
//!
//! | mode | `state` | a reader is counted | a writer |
//! |---|---|---|---|
//! | central | neither | in `state` | has the lock when `WRITER` is set |
//! | open | `OPEN` | on a line of its socket | – |
//! | draining | `OPEN`, `SHUT` | the same, and none enters | has set `WRITER`, and waits |
//! | shut | `SHUT` | on none: none is in | has the lock, or has left it to the next writer |
//!
//! ```text
//!              a crowd of readers                 WRITER
//!   central ──────────────────────► open ─────────────────────► draining
//!      ▲                              ▲ ▲                        │     │
//!      │ a writer, after few readers  │ └── gives up ────────────┘     │ sum is 0
//!      │                              │                              ▼
//!      └───────────── shut ───────────┴── a writer leaves, ──────── shut
//!                                         or a reader comes in
//! ```
//!
//! - RW-7: while a reader is in, the mode changes from central to another only, and by the one
//!   exchange that moves the count from the state to a line. So a reader leaves by a line if the
//!   state says that readers are counted there, and by the state if not, wherever it came in; a
//!   reader that has subtracted from a state which says otherwise takes that back.
//! - RW-8: the mode becomes central only in the hands of a writer that has waited for all lines,
//!   and if the state counts no reader. A reader that counts itself in, and finds another mode than
//!   central, is counted in the state until it takes that back, or takes a seat.
//! - RW-9: a reader that has counted itself in, and found the mode to be central, is in if the mode
//!   is another by now: its count was moved, and a writer waits for it.
//! - RW-10: a reader is in by a line if it has counted itself there, and behind a fence the state
//!   is open and the lock names that indicator. A writer sets the mode to draining, and looks at
//!   the lines behind a fence. So one of the two sees the other. If the lock names another
//!   indicator, or none, the line is another lock's by now, whose writers wait until the reader has
//!   taken itself off.
//! - RW-11: a reader that may read already (`Heed::Recursion`) comes in so while the mode is
//!   draining, too. So a writer that has waited says so (shut, and `UPGRADING`), and looks at the
//!   sum once more behind a fence; it waits again, or says that it is in. A reader that may read
//!   already waits for that verdict: if it finds a writer in then, it does not read already.
//!
//! A reader that has come in through the state, in another mode than central, takes a seat: it lets
//! readers in if the mode is shut, counts itself on the line of its socket, and leaves the state,
//! for which writers had to wait until then. So the queue, its sleepers and its fairness are those
//! of the state, and know nothing of lines.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Budget, Clock, Deadline, Platform};

use super::super::mutex::Form;
use super::form::Lasting;
use super::indicator::Lines;
use super::state::State;
use super::wake::call;
use super::{RwForm, ShflRwLock};
use crate::nap;
use crate::policy::Policy;

/// The unit of `rest`, in powers of two nanoseconds: 66 µs.
const REST_BITS: u32 = 16;
/// The longest rest, in that unit: half of what a byte can tell apart.
const LONGEST_REST: u64 = 127;
/// What it costs a writer to look at a line, and a reader to have it back, about.
const LINE_NS: u64 = 500;
/// How often a crowd tries to be counted by socket before it leaves that to the next.
const TRIES: u32 = 4;
/// How long a reader waits to be let in before it looks whether a writer is in at all: each look
/// takes the lock's line away from the writers.
const PIECE_NS: u32 = 50_000;
/// Readers are let in for as long as writers had the lock before, and no longer than that.
const MOST_NS: u64 = 20_000;
/// So many readers a line are few.
const FEW: u64 = 2;

/// How long a writer waits for the readers of lines.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    /// Not at all.
    Never,
    /// Until then, or for ever.
    Until(Option<Deadline>),
}

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// Whether readers may be counted by socket at all.
    #[inline]
    pub(super) fn may_spread() -> bool {
        F::CROWD != u32::MAX && P::numa()
    }

    /// Gives back what the lock has taken to count its readers by socket, if it is free; never
    /// blocks. To be called before its memory is put to other uses: no other lock can have it
    /// otherwise.
    #[inline]
    pub fn gather(&self) {
        if self.peek().is_spread() {
            self.gather_free();
        }
    }

    #[cold]
    #[inline(never)]
    fn gather_free(&self) {
        if !self.try_write() {
            return;
        }
        if let Some(lines) = self.lines() {
            let _ = self.centralise(lines);
        }
        self.release_writer();
    }

    /// The indicator that the lock names.
    pub(super) fn lines(&self) -> Option<Lines<P>> {
        // Relaxed: acquired with the state, whose mode says that there is one.
        Lines::named(self.lines.load(Relaxed))
    }

    /// Whether readers are in by lines; may be stale at once.
    pub(super) fn is_read_by_line(&self) -> bool {
        self.peek().is_spread() && self.lines().is_some_and(|lines| lines.sum() != 0)
    }

    /// What a reader does first: comes in by a line, if readers are counted there; `waits`: for a
    /// moment, if it has to.
    #[inline]
    pub(super) fn sit_down(&self, waits: bool) -> bool {
        if !Self::may_spread() {
            return false;
        }
        // Acquire: the name of the indicator; pairs with the release in `spread`.
        let seen = State(self.state.load(Acquire));
        seen.is_spread() && self.sit_down_here(seen, waits)
    }

    #[inline(never)]
    fn sit_down_here(&self, seen: State, waits: bool) -> bool {
        let name = self.lines.load(Relaxed);
        let Some(lines) = Lines::<P>::named(name) else { return false };
        let Some(line) = lines.here() else { return false };
        let mut open = seen.lets_sit();
        loop {
            if open {
                line.enter();
                if self.has(name, State::lets_sit) {
                    return true;
                }
                lines.take_back(&line);
            }
            if !waits || !self.wait_to_be_let_in(lines) {
                return false;
            }
            open = true;
        }
    }

    /// RW-11: as one that was refused though it may read already, and so perhaps by a writer that
    /// waits for it. `false`: a writer is in, or the lock is free and kept for one.
    #[cold]
    pub(super) fn sit_beside(&self) -> bool {
        loop {
            // Acquire: the name of the indicator.
            let seen = State(self.state.load(Acquire));
            if seen.is_verifying() {
                self.wait_for_verdict(seen);
                continue;
            }
            if !seen.may_be_sat_in() {
                return false;
            }
            let name = self.lines.load(Relaxed);
            let Some(lines) = Lines::<P>::named(name) else { continue };
            let Some(line) = lines.any() else { continue };
            line.enter();
            if self.has(name, State::may_be_sat_in) {
                return true;
            }
            lines.take_back(&line);
        }
    }

    /// Waits while the state is so: a writer reads some lines, and says then what it has found.
    #[cold]
    fn wait_for_verdict(&self, seen: State) {
        const NAP_NS: u64 = 50_000;
        // Relaxed: looked at again.
        if self.state.spin_while(Relaxed, F::HEAD_SPIN, |now| now == seen.0).is_err() {
            nap::nap::<P>(NAP_NS);
        }
    }

    /// RW-10: whether one that has counted itself on a line of that indicator is in, if those are
    /// for which the mode is as `lets` says.
    #[inline]
    fn has(&self, name: u16, lets: impl Fn(State) -> bool) -> bool {
        // Acquire: what writers have done; and the name. An addition that has found another lock's
        // line comes after that lock has taken it, and so after ours has given it back.
        lets(State(self.state.load(Acquire))) && self.lines.load(Relaxed) == name
    }

    /// Waits until readers are let in, while one writer follows the other; says whether they were.
    fn wait_to_be_let_in(&self, lines: Lines<P>) -> bool {
        let mut left_ns = Lasting::<F>::LINGER.ns;
        let mut turn = None;
        while left_ns > 0 && P::slice_left_ns() > PIECE_NS {
            let told = lines.told();
            let seen = self.peek();
            if seen.lets_sit() {
                return true;
            }
            // Relaxed: decides how to wait. A writer that was up has gone, or lost its CPU.
            let now = self.rest.load(Relaxed);
            if !seen.is_spread() || !seen.has_writer() && turn.replace(now) == Some(now) {
                return false;
            }
            let piece_ns = left_ns.min(PIECE_NS);
            left_ns -= piece_ns;
            if lines.wait_to_be_told(told, Budget::ns(piece_ns)) {
                return true;
            }
        }
        false
    }

    /// RW-7: leaves, as a reader, by a line. `false` if readers are counted in the state.
    #[inline]
    pub(super) fn stand_up(&self) -> bool {
        // Acquire: the name of the indicator.
        if !Self::may_spread() || !State(self.state.load(Acquire)).is_spread() {
            return false;
        }
        self.leave_line();
        true
    }

    #[inline(never)]
    fn leave_line(&self) {
        if let Some(lines) = self.lines() {
            lines.leave();
        }
    }

    /// RW-7: as a reader that has subtracted itself from a state that counts no readers any more.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_by_line_after_all(&self) {
        self.count_again();
        // Acquire: the name of the indicator.
        let _ = State(self.state.load(Acquire));
        self.leave_line();
    }

    /// RW-8: as a reader that has come in through the state, and found it so. Takes a seat if
    /// readers are counted elsewhere.
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
        // The state counts us, so the mode can't be central, nor any writer be in.
        if let Some(lines) = self.lines() {
            // Release: as of a writer that leaves. In the release sequence of the last one anyway.
            if self.peek().is_shut()
                && self.change(Release, |seen| seen.is_shut().then(|| seen.with_open())).is_ok()
            {
                lines.tell();
            }
            lines.join().sit();
        }
        self.leave_state();
    }

    /// Has a crowd of readers, of which the caller is one and which the state counts, counted by
    /// socket from now on, if nothing speaks against it.
    #[cold]
    #[inline(never)]
    pub(super) fn spread(&self) {
        if !self.is_rested() || P::is_foreign(core::ptr::from_ref(self).addr()) {
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
            // RW-7. Release: pairs with the acquires of those that sit down or stand up.
            if self.state.compare_exchange(seen.0, spread.0, Release, Relaxed).is_ok() {
                if let Some(name) = called {
                    call::<P, F>(name, seen.is_fair());
                }
                return;
            }
        }
        line.count_over(counted, 0);
        // Relaxed: who writes it next has acquired the indicator.
        self.lines.store(0, Relaxed);
        lines.give();
    }

    /// As the owner of `WRITER`, which was set by an exchange that the caller has made: waits for
    /// those that are in by lines, and has the lock then. `false` if it does not have it: then all
    /// is as it was, and `back` is what becomes of the state.
    pub(super) fn drain(
        &self,
        patience: Patience,
        back: impl Fn(State) -> (State, Option<u16>),
    ) -> bool {
        // Acquire: the name of the indicator.
        if !State(self.state.load(Acquire)).may_be_sat_in() {
            return true;
        }
        self.drain_lines(patience, back)
    }

    #[cold]
    #[inline(never)]
    fn drain_lines(
        &self,
        patience: Patience,
        back: impl Fn(State) -> (State, Option<u16>),
    ) -> bool {
        let Some(lines) = self.lines() else { return true };
        if let Patience::Until(_) = patience {
            Self::let_readers_come(lines);
        }
        loop {
            // RW-10. Relaxed: by the fence.
            let _ = self.change(Relaxed, |seen| Some(seen.with_draining()));
            P::fence(SeqCst);
            let empty = match patience {
                Patience::Never => lines.sum() == 0,
                Patience::Until(deadline) => lines.wait_until_empty::<F>(deadline),
            };
            if !empty {
                self.leave(|seen| back(seen.with_open()));
                lines.tell();
                return false;
            }
            // RW-11. Relaxed: by the fence.
            let _ = self.change(Relaxed, |seen| Some(seen.with_verifying()));
            P::fence(SeqCst);
            if lines.is_empty() {
                break;
            }
        }
        // Relaxed: it is told to those that wait for it.
        let _ = self.change(Relaxed, |seen| Some(seen.drained()));
        Self::note(lines);
        self.rest.store(0, Relaxed);
        true
    }

    /// Notes, as the writer, whether many have come by lines since the last one had to wait.
    fn note(lines: Lines<P>) {
        // Relaxed, here and below: the owner's words, handed on with the lock.
        let owner = lines.owner();
        let entered = lines.entered();
        let since = entered.wrapping_sub(owner.entered.load(Relaxed));
        owner.entered.store(entered, Relaxed);
        owner.since_ns.store(P::now(Clock::Monotonic), Relaxed);
        let few = since < FEW * u64::from(lines.count());
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
        let owner = lines.owner();
        let turns = self.rest.load(Relaxed) + 1;
        // A writer that is up is next, most likely: it finds the lines shut.
        if turns < F::TURNS && self.has_waiters() && !seen.is_called() {
            self.rest.store(turns, Relaxed);
            self.leave(State::release_writer);
            return;
        }
        if owner.idle.load(Relaxed) >= F::IDLE && self.centralise(lines) {
            self.leave(State::release_writer);
            return;
        }
        self.note_turns(lines);
        self.leave(|seen| seen.with_open().release_writer());
        lines.tell();
    }

    /// Waits, as a writer that others have preceded for long, while readers come in.
    fn let_readers_come(lines: Lines<P>) {
        // Relaxed, here and below: the owner's words.
        let until = lines.owner().until_ns.load(Relaxed);
        if F::LINGER.ns == 0 || until == 0 {
            return;
        }
        let left = until.saturating_sub(P::now(Clock::Monotonic)).min(MOST_NS);
        if left > 0 {
            let _ = lines.wait_to_be_told(lines.told(), Budget::ns(left as u32));
        }
    }

    /// Notes, as the last of some writers in a row, for how long readers are let in.
    fn note_turns(&self, lines: Lines<P>) {
        let owner = lines.owner();
        let since = owner.since_ns.load(Relaxed);
        let now = P::now(Clock::Monotonic);
        owner.until_ns.store(now + now.saturating_sub(since).min(MOST_NS), Relaxed);
    }

    /// RW-8: has readers counted in the state, as the writer, if that counts nobody.
    fn centralise(&self, lines: Lines<P>) -> bool {
        // Relaxed: published with the release of the lock.
        if self.change(Relaxed, State::centralised).is_err() {
            return false;
        }
        let took_ns = u64::from(F::IDLE) * u64::from(lines.count()) * LINE_NS;
        self.rest((took_ns * u64::from(F::REST)) >> REST_BITS);
        self.lines.store(0, Relaxed);
        lines.give();
        true
    }

    /// The writer leaves by `leave`, and stays as what keeps no readers out, which are let in.
    pub(super) fn let_readers_in(&self, leave: impl Fn(State) -> (State, Option<u16>)) {
        if !self.peek().is_spread() {
            return self.leave(leave);
        }
        let lines = self.lines();
        self.leave(|seen| leave(seen.with_open()));
        if let Some(lines) = lines {
            lines.tell();
        }
    }

    /// Readers are not counted by socket for so long.
    fn rest(&self, units: u64) {
        let units = units.clamp(1, LONGEST_REST);
        let until = now::<P>().wrapping_add(units as u8);
        // Relaxed: it orders nothing.
        self.rest.store(until.max(1), Relaxed);
    }

    fn is_rested(&self) -> bool {
        // Relaxed: as above.
        let until = self.rest.load(Relaxed);
        until == 0 || until.wrapping_sub(now::<P>()).cast_signed() <= 0
    }
}

fn now<P: Platform>() -> u8 {
    (P::now(Clock::Monotonic) >> REST_BITS) as u8
}
