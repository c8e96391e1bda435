//! The policy that serves the most urgent waiter first, and the ranks of threads.

use core::cmp::Ordering;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

use super::{Policy, Waiting};

/// The most urgent waiter first; equally urgent waiters in order of arrival.
///
/// A thread sets its own urgency ([`set_priority`]); otherwise the scheduler's is used
/// ([`Urgency::rank`](antiphon_platform::Urgency::rank)); the policy asks once, when the wait
/// begins. On Linux the scheduler's answer costs a system call.
///
/// No waiter starves: a waiter is overtaken for its rank at most 64 times
/// ([`bypass`](Policy::bypass)), and after that by no other, however urgent. This policy does not
/// change two things: an arriving waiter that finds the lock free takes it, as everywhere in this
/// family, and the waiter that is the head already stays the head. Waiters of real-time priority do
/// not depend on the policy: they go before all others in any lock that sleeps, the head included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority;

impl Policy for Priority {
    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        note(me, P::rank);
    }

    /// Always true: the order is the same for every shuffler.
    fn groups<P: Platform>(self, _: &Waiting<P>, _: &Waiting<P>) -> bool {
        true
    }

    fn sorts(self) -> bool {
        true
    }

    fn compare<P: Platform>(
        self,
        _: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        other.rank().cmp(&one.rank())
    }

    fn strict(self) -> bool {
        true
    }

    fn bypass(self) -> u16 {
        64
    }
}

/// Notes the rank of the caller in its own node; `asked` asks the scheduler.
pub(super) fn note<P: Platform>(me: &Waiting<P>, asked: impl FnOnce() -> u8) {
    // Relaxed: only this thread uses the word.
    let own = P::local(|local| local.rank.load(Relaxed));
    let rank = own.checked_sub(1).map_or_else(|| asked().into(), |own| own as u16);
    me.set_rank(rank);
}

/// Sets how urgent the calling thread is where locks serve the most urgent first; larger goes
/// first. `None`: the scheduler's rank, as for a new thread. The scale is that of
/// [`Urgency::rank`](antiphon_platform::Urgency::rank). Takes effect from the thread's next wait;
/// never blocks.
///
/// A fiber that waits has the rank of the thread under it.
pub fn set_priority<P: Platform>(rank: Option<u8>) {
    let own = rank.map_or(0, |rank| u32::from(rank) + 1);
    P::local(|local| local.rank.store(own, Relaxed));
}
