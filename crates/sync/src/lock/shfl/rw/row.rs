//! Readers that stand in a row come in together.
//!
//! A reader that comes in from the queue makes the next reader the head, which comes in beside it,
//! and so on. Where they sleep, each would be woken by the one before it, and a wake takes from 3
//! to more than 100 µs: a row of a hundred would take milliseconds, and a writer behind it as
//! long.
//!
//! ```text
//!   (in) ──► reader ──► reader ──► … ──► reader ──► writer
//!              head │      ▲               ▲
//!                   └──────┴── woken ──────┘
//! ```
//!
//! - RW-13: a thread that wakes a reader as the head, without keeping the lock for it, also wakes
//!   the readers that sleep in a row behind it, [`TOGETHER`] at most. Such a reader comes in as any
//!   arriving reader may, before it is the head, and leaves its place to be passed over, as after
//!   the backstop; or it is awake when it becomes the head.
//!
//! That is a help, and no part of the argument that no wake is lost: a reader that is not woken
//! here is woken by the waiter before it, by RW-2. So the row may change meanwhile, or end for any
//! reason.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform, Waiter};

use super::super::form::Form;
use super::super::queue::Place;
use super::super::status;
use super::wake::call;
use crate::arena;

/// In [`Waiter::wants`]: the waiter wants to write, and moves if it can (HEIR-8).
pub(super) const MOVES: u32 = 2;

/// How many readers of a row are woken together, at most. The last of them wakes those behind it
/// when it comes in.
const TOGETHER: u32 = 64;

/// Does what [`call`] does, and wakes the row behind the head of this name (RW-13).
#[cold]
#[inline(never)]
pub(super) fn call_row<P: Platform, F: Form>(name: u16, kept: bool) {
    call::<P, F>(name, kept);
    // A name is less than an index: with many waiters this may be another one, whose row wakes up
    // for nothing.
    let head = arena::<P>().resolve_index(name.into());
    if let Some(head) = head.filter(|head| !kept && reads(head)) {
        wake_row(head);
    }
}

/// RW-13: wakes the readers that sleep in a row behind this one. Touches nodes only; these may
/// stand in another queue by now, and then readers wake up for nothing.
pub(super) fn wake_row<P: Platform>(reader: &Waiter<P>) {
    // Acquire: as in `Place::next`.
    let mut at = Place::<P>::at(reader.next.load(Acquire));
    for _ in 0..TOGETHER {
        let Some(place) = at.filter(|place| reads(place.node)) else { return };
        if status::load(place.node).parked()
            && let Some(sleeper) = arena::<P>().reference(place.id.index())
            && !P::unpark_asleep(sleeper)
        {
            // A wake is under way already, and the thread that gave it sees to the rest; or the
            // waiter is about to sleep, and the rest is left to those before it.
            return;
        }
        at = place.next();
    }
}

pub(super) fn reads<P: Platform>(waiter: &Waiter<P>) -> bool {
    // Relaxed: written before its waiter joined the queue, whose links are acquired. Of a node that
    // serves another wait by now it decides about a wake only.
    waiter.wants.load(Relaxed) == 0
}
