//! Memory for waiter nodes: 64 bytes each, never freed, wiped in the child of a fork.
//!
//! It is mapped in pieces of 64 KiB, each when the arena hands out the first of its indices, which
//! come in order. A program whose locks never contend maps nothing, and a program with a thousand
//! waiters maps one piece: only used memory counts towards limits on address space and locked
//! memory.
//!
//! `PIECES` has the address of each piece; null means not mapped. A piece is mapped only if the
//! previous piece is: an index further on was never handed out (it comes from a word that another
//! process wrote), and such a word must not make this process map memory. Where the kernel refuses
//! a piece, its waiters have no nodes and nap; the next waiter tries again.
//!
//! One thread maps at a time, with signals blocked, so that no handler on it can wait for it; the
//! others sleep. If all mapped a piece and the slower ones unmapped theirs, many threads would need
//! many times the space, and under a limit some of them would get none.

use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Clock, Deadline, Waiter};

use crate::identity::{self, Blocked};
use crate::{Linux, clock, futex, pages};

type Node = Waiter<Linux>;

/// Number of nodes, including the node of index 0, which no waiter gets.
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

/// The node at `index`, or `None` if the memory is not available, or no waiter ever got that index.
#[inline]
pub(crate) fn node(index: u32) -> Option<&'static Node> {
    let piece = PIECES.get((index / NODES) as usize)?;
    // Acquire: the mapped piece; pairs with the release in `map_alone`.
    let seen = piece.load(Acquire);
    let base = if seen.is_null() { map(index / NODES)? } else { seen };
    // SAFETY: a published piece is mapped for good, readable and writable, and has `NODES` nodes.
    // It holds zeroes or nodes; zeroes are a valid node, too, and all fields are atomics.
    Some(unsafe { &*base.add((index % NODES) as usize) })
}

/// Maps a piece, or waits for the thread that does, if the previous piece is mapped.
#[cold]
#[inline(never)]
fn map(number: u32) -> Option<*mut Node> {
    let number = number as usize;
    // Acquire: as in `node`; only whether the piece is mapped matters.
    if number > 0 && PIECES.get(number - 1)?.load(Acquire).is_null() {
        return None;
    }
    // Names are useless in a process that can't distinguish itself from its parent.
    identity::wiped_epoch()?;
    let mapping = &identity::process().mapping;
    loop {
        let signals = Blocked::all();
        // Acquire: the piece of the previous thread here; pairs with the release below.
        if mapping.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            let mapped = map_alone(number);
            mapping.store(0, Release);
            futex::wake(mapping, futex::PRIVATE, u32::MAX);
            drop(signals);
            return mapped;
        }
        drop(signals);
        // The mapper wakes this sleep, unless it was faster than the sleep.
        let ns = clock::now(Clock::Monotonic) + 10_000_000;
        let _ =
            futex::wait(mapping, futex::PRIVATE, 1, Some(Deadline { clock: Clock::Monotonic, ns }));
        // Acquire: as in `node`.
        let seen = PIECES[number].load(Acquire);
        if !seen.is_null() {
            return Some(seen);
        }
    }
}

/// Maps a piece, unless it is already mapped.
fn map_alone(number: usize) -> Option<*mut Node> {
    // Relaxed: the caller's acquire of `mapping` covers it.
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
    // Release: publishes the mapping; pairs with the loads of `PIECES`.
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
