//! Readers that sleep at the gate, in a list for each socket.
//!
//! A reader that finds the lines closed waits at the gate (`spread.rs`). If another thread wants
//! its CPU, or it has waited for long, it sleeps there. In the lock's queue it would stand among
//! writers, and wait for its own turn. A thread that lets readers in wakes one reader of each
//! socket, which wakes the others of its socket.
//!
//! ```text
//!   joined           ASLEEP, and the lines in use
//!   line 0   asleep ──next──► reader ──next──► reader ──next──► reader
//!   line 1   asleep ──next──► reader
//!
//!                         told, with the rest
//!   a writer leaves ─────────────────────────► the first of a line ──► tells the others
//! ```
//!
//! - GATE-1: a reader puts itself on the list of its line, sets `ASLEEP`, and looks at the state
//!   behind a fence; it sleeps only if a writer is in, which will let readers in (RW-14). A thread
//!   that lets readers in, or counts them in the lock's word again, checks `ASLEEP` behind a fence
//!   after that. So one of the two sees the other.
//! - GATE-2: a list is taken as a whole. The thread that has it tells each reader on it that the
//!   reader is on no list, or hands the rest of the list to a reader that it tells. A reader that
//!   leaves untold abandons its node, and the thread that has the list gives the node back.
//! - GATE-3: a reader waits in the queue if it was notified a few times and found the lines closed
//!   again, or was not notified before the backstop, because a thread with the list does not run.
//!
//! The lists belong to the indicator, which may be another lock's by now. A late reader that is on
//! such a list, and finds that its own lock no longer has the indicator, takes the list and wakes
//! all readers on it: they look at their lock, and sleep again.
//!
//! In the child of a fork the names on a list are another process's, and end the list.

use core::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};

use antiphon_platform::{Atomic, Platform, WaiterRef};

use super::super::abandoned;
use super::super::form::Form;
use super::super::queue::Place;
use super::super::status::{self, Leave};
use super::super::urgent;
use super::indicator::{Line, Lines};
use crate::{arena, nap, policy};

/// How many readers one thread tells before it leaves the rest to the next reader.
const TOGETHER: u32 = 64;

impl<P: Platform> Lines<P> {
    /// Sleeps until the caller learns that readers are let in; returns `false` if it did not learn
    /// it. Sleeps only if `will_open`: a writer is in, and will let readers in.
    pub(super) fn sleep<F: Form>(self, will_open: impl Fn() -> bool) -> bool {
        if F::BACKSTOP_NS != 0 && !abandoned::thread_may_leave_one::<P>() {
            return false;
        }
        // A waiter asks for its urgency before it sleeps, as in the queue, where urgent waiters are
        // served.
        if urgent::caller_is_urgent::<P>() {
            return false;
        }
        let Some(me) = Place::<P>::take(policy::None) else { return false };
        let line = self.join();
        line.push(me);
        self.note_sleeper();
        // GATE-1.
        P::fence(SeqCst);
        if !will_open() {
            line.rouse();
        }
        let until = (F::BACKSTOP_NS != 0).then(|| nap::earlier::<P>(None, F::BACKSTOP_NS));
        loop {
            if me.is_lost() {
                return false;
            }
            if status::load(me.node).out() {
                // Relaxed: acquired with the status.
                let rest = Place::<P>::at(me.node.resume.load(Relaxed));
                me.give();
                tell(rest, TOGETHER);
                return true;
            }
            if status::park(me.node, 0, false, false) {
                let _ = P::park(me.node, until);
                let _ = status::unpark(me.node);
            }
            if nap::passed::<P>(until)
                && !me.is_lost()
                && let Leave::Abandoned = status::leave(me.node)
            {
                let (index, generation) = (me.id.index(), me.generation);
                abandoned::note::<P>(WaiterRef { index, generation });
                return false;
            }
        }
    }

    /// GATE-1: wakes the readers that sleep. Called by a thread that has let readers in, or has
    /// made the lock's word count them.
    pub(super) fn rouse_sleepers(self) {
        P::fence(SeqCst);
        if self.takes_sleepers() {
            for line in self.lines() {
                line.rouse();
            }
        }
    }
}

impl<P: Platform> Line<P> {
    /// Puts the caller on the list.
    fn push(&self, me: Place<P>) {
        // Relaxed: the exchange checks it.
        let mut seen = self.sleepers().load(Relaxed);
        loop {
            // Relaxed: published by the exchange.
            me.node.next.store(seen, Relaxed);
            // Release: our node; and acquire: that the flag was cleared before the list was taken,
            // so that we set it again. Both pair with the exchange in `rouse`.
            match self.sleepers().compare_exchange(seen, me.id.bits(), AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// GATE-2: takes the list, and tells its first reader.
    fn rouse(&self) {
        // An exchange even if the list may be empty: a load could miss a reader that has found
        // `ASLEEP` set when it was about to be cleared. AcqRel: pairs with `push`.
        tell(Place::<P>::at(self.sleepers().swap(0, AcqRel)), 1);
    }
}

/// GATE-2: tells the first `count` readers of a list that the caller has taken, and hands the rest
/// to the last of these. Touches only nodes.
fn tell<P: Platform>(mut list: Option<Place<P>>, mut count: u32) {
    while let Some(place) = list {
        // Relaxed: acquired with the list.
        let rest = place.node.next.load(Relaxed);
        // Relaxed: published by `turn_out`.
        place.node.resume.store(if count == 1 { rest } else { 0 }, Relaxed);
        // Before the reader can learn of it: from then on the node is its own.
        let target = arena::<P>().reference(place.id.index());
        let was = status::turn_out(place.node);
        if was.parked()
            && !was.abandoned()
            && let Some(target) = target
        {
            P::unpark(target);
        }
        list = Place::at(rest);
        if was.abandoned() {
            place.give();
            continue;
        }
        count -= 1;
        if count == 0 {
            return;
        }
    }
}
