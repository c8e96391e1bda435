//! Tests that many takers at a time find the nodes of dead threads, and each node only once.
//!
//! In its own process, because its result depends on the other users of the arena.

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::sync::{Barrier, Mutex};
use std::thread;

use antiphon_linux::Linux;
use antiphon_platform::Platform;
use support::arena;

/// Leaves at least `nodes` nodes in the caches of threads that have ended.
fn leave_behind(nodes: u32) {
    const AT_ONCE: usize = 64;
    while arena().high_water() < nodes {
        let together = Barrier::new(AT_ONCE);
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    let arena = arena();
                    let taken = [arena.take(), arena.take()];
                    together.wait();
                    taken.into_iter().flatten().for_each(|id| arena.give(id));
                });
            }
        });
    }
}

/// ARENA-1 with two scavengers that check the same node.
#[test]
fn no_node_is_found_twice() {
    const TAKERS: usize = 4;
    leave_behind(Linux::arena_block());
    for _ in 0..100 {
        let together = Barrier::new(TAKERS);
        let all = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..TAKERS {
                scope.spawn(|| {
                    together.wait();
                    let taken: Vec<_> = (0..200).filter_map(|_| arena().take()).collect();
                    all.lock().unwrap().extend_from_slice(&taken);
                    // Waits until all have their nodes: a node that is given back earlier could be
                    // taken again.
                    together.wait();
                    taken.into_iter().for_each(|id| arena().give(id));
                });
            }
        });
        let mut all = all.into_inner().unwrap();
        all.sort_unstable_by_key(|id| id.index());
        let count = all.len();
        all.dedup();
        assert_eq!((all.len(), count), (TAKERS * 200, TAKERS * 200), "one node, two users");
    }
}
