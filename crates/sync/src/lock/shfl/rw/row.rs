//! Waking readers that stand in a row, so that they come in together.
//!
//! A reader that comes in from the queue makes the next reader the head, which comes in beside it,
//! and so on. Where they sleep, each would be woken by the one before it, and a wake takes from 3
//! to more than 100 µs: a row of a hundred would take milliseconds, and delay a writer behind it as
//! long.
//!
//! ```text
//!   (in) ──► reader ──► reader ──► … ──► reader ──► writer
//!              head │      ▲               ▲
//!                   └──────┴── woken ──────┘
//! ```
//!
//! - RW-13: a thread that wakes a reader as the head, without keeping the lock for it, also wakes
//!   the readers that sleep in a row behind it, at most [`TOGETHER`]. Such a reader comes in as any
//!   arriving reader may, before it is the head, and leaves its place to be passed over, as after
//!   the backstop; or it is awake when it becomes the head.
//!
//! This is an optimisation, and no part of the argument that no wake is lost: a reader that is not
//! woken here is woken by the waiter before it, by RW-2. So the row may change meanwhile, or end
//! for any reason.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform, Waiter};

use super::super::form::Form;
use super::super::queue::Place;
use super::super::status;
use super::wake::call;
use crate::arena;

/// In [`Waiter::wants`]: the waiter wants to write, and moves if it can (HEIR-8).
pub(super) const MOVES: u32 = 2;

/// The most readers of a row that are woken together. The last of them wakes those behind it when
/// it comes in.
const TOGETHER: u32 = 64;

/// Does what [`call`] does, and wakes the row behind the head of this name (RW-13).
#[cold]
#[inline(never)]
pub(super) fn call_row<P: Platform, F: Form>(name: u16, kept: bool) {
    call::<P, F>(name, kept);
    // A name has fewer bits than an index: with many waiters this may be another waiter, and the
    // wakes of its row are spurious.
    let head = arena::<P>().resolve_index(name.into());
    if let Some(head) = head.filter(|head| !kept && reads(head)) {
        wake_row(head);
    }
}

/// RW-13: wakes the readers that sleep in a row behind this one. Touches only nodes; these may
/// stand in another queue by now, and then the wakes are spurious.
pub(super) fn wake_row<P: Platform>(reader: &Waiter<P>) {
    // Acquire: as in `Place::next`.
    // mutant: a sleeper that is missed is woken later, by the waiter before it.
    let mut at = Place::<P>::at(reader.next.load(Acquire));
    for _ in 0..TOGETHER {
        let Some(place) = at.filter(|place| reads(place.node)) else { return };
        if status::load(place.node).parked()
            && let Some(sleeper) = arena::<P>().reference(place.id.index())
            && !P::unpark_asleep(sleeper)
        {
            // The waiter is being woken already, and the thread that woke it wakes the rest; or the
            // waiter is about to sleep, and the rest is left to the waiters before it.
            return;
        }
        at = place.next();
    }
}

pub(super) fn reads<P: Platform>(waiter: &Waiter<P>) -> bool {
    // Relaxed: written before its waiter joined the queue, whose links are acquired. If the node
    // serves another wait by now, this decides only about a wake.
    waiter.wants.load(Relaxed) == 0
}
