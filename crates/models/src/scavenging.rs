//! Models of dead threads in the arena: the nodes left in their caches are found, once each.

use antiphon_platform::WaiterId;

use crate::arena::{Uses, arena};
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    let mortal = |block| PLAIN.mortal(block);
    let found = &["found"];
    Subject("arena").models([
        model("scavenges-1+1", left_behind(1, 1), mortal(1)).reaches(found),
        model("scavenges-1+2", left_behind(1, 2), mortal(1)).reaches(found),
        model("scavenges-two-1+2", left_behind(2, 2), mortal(2)).by_lot(5_000).reaches(found),
        model("scavenges-in-use-1+1", in_use(), mortal(1)),
    ])
}

/// One thread leaves `nodes` nodes in its cache, and `takers` threads that want a node each search
/// for them. Must reach `found`.
fn left_behind(nodes: u32, takers: u32) -> Program {
    Program::new(1 + takers, nodes + takers, move |scope| {
        let uses = scope.share(Uses::new());
        scope.spawn(move || {
            let taken: Vec<WaiterId> = (0..nodes).filter_map(|_| arena().take()).collect();
            taken.iter().for_each(|&id| uses.touch(id));
            taken.into_iter().for_each(|id| arena().give(id));
        });
        scope.spawn_each(0..takers, move |_| {
            let id = arena().take().expect("there are nodes enough");
            uses.touch(id);
            if uses.count(id) > 1 {
                antiphon_check::probe("found");
            }
        });
    })
}

/// A thread ends whose node stays in use, like the node of a waiter that has given up but is still
/// in its queue: that node is not handed to another thread.
fn in_use() -> Program {
    Program::new(2, 3, |scope| {
        let uses = scope.share(Uses::new());
        scope.spawn(move || {
            let first = arena().take().expect("there are nodes enough");
            arena().give(first);
            let id = arena().take().expect("there are nodes enough");
            uses.touch(id);
        });
        scope.spawn(move || {
            let id = arena().take().expect("there are nodes enough");
            uses.touch(id);
        });
    })
}
