//! The arena of waiter nodes: ARENA-1 and ARENA-2, exhaustively.

mod common;

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Platform, WaiterId};
use common::model::plain;
use std::sync::atomic::Ordering::Relaxed;

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

#[test]
fn a_node_has_one_user_at_a_time() {
    for (threads, rounds) in [(2, 2), (3, 1)] {
        let report = plain(&format!("arena, {threads} threads, {rounds} rounds")).run(|scope| {
            let uses = scope.share(uses());
            for _ in 0..threads {
                scope.spawn(move || {
                    for _ in 0..rounds {
                        assert!(use_a_node(uses).is_some());
                    }
                });
            }
        });
        println!("{}", report.assert_complete());
    }
}

/// Nodes that one thread gives and another takes go through the free list: an index stack, the
/// classic place for ABA. Two nodes stay in the giver's cache, so three are given.
#[test]
fn the_free_list_loses_and_doubles_nothing() {
    let report = plain("arena, free list").run(|scope| {
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
    });
    println!("{}", report.assert_ok());
}

#[test]
fn an_exhausted_arena_says_so() {
    let report = plain("arena, one node").waiters(2).run(|scope| {
        let uses = scope.share(uses());
        for _ in 0..2 {
            scope.spawn(move || {
                if use_a_node(uses).is_none() {
                    antiphon_check::probe("none left");
                }
            });
        }
    });
    assert!(report.probes.contains_key("none left"));
    println!("{}", report.assert_complete());
}
