//! Models of the arena of waiter nodes: ARENA-1 and ARENA-2, exhaustively.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data};
use antiphon_platform::{Arena, Atomic, Platform, WaiterId};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

/// Number of nodes that a thread keeps in its cache.
const CACHE: usize = 2;

pub fn entries() -> Vec<Entry> {
    let stock = |spare| PLAIN.nodes((CACHE + LISTED + spare) as u32);
    Subject("arena").models([
        model("one-user-2x2", one_user(2, 2), PLAIN),
        model("one-user-3x1", one_user(3, 1), PLAIN),
        model("free-list-2x4", free_list(), PLAIN),
        model("free-list-reused-1+1", reused(), stock(2)).reaches(&["emptied"]),
        model("free-list-given-2+1", given(), stock(6)).reaches(&["passed on"]),
        model("exhausted-2x1", exhausted(), PLAIN.nodes(1)).reaches(&["none left"]),
    ])
}

/// The uses of each node, written with no ordering but the arena's: two users at a time, or two
/// that the arena has not ordered, are a data race (ARENA-1).
pub struct Uses([Data<u32>; 16]);

impl Uses {
    pub const fn new() -> Self {
        Self([const { Data::new(0) }; 16])
    }

    /// Uses a node that the caller has taken.
    pub fn touch(&self, id: WaiterId) {
        let uses = &self.0[id.index() as usize];
        uses.set(uses.get() + 1);
    }

    /// Returns how often a node that the caller has taken was used.
    pub fn count(&self, id: WaiterId) -> u32 {
        self.0[id.index() as usize].get()
    }
}

pub fn arena() -> &'static Arena<Check> {
    // SAFETY: each model takes nodes and gives them back properly, and writes only what the
    // protocols would.
    unsafe { Check::arena() }
}

/// Takes a node, uses it as its owner does, and gives it back.
fn use_a_node(uses: &Uses) -> Option<WaiterId> {
    let id = arena().take()?;
    let node = arena().resolve(id).expect("a node that is in use resolves");
    let reference = arena().reference(id.index()).expect("and can be referred to");
    uses.touch(id);
    node.wants.store(7, Relaxed);
    assert_eq!(node.wants.load(Relaxed), 7);
    arena().give(id);
    // ARENA-2.
    assert_ne!(node.generation.load(Relaxed), reference.generation);
    Some(id)
}

/// A node has one user at a time.
fn one_user(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let uses = scope.share(Uses::new());
        scope.spawn_each(0..threads, move |_| {
            for _ in 0..rounds {
                assert!(use_a_node(uses).is_some());
            }
        });
    })
}

/// Nodes that one thread gives back and another takes go through the free list. Two nodes stay in
/// the giver's cache, so three are given.
fn free_list() -> Program {
    Program::new(2, 8, |scope| {
        let uses = scope.share(Uses::new());
        scope.spawn_each(0..2, move |_| {
            let taken: Vec<_> = (0..3).filter_map(|_| arena().take()).collect();
            assert_eq!(taken.len(), 3);
            taken.iter().for_each(|&id| uses.touch(id));
            taken.into_iter().for_each(|id| arena().give(id));
            assert!(use_a_node(uses).is_some());
        });
        scope.finally(move || {
            let all: u32 = uses.0.iter().map(Data::get).sum();
            assert_eq!(all, 8);
        });
    })
}

/// All existing nodes: [`LISTED`] of them are on the free list; the threads hold the others and
/// give them back, as the head of a queue does with the nodes of waiters that have left.
struct Stock {
    uses: Uses,
    count: usize,
    in_hand: Vec<WaiterId>,
}

/// Number of nodes that are on the free list of a [`Stock`] at first.
const LISTED: usize = 2;

impl Stock {
    fn new() -> Self {
        let mut all: Vec<_> = std::iter::from_fn(|| arena().take()).collect();
        let count = all.len();
        // The cache of the setup keeps the first two.
        all.drain(..CACHE + LISTED).for_each(|id| arena().give(id));
        Self { uses: Uses::new(), count, in_hand: all }
    }

    /// Takes a node, and touches it.
    fn take(&self) -> Option<WaiterId> {
        arena().take().inspect(|&id| self.uses.touch(id))
    }

    /// Fills the caller's cache with the first two of `nodes` and puts the others on the list.
    fn give(&self, nodes: &[WaiterId]) {
        nodes.iter().for_each(|&id| {
            self.uses.touch(id);
            arena().give(id);
        });
    }

    /// Asserts that no node was lost or duplicated: each is held, is in the cache of a thread that
    /// has filled it, or can be taken.
    fn assert_whole(&self, held: &[Option<WaiterId>], caches: usize) {
        let mut all = BTreeSet::new();
        let left: Vec<_> = std::iter::from_fn(|| self.take()).collect();
        let found = held.iter().flatten().chain(&left);
        found.for_each(|id| assert!(all.insert(id.index()), "node {} is there twice", id.index()));
        assert_eq!(all.len() + caches * CACHE, self.count, "a node is lost");
    }
}

/// An index stack, the classic place for ABA: while one thread takes the first node, another takes
/// both and puts the first back. Must reach `emptied`, by a thread that comes in between.
fn reused() -> Program {
    Program::new(2, 6, |scope| {
        let stock = scope.share(Stock::new());
        let held = scope.share([const { Data::new(None) }; 2]);
        scope.spawn(move || {
            let first = stock.take();
            held[0].set(stock.take());
            stock.give(&stock.in_hand);
            stock.give(first.as_slice());
        });
        scope.spawn(move || {
            let id = stock.take();
            if id.is_none() {
                antiphon_check::probe("emptied");
            }
            held[1].set(id);
        });
        scope.finally(move || stock.assert_whole(&[held[0].get(), held[1].get()], 1));
    })
}

/// Two threads give a node each to the free list, and one thread takes two from it. Must reach
/// `passed on`, by a node that was used before.
fn given() -> Program {
    Program::new(3, 8, |scope| {
        let stock = scope.share(Stock::new());
        let held = scope.share([const { Data::new(None) }; 2]);
        let (mine, yours) = stock.in_hand.split_at(CACHE + 1);
        scope.spawn(move || stock.give(mine));
        scope.spawn(move || stock.give(yours));
        scope.spawn(move || {
            for held in held {
                let id = stock.take().expect("there were two at first");
                if stock.uses.count(id) > 1 {
                    antiphon_check::probe("passed on");
                }
                held.set(Some(id));
            }
        });
        scope.finally(move || stock.assert_whole(&[held[0].get(), held[1].get()], 2));
    })
}

/// An exhausted arena returns `None`. Must reach `none left`.
fn exhausted() -> Program {
    Program::new(2, 2, |scope| {
        let uses = scope.share(Uses::new());
        scope.spawn_each(0..2, move |_| {
            if use_a_node(uses).is_none() {
                antiphon_check::probe("none left");
            }
        });
    })
}
