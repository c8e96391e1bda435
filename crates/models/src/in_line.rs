//! Models in which waiters join the queue of a held lock one after the other: the order of the
//! queue is known, so that a shuffler meets the case that the model tests.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_check::{Check, Scope};
use antiphon_platform::{Atomic, Atomics, Waiter, WaiterId};
use antiphon_sync::lock::{Lock, ShflMutex, ShflRwLock};
use antiphon_sync::policy;

use crate::arena::arena;
use crate::bounds::{NUMA, PLAIN};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::Sleepy;
use crate::program::{Program, guarded, section, soon, unlock};
use crate::rw::{assert_free, look_around, read, unlock_read};
use crate::watched::{Watch, Watched, watch};

type Mutex = ShflMutex<Check, Watched, Sleepy>;
type RwLock = ShflRwLock<Check, Watched<true>, Sleepy>;
type Plain = ShflMutex<Check, policy::None, Sleepy>;

/// Models of the mutex, which adds sleep, early wakes and waiters that leave; and of the
/// readers-writer lock, whose waiters are of two kinds.
pub fn entries() -> Vec<Entry> {
    let shuffled = &["shuffled"];
    all_of([
        Subject("shfl-mutex").models([
            model("hands-over-2+1", in_line::<Plain>(&[0; 2], false), PLAIN),
            model("hands-over-3+1", in_line::<Plain>(&[0; 3], false), PLAIN).long(),
            model("hands-over-4+1", in_line::<Plain>(&[0; 4], false), PLAIN).by_lot(20_000),
            model("hands-over-greedily-3+1", in_line::<Plain>(&[0; 3], true), PLAIN).long(),
            model("sorts-in-line-4+1", in_line::<Mutex>(&[0, 1, 0, 1], false), NUMA)
                .by_lot(5_000)
                .reaches(shuffled),
            // A waiter between the head and the shuffler does not get the role, not even as the
            // head.
            model("sorts-three-4+1", in_line::<Mutex>(&[0, 0, 0, 1], false), NUMA)
                .by_lot(5_000)
                .reaches(shuffled),
            // A waiter that was given the role wakes by itself, as the head.
            model("sorts-woken-4+1", in_line::<Mutex>(&[0, 0, 1, 1], false), NUMA.spurious(1))
                .by_lot(20_000)
                .reaches(shuffled),
            model("sorts-left-5+1", left(), NUMA.spurious(1).timeouts(1))
                .by_lot(3_000)
                .reaches(&["left what it had sorted"]),
        ]),
        Subject("shfl-rw").models([
            // Readers behind a writer, and a writer behind readers, are moved up by their own kind.
            model("sorts-readers-4+1", kinds_in_line(&[false, true, false, true]), PLAIN)
                .by_lot(20_000)
                .reaches(&["shuffled", "together"]),
            model("sorts-writers-4+1", kinds_in_line(&[true, false, true, false]), PLAIN)
                .by_lot(5_000)
                .reaches(shuffled),
        ]),
    ])
}

/// Waiters on `sockets`, each of which joins the queue behind the one before it, and an owner that
/// unlocks when the last is about to join; then the head also begins to sort. A `greedy` owner
/// takes the lock again if it is free, so that a head may come too late.
///
/// `L` has the policy [`Watched`].
pub fn in_line<L: Lock>(sockets: &'static [u32], greedy: bool) -> Program {
    let count = sockets.len() as u32;
    Program::new(count + 1, count + 1 + u32::from(greedy), move |scope| {
        let lock = scope.share(L::NEW);
        assert!(lock.try_lock());
        let line = scope.share(Line::new(scope, sockets.len()));
        for (place, &socket) in sockets.iter().enumerate() {
            scope.spawn_on(socket, move || {
                line.stand(place);
                if place == sockets.len() - 1 {
                    line.begin();
                }
                lock.lock();
                unlock(lock);
            });
        }
        scope.spawn(move || {
            line.wait_for_begin();
            unlock(lock);
            if greedy && lock.try_lock() {
                unlock(lock);
            }
        });
    })
}

