//! Memory for waiter nodes: 64 bytes each, never freed, wiped in the child of a fork.
//!
//! Address space for all of them (256 MiB) is reserved when the first is asked for, and opened in
//! pieces of 64 KiB as the arena hands out fresh indices in order. A program whose locks never
//! contend maps nothing. Where address space is limited, less is reserved: room for 65 536 nodes
//! (4 MiB), or for 4 096; there are no others then.
//!
//! | `BASE` | meaning |
//! |---|---|
//! | null | nobody has asked yet |
//! | `refused()` | no address space, or the kernel can't wipe: there are no nodes in this process |
//! | else | the reservation; the nodes below `OPEN` may be touched |
//!
//! Racing threads each reserve, one publishes, the losers unmap. All of it is a handful of system
//! calls and no lock, so it may happen in a signal handler.

use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use antiphon_platform::Waiter;

use crate::{Linux, identity, pages};

type Node = Waiter<Linux>;

/// How many nodes there are, the one of index 0 included, which is nobody's.
pub(crate) const WAITERS: u32 = 1 << 22;
/// Nodes opened at a time: one page on machines with the largest pages.
const PIECE: u32 = (64 << 10) / size_of::<Node>() as u32;

const _: () = assert!(size_of::<Node>() == 64 && WAITERS.is_multiple_of(PIECE));
const _: () = assert!(SIZES[2].is_multiple_of(PIECE) && SIZES[1].is_multiple_of(PIECE));

/// What to reserve, in nodes, in the order in which it is tried.
const SIZES: [u32; 3] = [WAITERS, 1 << 16, 1 << 12];

static BASE: AtomicPtr<Node> = AtomicPtr::new(null_mut());
/// How many nodes the reservation has room for.
static ROOM: AtomicU32 = AtomicU32::new(0);
/// Nodes from here on are not open yet.
static OPEN: AtomicU32 = AtomicU32::new(0);

fn refused() -> *mut Node {
    without_provenance_mut(1)
}

/// The node at `index`, or `None` if the memory can't be had.
///
/// An index further than one piece behind the open ones was never handed out (it comes from a word
/// that somebody else wrote) and is refused, so that such a word can't make us map memory.
#[inline]
pub(crate) fn node(index: u32) -> Option<&'static Node> {
    // Acquire (both): the mapping and its opening come first; they pair with the releases below.
    let base = BASE.load(Acquire);
    if base.is_null() || index >= OPEN.load(Acquire) {
        return node_slowly(index);
    }
    at(base, index)
}

fn at(base: *mut Node, index: u32) -> Option<&'static Node> {
    if base == refused() {
        return None;
    }
    // SAFETY: `index` is below `OPEN`, so its memory is mapped, readable and writable for good, and
    // zero or a node; zero is a node too. All fields are atomics.
    Some(unsafe { &*base.add(index as usize) })
}

#[cold]
#[inline(never)]
fn node_slowly(index: u32) -> Option<&'static Node> {
    let base = base();
    if base == refused() {
        return None;
    }
    let open = OPEN.load(Acquire);
    if index < open {
        return at(base, index);
    }
    // Relaxed: written before the base that we have acquired.
    let room = ROOM.load(Relaxed);
    if index >= room || index - open >= PIECE {
        return None;
    }
    // SAFETY: inside the reservation, as `open` is at most `room - PIECE` here.
    let piece = unsafe { base.add(open as usize) };
    if !pages::open(piece.cast(), PIECE as usize * size_of::<Node>()) {
        return None;
    }
    // Release: pairs with the loads of `OPEN`. If another thread was faster, it opened the same.
    let _ = OPEN.compare_exchange(open, open + PIECE, Release, Acquire);
    at(base, index)
}

fn base() -> *mut Node {
    let seen = BASE.load(Acquire);
    if !seen.is_null() {
        return seen;
    }
    let (new, room) = reserve().unwrap_or((refused(), 0));
    // Relaxed: published with the base. Threads that race under a limit may have found room for
    // more or less; the least is what all of them have. 0 is not yet written.
    let _ = ROOM.fetch_update(Relaxed, Relaxed, |now| {
        (room != 0 && (now == 0 || room < now)).then_some(room)
    });
    // Release: publishes the reservation, pairs with the loads of `BASE`. Acquire: that of another.
    match BASE.compare_exchange(null_mut(), new, Release, Acquire) {
        Ok(_) => new,
        Err(theirs) => {
            if new != refused() {
                pages::unmap(new.cast(), length(room));
            }
            theirs
        }
    }
}

/// Address space, and for how many nodes.
fn reserve() -> Option<(*mut Node, u32)> {
    // Names are worth nothing in a process that can't tell itself from its parent.
    identity::wiped_epoch()?;
    let (base, room) =
        SIZES.into_iter().find_map(|room| Some((pages::reserve(length(room))?, room)))?;
    if !pages::wipe_on_fork(base, length(room)) {
        pages::unmap(base, length(room));
        return None;
    }
    pages::leave_out_of_dumps(base, length(room));
    Some((base.cast(), room))
}

fn length(nodes: u32) -> usize {
    nodes as usize * size_of::<Node>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_platform::Atomic;

    #[test]
    fn nodes_are_zero_apart_and_opened_in_order() {
        let first = node(1).map(core::ptr::from_ref);
        let second = node(2).map(core::ptr::from_ref);
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!(first, node(1).map(core::ptr::from_ref));
        assert_eq!(node(2).map(|node| node.handle.load(Relaxed)), Some(0));
        assert!(node(WAITERS - 1).is_none(), "nobody was handed that one");
    }
}
