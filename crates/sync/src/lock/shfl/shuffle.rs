//! Shuffling: a waiter sorts the queue behind it while it has nothing else to do.
//!
//! Source: `000_…`, "Shuffling invariants for correctness":
//!
//! - INV-1: only one waiter is a shuffler at a time.
//! - INV-2: shuffling starts from the head of the queue.
//! - INV-3: the shuffler may pass the role to any of its successors.
//! - INV-4: after passing the role, the waiter only spins.
//!
//! Two more are this project's:
//!
//! - INV-5: a group grows to at most [`Form::GROUP`](super::Form::GROUP) waiters, or to the number
//!   that the policy says; then the next head starts again, so that no waiter is overtaken for
//!   ever.
//! - INV-6: shuffling stops as soon as its waiter has something else to do.
//!
//! Why INV-1 holds: the role comes into being at a head whose `batch` is 0, that is, a head that no
//! shuffler has put into a group. It moves only to the last of its group, and all waiters between
//! are of the group, with `batch` above 0. So no head with a `batch` of 0 appears before the role
//! has come to the head itself (and goes with it) or was lost with an abandoned node.
//!
//! This file gathers a group. For policies that put waiters in order, the role stays at the head:
//! see `sort.rs`.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform};

use super::moved;
use super::queue::{Place, Tail};
use super::sort;
use super::status;
use crate::policy::{Policy, Waiting};

/// Gathers waiters behind `me`, which has the role, while `stop` is false; then passes the role to
/// the last of the group. Returns whether the caller keeps the role because it has found no waiter
/// to pass it to so far.
///
/// At most `group` waiters stand in one group, and at most `group` are looked at in one call.
pub(super) fn shuffle<P: Platform, Q: Policy>(
    policy: Q,
    me: Place<P>,
    tail: &impl Tail<P>,
    group: u32,
    stop: impl Fn() -> bool,
) -> bool {
    let bound = group.min(policy.bypass().into());
    if policy.sorts() {
        sort::sort(policy, me, tail, (group, bound), stop);
        return true;
    }
    // Relaxed throughout: `batch` and `resume` of a node are written by the waiter that has the
    // role, and handed on with the role, or with headship.
    let mut batch = me.node.batch.load(Relaxed).max(1);
    me.node.batch.store(batch, Relaxed);
    // The end of the group, and how far the queue has been searched.
    let mut last = me;
    let mut seen = Place::at(me.node.resume.load(Relaxed)).unwrap_or(me);

    for _ in 0..group {
        if batch >= bound {
            // INV-5.
            return false;
        }
        // QUEUE-2: the tail is left alone, and so is a node whose successor is not linked yet.
        let Some(candidate) = seen.next().filter(|place| !tail.is(place.id)) else { break };
        // A rearguard stays behind the waiters that it guards (MOVE-2), even if it would fit
        // elsewhere.
        let stays = seen != last && moved::is_rearguard(candidate.node);
        if !stays && policy.groups(Waiting::of(me.node), Waiting::of(candidate.node)) {
            if seen == last {
                seen = candidate;
            } else if !move_up(last, seen, candidate) {
                break;
            }
            last = candidate;
            batch += 1;
            candidate.node.batch.store(batch, Relaxed);
        } else {
            seen = candidate;
        }
        // INV-6.
        if stop() {
            break;
        }
    }

    last.node.resume.store(if seen == last { 0 } else { seen.id.bits() }, Relaxed);
    if last == me {
        return true;
    }
    status::give_role(last.node);
    false
}

/// Moves `candidate` from right behind `seen` to right behind `last`. Returns `false` if it has no
/// successor yet.
fn move_up<P: Platform>(last: Place<P>, seen: Place<P>, candidate: Place<P>) -> bool {
    // Acquire: the node that we link to `seen` must be whole for every thread that follows the
    // link.
    let behind = candidate.node.next.load(Acquire);
    if behind == 0 {
        return false;
    }
    // Relaxed: a thread that follows these links has the role or is the head. It has that from us,
    // directly or by others, with all that we have seen and done.
    seen.node.next.store(behind, Relaxed);
    candidate.node.next.store(last.node.next.load(Relaxed), Relaxed);
    last.node.next.store(candidate.id.bits(), Relaxed);
    true
}