/// Like [`in_line`], for waiters that read or `write`, beside an owner that writes. Reaches
/// `together` if two readers are in at the same time that were not neighbours when they joined.
fn kinds_in_line(writes: &'static [bool]) -> Program {
    let count = writes.len() as u32;
    Program::new(count + 1, count + 1, move |scope| {
        let (lock, data) = guarded::<RwLock>(scope);
        let inside = scope.share(Cell::new(0));
        assert!(lock.try_write());
        let line = scope.share(Line::new(scope, writes.len()));
        scope.spawn_each(writes.iter().enumerate(), move |(place, &writes)| {
            line.stand(place);
            if place == count as usize - 1 {
                line.begin();
            }
            if writes {
                section(lock, data);
            } else {
                read(lock);
                look_around(inside, data);
                unlock_read(lock);
            }
        });
        scope.spawn(move || {
            line.wait_for_begin();
            unlock(lock);
        });
        scope.finally(move || {
            let written: u32 = writes.iter().copied().map(u32::from).sum();
            assert_eq!(data.get(), written);
            assert_free(lock);
        });
    })
}

/// The second waiter sorts the queue and then leaves it: the waiters that it has moved behind
/// itself are not lost with it. Must reach this case.
///
/// The head finds a waiter of its group and passes the role to it, if that happens before the
/// waiters come that this one can sort.
fn left() -> Program {
    const SORTER: usize = 1;
    const MOVED: usize = 3;
    const LAST: usize = 4;
    Program::new(6, 6, |scope| {
        let lock = scope.share(Mutex::NEW);
        assert!(lock.try_lock());
        let line = scope.share(Line::new(scope, 5));
        let [gone, last] = scope.share([const { <Check as Atomics>::U8::ZERO }; 2]);
        for (place, socket) in [0, 0, 1, 0, 1].into_iter().enumerate() {
            scope.spawn_on(socket, move || {
                line.stand(place);
                match place {
                    MOVED => line.begin(),
                    LAST => last.store(1, Relaxed),
                    _ => {}
                }
                if place != SORTER {
                    lock.lock();
                } else if !lock.lock_until(soon()) {
                    if line.node(MOVED).batch.load(Relaxed) > 0 {
                        antiphon_check::probe("left what it had sorted");
                    }
                    return gone.store(1, Relaxed);
                }
                unlock(lock);
            });
        }
        scope.spawn(move || {
            gone.wait_while(Relaxed, |gone| gone == 0);
            last.wait_while(Relaxed, |last| last == 0);
            unlock(lock);
        });
    })
}

/// Maps waiters to nodes, so that others can see when a waiter has joined the queue. All accesses
/// are relaxed: they order nothing that the lock must order itself.
pub struct Line<'scope> {
    nodes: Vec<WaiterId>,
    watch: &'scope Watch,
}

impl<'scope> Line<'scope> {
    /// Takes nodes for `waiters` waiters.
    pub fn new(scope: &'scope Scope<'scope, '_>, waiters: usize) -> Self {
        let nodes = (0..waiters).filter_map(|_| arena().take()).collect();
        Self { nodes, watch: watch(scope) }
    }

    /// Returns the node of the waiter at that place.
    pub fn node(&self, place: usize) -> &'static Waiter<Check> {
        arena().resolve(self.nodes[place]).expect("it was handed out")
    }

    /// Waits for the caller's turn to join; it will join with the node of that `place`.
    pub fn stand(&self, place: usize) {
        const HEAD: u32 = 2;
        arena().give(self.nodes[place]);
        match place {
            0 => {}
            1 => {
                self.node(0).status.wait_while(Relaxed, |status| status & HEAD == 0);
            }
            _ => {
                self.node(place - 2).next.wait_while(Relaxed, |next| next == 0);
            }
        }
    }

    /// [`stand`](Self::stand) for waiters that change places: each comes when the waiter before it
    /// sleeps, or is the head.
    pub fn follow(&self, place: usize) {
        arena().give(self.nodes[place]);
        if place > 0 {
            self.wait_for(place - 1);
        }
    }

    /// Waits until the waiter of that place, which does not spin, is in the queue: it sleeps, or is
    /// the head. Acquire: pairs with the release with which it falls asleep.
    pub fn wait_for(&self, place: usize) {
        const PARKED_OR_HEAD: u32 = 1 | 2;
        self.node(place).status.wait_while(Acquire, |status| status & PARKED_OR_HEAD == 0);
    }

    /// Lets the owner go on.
    pub fn begin(&self) {
        self.watch.begun.store(1, Relaxed);
    }

    /// Waits until a thread [begins](Self::begin).
    pub fn wait_for_begin(&self) {
        self.watch.begun.wait_while(Relaxed, |begun| begun == 0);
    }
}
