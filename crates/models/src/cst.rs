//! Models of the CST locks: hand-offs pass over sleepers, sleepers are found, sockets take turns.

use std::mem::ManuallyDrop;

use antiphon_check::{Check, Data};
use antiphon_platform::SocketId;
use antiphon_rivals::cst::{CstForm, CstMutex, Standard};

use crate::bounds::{NUMA, PLAIN, SPURIOUS};
use crate::entry::{Entry, Subject, model};
use crate::program::{self, Program, guarded, section, tries, unlock};

/// All waiters sleep at once, and a batch is two.
struct Sleepy;

impl CstForm for Sleepy {
    const BATCH: u32 = 2;
    const PIECE_NS: u32 = 0;
    const MARGIN_NS: u32 = 0;
}

/// Waiters spin unless they are told that the machine is crowded; each socket has its own turn.
struct Turns;

impl CstForm for Turns {
    const BATCH: u32 = 1;
    const PIECE_NS: u32 = 10;
    const MARGIN_NS: u32 = 0;
}

type Mutex<F> = CstMutex<Check, F>;

pub fn entries() -> Vec<Entry> {
    let few_nodes = PLAIN.nodes(2).mortal(1);
    const LOTS: u64 = 500;
    Subject("cst").models([
        model("excludes-2x1", exclusion::<Sleepy>(1, 2, 1), PLAIN),
        model("excludes-3x1", exclusion::<Sleepy>(1, 3, 1), PLAIN).by_lot(LOTS),
        model("excludes-3x2", exclusion::<Sleepy>(1, 3, 2), PLAIN).by_lot(LOTS),
        model("excludes-2x2", exclusion::<Sleepy>(1, 2, 2), PLAIN).long(),
        model("spurious-2x2", exclusion::<Sleepy>(1, 2, 2), SPURIOUS).by_lot(LOTS),
        model("spins-2x1", exclusion::<Turns>(1, 2, 1), PLAIN.crowded(1)),
        model("spins-3x2", exclusion::<Turns>(1, 3, 2), PLAIN.crowded(1)).by_lot(LOTS),
        model("sockets-2x1", exclusion::<Sleepy>(2, 2, 1), NUMA),
        model("sockets-3x1", exclusion::<Sleepy>(2, 3, 1), NUMA).by_lot(LOTS),
        model("sockets-4x2", exclusion::<Sleepy>(2, 4, 2), NUMA).by_lot(LOTS),
        // The structures are made when needed, by two threads at a time.
        model("makes-2x1", making(1, 2), PLAIN).by_lot(LOTS),
        model("makes-3x1", making(2, 3), NUMA).by_lot(LOTS),
        model("tries-1+1", tries::<Mutex<Turns>>(1), PLAIN).reaches(&["busy"]),
        model("destroyed-2x1", destruction(1, 2), PLAIN).reaches(&["dropped"]),
        model("destroyed-3x1", destruction(2, 3), NUMA).by_lot(LOTS).reaches(&["dropped"]),
        // A thread that finds no nodes joins the sockets' queue for itself.
        model("exhausted-2x1", program::exclusion::<Mutex<Sleepy>>(2, 1), few_nodes).by_lot(LOTS),
        model("shipped-2x1", exclusion::<Standard>(1, 2, 1), PLAIN.crowded(1).expiries(1)),
    ])
}

/// `threads` threads lock `rounds` times each. The structures of the first `reserved` sockets exist
/// already: making them is another, large model.
fn exclusion<F: CstForm>(reserved: u32, threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let (lock, data) = guarded::<Mutex<F>>(scope);
        assert!((0..reserved).all(|socket| lock.reserve(SocketId(socket))), "few nodes");
        scope.spawn_each(0..threads, move |_| (0..rounds).for_each(|_| section(lock, data)));
        scope.finally(move || {
            assert_eq!(data.get(), threads * rounds);
            assert!(lock.try_lock(), "a free lock can be tried");
            unlock(lock);
        });
    })
}

/// CST-1: `threads` threads of `sockets` sockets lock once each. Their structures are made when the
/// threads come, and at the end each socket has one.
fn making(sockets: usize, threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let (lock, data) = guarded::<Mutex<Turns>>(scope);
        scope.spawn_each(0..threads, move |_| section(lock, data));
        scope.finally(move || {
            assert_eq!(data.get(), threads);
            assert_eq!(lock.sockets(), sockets, "structures");
        });
    })
}

/// CST-2: the last thread that has had the lock may drop it while others are still in `unlock`, and
/// its nodes go to another lock. Must reach `dropped`.
fn destruction(reserved: u32, threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let lock = scope.share(ManuallyDrop::new(Mutex::<Turns>::NEW));
        let data = scope.share(Data::new(0));
        assert!((0..reserved).all(|socket| lock.reserve(SocketId(socket))), "few nodes");
        scope.spawn_each(0..threads, move |_| {
            lock.lock();
            data.set(data.get() + 1);
            let last = data.get() == threads;
            unlock(&**lock);
            if last {
                let lock = std::ptr::from_ref(&**lock).cast_mut();
                // SAFETY: all threads have had the lock, and none wants it any more; the state
                // of the checker's words is not stored in it.
                unsafe { (*lock).reset() };
                // SAFETY: all threads have had the lock, and none uses it any more.
                antiphon_check::retire(unsafe { &*lock });
                let other = Mutex::<Turns>::NEW;
                other.lock();
                unlock(&other);
                antiphon_check::probe("dropped");
            }
        });
    })
}
