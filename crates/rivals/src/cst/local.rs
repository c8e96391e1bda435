//! The queue of one socket: an MCS queue whose owner passes over sleeping waiters.
//!
//! ```text
//!                grant            (the lock, or headship)
//!   UW ─────────────────────► L
//!   │ ▲
//!   │ │ has been woken, and runs
//!   ▼ │       passed over
//!   PW ───────────────────► PW+OUT ─────► OUT   (joins anew)
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform};

use super::CstForm;
use super::parking::{HEAD, LOCK, OUT, UW};
use super::parking::{fall_asleep, list, pass_over, sleep, spin, sweep};
use crate::classic::node::Node;
use crate::cst::snode::Snode;

/// What a waiter that has joined the queue must do next.
#[must_use]
pub(super) enum Joined {
    /// The waiter has the lock, handed over by another waiter of its socket.
    Owner,
    /// The waiter is the first of its socket, and must acquire the lock for it.
    Head,
    /// The waiter has slept, and is in no queue.
    Out,
}

impl<P: Platform> Snode<P> {
    /// Joins the queue, and waits until the caller is owner, head or out.
    pub(super) fn join<F: CstForm>(&self, me: &Node<P>) -> Joined {
        // Relaxed: published with the node's name.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(UW, Relaxed);
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that; if the queue was empty, with the release in `behind`, for what the last owner left
        // here.
        let Some(previous) = Node::<P>::at(self.tail().swap(me.bits(), AcqRel)) else {
            return Joined::Head;
        };
        // Release: our node; pairs with the acquire in `behind`.
        previous.waiter.next.store(me.bits(), Release);
        loop {
            let seen =
                match spin::<P, F, u32>(&me.waiter.status, F::MARGIN_NS, |status| status == UW) {
                    Ok(seen) => seen,
                    Err(_) => self.park(me),
                };
            match seen {
                LOCK => return Joined::Owner,
                HEAD => return Joined::Head,
                UW => {}
                _out => return Joined::Out,
            }
        }
    }

    /// Sleeps, unless the lock or headship was granted before; returns the caller's new status.
    fn park(&self, me: &Node<P>) -> u32 {
        if let Err(granted) = fall_asleep(me) {
            return granted;
        }
        list::<P>(self.parked(), me);
        // CST-4. Relaxed: if the sweep in question is over, `list` has acquired from it.
        if me.waiter.status.load(Relaxed) & OUT != 0 {
            sweep::<P>(self.parked()).wake::<P>();
        }
        sleep(me)
    }

    /// Takes the waiter that has slept longest off the list. Called by an owner that leaves the
    /// socket and still has the lock, after its last call of `pass` (CST-4).
    pub(super) fn longest_asleep(&self) -> Option<Node<P>> {
        let first = self.first_asleep();
        // Relaxed: handed on with the lock, like the links of the ordered waiters.
        if first.load(Relaxed) == 0 {
            first.store(sweep::<P>(self.parked()).in_order::<P>().into(), Relaxed);
        }
        let sleeper = Node::<P>::at(first.load(Relaxed) as u32)?;
        first.store(sleeper.waiter.resume.load(Relaxed).into(), Relaxed);
        Some(sleeper)
    }

    /// CST-3: grants `what` to the first waiter behind `me` that does not sleep, or closes the
    /// queue, which is then empty; returns whether it has granted. Called by the owner, whose node
    /// is `me`.
    pub(super) fn pass(&self, me: &Node<P>, what: u32) -> bool {
        let mut next = self.behind(me);
        while let Some(at) = next {
            let status = &at.waiter.status;
            // Release: what we have done; pairs with the acquires of a waiter's status. Relaxed
            // where it fails: nothing is read, because the waiter sleeps.
            if status.compare_exchange(UW, what, Release, Relaxed).is_ok() {
                return true;
            }
            next = self.behind(&at);
            if next.is_none() {
                // The queue is closed, so the waiter is out even if it has woken meanwhile.
                // Release: as in `pass_over`.
                // mutant: a model executes a load before all later writes of other threads, so our
                // read of the link never sees the node's next use.
                status.fetch_or(OUT, Release);
            } else if !pass_over(&at) {
                // It is awake, keeps its place, and can be granted the lock.
                next = Some(at);
            }
        }
        false
    }

    /// Returns the waiter behind `at`. If there is none, closes the queue.
    fn behind(&self, at: &Node<P>) -> Option<Node<P>> {
        let next = &at.waiter.next;
        // Relaxed: only whether it is zero matters here. Release: what we have done, to the
        // arriving waiter that finds the queue empty; pairs with the acquire in `join`.
        let last = next.load(Relaxed) == 0
            && self.tail().compare_exchange(at.bits(), 0, Release, Relaxed).is_ok();
        if last {
            return None;
        }
        // Acquire: pairs with the release of the link.
        Node::at(next.wait_while(Acquire, |next| next == 0))
    }
}
