//! The arena of waiter nodes: ARENA-1 and ARENA-2, exhaustively.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Platform, WaiterId};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::program::Program;

const PLAIN: Bounds = Bounds::PLAIN;

pub fn entries() -> Vec<Entry> {
    vec![
        Entry::new("arena/one-user-2x2", one_user(2, 2), PLAIN),
        Entry::new("arena/one-user-3x1", one_user(3, 1), PLAIN),
        Entry::new("arena/free-list-2x4", free_list(), PLAIN),
        Entry::new("arena/exhausted-2x1", exhausted(), PLAIN.nodes(1)).reaches(&["none left"]),
    ]
}

/// Takes a node, uses it as one uses one's own, gives it back.
fn use_a_node(uses: &[Data<u32>]) -> Option<WaiterId> {
    let arena = Check::arena();
    let id = arena.take()?;
    let node = arena.resolve(id).expect("a node that is in use resolves");
    let reference = arena.reference(id.index()).expect("and can be referred to");
    // ARENA-1: two users at a time are a data race here; one after the other, they are ordered.
    let count = &uses[id.index() as usize];
    count.set(count.get() + 1);
    node.data.store(7, Relaxed);
    assert_eq!(node.data.load(Relaxed), 7);
    arena.give(id);
    // ARENA-2.
    assert_ne!(node.generation.load(Relaxed), reference.generation);
    Some(id)
}

fn uses() -> [Data<u32>; 8] {
    [const { Data::new(0) }; 8]
}

/// A node has one user at a time.
fn one_user(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let uses = scope.share(uses());
        for _ in 0..threads {
            scope.spawn(move || {
                for _ in 0..rounds {
                    assert!(use_a_node(uses).is_some());
                }
            });
        }
    })
}

/// Nodes that one thread gives and another takes go through the free list: an index stack, the
/// classic place for ABA. Two nodes stay in the giver's cache, so three are given.
fn free_list() -> Program {
    Program::new(2, 8, |scope| {
        let uses = scope.share(uses());
        for _ in 0..2 {
            scope.spawn(move || {
                let arena = Check::arena();
                let taken: Vec<_> = (0..3).filter_map(|_| arena.take()).collect();
                assert_eq!(taken.len(), 3);
                for &id in &taken {
                    let count = &uses[id.index() as usize];
                    count.set(count.get() + 1);
                }
                taken.into_iter().for_each(|id| arena.give(id));
                assert!(use_a_node(uses).is_some());
            });
        }
        scope.finally(move || {
            let all: u32 = uses.iter().map(Data::get).sum();
            assert_eq!(all, 8);
        });
    })
}

/// An exhausted arena says so. Has to reach `none left`.
fn exhausted() -> Program {
    Program::new(2, 2, |scope| {
        let uses = scope.share(uses());
        for _ in 0..2 {
            scope.spawn(move || {
                if use_a_node(uses).is_none() {
                    antiphon_check::probe("none left");
                }
            });
        }
    })
}
