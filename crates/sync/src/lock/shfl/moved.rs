//! Moving: a broadcast puts the waiters of a condition variable into the queue of the mutex that
//! they will lock, so that each is woken when its turn comes.
//!
//! ```text
//!   list of the condition variable        queue of the mutex
//!
//!     w1 ─► w2 ─► w3 ─► w4                HEAD ─► … ─► last
//!     └──────────┬──────────┘                           │ one exchange of the tail, one link
//!                └──────────────────────────────────────┴─► w1 ─► w2 ─► w3 ─► w4
//!                                                        woken   (asleep)   woken: rearguard
//! ```
//!
//! - MOVE-1: the mover touches the mutex once, the tail, before any of the waiters may know that it
//!   was moved. Until then none can return, so the mutex is there (MUTEX-3).
//! - MOVE-2: behind each waiter that sleeps on stands a rearguard that is awake: it sleeps with the
//!   backstop. If it overtakes a head that does not run, it wakes all that sleep on in that queue,
//!   and from then on they have backstops of their own.
//! - MOVE-3: a waiter that was moved acquires the mutex by
//!   [`ShflMutex::lock_moved`](super::ShflMutex::lock_moved), whatever has ended its sleep: no
//!   waiter leaves the queue early.
//!
//! The first waiter is woken because it may be the head, and because the rearguard may have
//! overtaken before the first was notified. So a broadcast to many costs two wakes more than it has
//! waiters.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform, Waiter, WaiterId};

use super::queue::{Place, Tail, TailId};
use super::status;
use crate::arena;

/// [`Waiter::queue`] of the last of the waiters that were moved together. The rest is the address
/// of the tail, which is even.
const REARGUARD: u64 = 1;

/// A waiter that was moved: it must acquire the mutex by
/// [`ShflMutex::lock_moved`](super::ShflMutex::lock_moved).
#[must_use]
pub struct Moved(pub(super) WaiterId);

/// What a waiter finds when it looks at its own node.
pub(crate) enum Look {
    /// The waiter is on the list, as far as it can see. From now on a mover sees that the waiter
    /// looks, so no thread moves it without its knowledge.
    Listed,
    Notified,
    Moved(Moved),
}

/// Returns whether a notification of either kind has come; orders nothing.
pub(crate) fn is_notified<P: Platform>(node: &Waiter<P>) -> bool {
    let status = status::Status::from_bits(node.status.load(Relaxed));
    status.notified() || status.waiting()
}

/// Returns whether the caller was notified or moved; `node` is the caller's.
pub(crate) fn look<P: Platform>(id: WaiterId, node: &Waiter<P>) -> Look {
    let mut seen = status::load(node);
    if !seen.notified() && !seen.waiting() {
        seen = status::look(node);
    }
    match (seen.waiting(), seen.notified()) {
        (true, _) => Look::Moved(Moved(id)),
        (_, true) => Look::Notified,
        _ => Look::Listed,
    }
}

/// Waiters that will be moved together.
pub(crate) struct Chain<P: Platform> {
    ends: Option<(Place<P>, Place<P>)>,
    /// The value of [`Waiter::queue`] in each node.
    queue: u64,
}

impl<P: Platform> Chain<P> {
    pub(crate) const NEW: Self = Self { ends: None, queue: 0 };

    /// Adds a waiter if it has named a queue, the same one as the waiters before it. Returns
    /// whether it was added.
    pub(crate) fn push(&mut self, bits: u32) -> bool {
        let Some(place) = Place::<P>::at(bits) else { return false };
        // Relaxed throughout: the list's lock orders us after the waiter; publishing comes later.
        let queue = place.node.queue.load(Relaxed);
        if queue == 0 || self.queue != 0 && self.queue != queue {
            return false;
        }
        self.queue = queue;
        place.node.next.store(0, Relaxed);
        place.node.resume.store(0, Relaxed);
        let first = self.ends.map_or(place, |(first, last)| {
            last.node.next.store(place.id.bits(), Relaxed);
            first
        });
        self.ends = Some((first, place));
        true
    }

    /// Moves the waiters into the queue, and wakes the first and the last. Returns how many of them
    /// had not begun to look: those only acquire the mutex from now on.
    ///
    /// # Safety
    ///
    /// Each waiter is LISTED and can't get off its list before this returns.
    pub(crate) unsafe fn join(self) -> u32 {
        let Some((first, last)) = self.ends else { return 0 };
        let references = [first, last].map(|place| arena::<P>().reference(place.id.index()));
        last.node.queue.store(self.queue | REARGUARD, Relaxed);
        let tail = core::ptr::with_exposed_provenance::<TailId<P>>(self.queue as usize);
        // SAFETY: the waiters have exposed the address, and will lock the mutex: it exists until
        // one of them is notified below that it was moved (MOVE-1).
        let previous = unsafe { (*tail).join(last.id) };
        let mut unaware = 0;
        // Before the link, because afterwards a shuffler may change the order.
        let mut at = first;
        while at != last {
            let Some(next) = at.next() else { break };
            at = next;
            let was = if at == last {
                status::admit(at.node, false)
            } else {
                status::admit_asleep(at.node)
            };
            unaware += u32::from(!was.looking());
        }
        let head = !first.link(previous);
        unaware += u32::from(!status::admit(first.node, head).looking());
        let woken = if first == last { 1 } else { 2 };
        references.into_iter().take(woken).flatten().for_each(P::unpark);
        unaware
    }
}

/// Returns whether the waiter is the last of those that were moved together.
pub(super) fn is_rearguard<P: Platform>(node: &Waiter<P>) -> bool {
    // Relaxed: written before the waiter was in the queue, and published with it.
    node.queue.load(Relaxed) & REARGUARD != 0
}

/// Called by a waiter that has overtaken the head: if it is a rearguard, wakes the waiters that it
/// has guarded, and all others that sleep on in that queue (MOVE-2). Searches all nodes, at most
/// once per broadcast, and only after a backstop.
pub(super) fn relieve<P: Platform>(node: &Waiter<P>) {
    if !is_rearguard(node) {
        return;
    }
    let arena = arena::<P>();
    let queue = node.queue.load(Relaxed) & !REARGUARD;
    for index in 1..=arena.high_water() {
        let Some(other) = arena.resolve_index(index) else { continue };
        // Before the look at its status: a node that changes hands afterwards is not woken.
        let reference = arena.reference(index);
        // The waiters that we guard were moved before we were notified, by the same release.
        if status::load(other).moved()
            && other.queue.load(Relaxed) == queue
            && let Some(reference) = reference
        {
            P::unpark(reference);
        }
    }
}
