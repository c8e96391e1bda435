//! Memory for waiter nodes: 64 bytes each, never freed, wiped in the child of a fork.
//!
//! It is mapped in pieces of 64 KiB, each when the arena hands out the first of its indices; these
//! come in order. A program whose locks never contend maps nothing, and one with a thousand waiters
//! maps one piece: limits on address space and on locked memory see what is in use and no more.
//!
//! `PIECES` has the address of each piece; null is not mapped. A piece is mapped only if the one
//! before it is: an index further on was never handed out (it comes from a word that another
//! process wrote), and such a word can't make us map memory. Where the kernel refuses a piece, its
//! waiters have no nodes and nap; the next one asks again.
//!
//! One thread maps at a time, with signals blocked, so that no handler on it can wait for it; the
//! others sleep. If all mapped and the slower ones unmapped, a crowd would need many times the
//! room, and under a limit some of them would find none.

use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Clock, Deadline, Waiter};

use crate::identity::{self, Blocked};
use crate::{Linux, clock, futex, pages};

type Node = Waiter<Linux>;

/// How many nodes there are, the one of index 0 included, which no waiter has.
pub(crate) const WAITERS: u32 = 1 << 22;
/// Bytes mapped at a time: one page on machines with the largest pages.
const PIECE: usize = 64 << 10;
/// Nodes of a piece.
const NODES: u32 = (PIECE / size_of::<Node>()) as u32;

const _: () = assert!(size_of::<Node>() == 64 && PIECE.is_multiple_of(size_of::<Node>()));
const _: () = assert!(WAITERS.is_multiple_of(NODES) && NODES.is_power_of_two());

/// 32 KiB, of which the kernel supplies a page for each half million nodes.
static PIECES: [AtomicPtr<Node>; (WAITERS / NODES) as usize] =
    [const { AtomicPtr::new(null_mut()) }; _];

/// The node at `index`, or `None` if the memory can't be had, or no waiter was ever handed the
/// index.
#[inline]
pub(crate) fn node(index: u32) -> Option<&'static Node> {
    let piece = PIECES.get((index / NODES) as usize)?;
    // Acquire: the piece as it was mapped; pairs with the release in `map`.
    let seen = piece.load(Acquire);
    let base = if seen.is_null() { map(index / NODES)? } else { seen };
    // SAFETY: a piece that was published is mapped, readable and writable for good, and has `NODES`
    // nodes. It holds zeroes or nodes; zeroes are a node too, and all fields are atomics.
    Some(unsafe { &*base.add((index % NODES) as usize) })
}

/// Maps a piece, or waits for the thread that does, if the piece before it is there.
#[cold]
#[inline(never)]
fn map(number: u32) -> Option<*mut Node> {
    let number = number as usize;
    // Acquire: as above; only whether it is there matters.
    if number > 0 && PIECES.get(number - 1)?.load(Acquire).is_null() {
        return None;
    }
    // Names are worth nothing in a process that can't tell itself from its parent.
    identity::wiped_epoch()?;
    let mapping = &identity::process().mapping;
    loop {
        let signals = Blocked::all();
        // Acquire: the piece of the thread that was here before; pairs with the release below.
        if mapping.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            let mapped = map_alone(number);
            mapping.store(0, Release);
            futex::wake(mapping, futex::PRIVATE, u32::MAX);
            drop(signals);
            return mapped;
        }
        drop(signals);
        // It is woken, unless the other was faster still.
        let ns = clock::now(Clock::Monotonic) + 10_000_000;
        let _ =
            futex::wait(mapping, futex::PRIVATE, 1, Some(Deadline { clock: Clock::Monotonic, ns }));
        // Acquire: as above.
        let seen = PIECES[number].load(Acquire);
        if !seen.is_null() {
            return Some(seen);
        }
    }
}

/// Maps a piece, unless it is there.
fn map_alone(number: usize) -> Option<*mut Node> {
    // Relaxed: acquired by our caller.
    let seen = PIECES[number].load(Relaxed);
    if !seen.is_null() {
        return Some(seen);
    }
    let new = pages::reserve(PIECE)?;
    if !pages::wipe_on_fork(new, PIECE) || !pages::open(new, PIECE) {
        pages::unmap(new, PIECE);
        return None;
    }
    pages::leave_out_of_dumps(new, PIECE);
    // Release: publishes the mapping, pairs with the loads of `PIECES`.
    PIECES[number].store(new.cast(), Release);
    Some(new.cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_platform::Atomic;

    /// One test, because the pieces belong to the process.
    #[test]
    fn nodes_are_zero_apart_and_mapped_in_order() {
        let address = |index| node(index).map(core::ptr::from_ref);
        assert!(address(2 * NODES).is_none(), "no waiter was handed that one");
        assert!(address(1).is_some() && address(2).is_some() && address(1) != address(2));
        assert_eq!(address(1), address(1));
        assert_eq!(node(2).map(|node| node.handle.load(Relaxed)), Some(0));
        assert!(address(2 * NODES).is_none(), "nor that one, two pieces on");
        assert!(address(NODES).is_some() && address(NODES - 1).is_some());
        assert_ne!(address(NODES), address(NODES - 1));
        assert!([WAITERS - 1, WAITERS, u32::MAX].iter().all(|&index| address(index).is_none()));
    }

    #[test]
    fn threads_that_race_for_a_piece_have_the_same() {
        let racers: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(|| node(0).map(|node| core::ptr::from_ref(node).addr())))
            .collect();
        let nodes: Vec<_> = racers.into_iter().map(|racer| racer.join().ok().flatten()).collect();
        assert!(nodes.iter().all(|node| node.is_some() && *node == nodes[0]));
    }
}
