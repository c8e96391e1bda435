//! Tests that the arena reuses nodes left by ended threads, and stays small.

mod support;

use std::thread;

use support::{Node, arena};

#[test]
fn short_lived_threads_do_not_use_up_the_arena() {
    const THREADS: usize = 6_000;
    const AT_ONCE: usize = 20;
    for _ in 0..THREADS / AT_ONCE {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                thread::spawn(|| {
                    let nodes = [Node::take(), Node::take()];
                    nodes.into_iter().for_each(Node::give);
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("the thread took two nodes");
        }
    }
    // Each thread left two nodes. The arena searches for them after it has handed out a block of
    // 1024 fresh ones.
    let most = u32::try_from(2 * THREADS).expect("a small number");
    assert!(arena().high_water() < most / 3, "{}", arena().high_water());
}
