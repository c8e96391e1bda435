//! Models of locks in the child of a fork: their words contain the parent's queue, whose waiters do
//! not exist.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::Check;
use antiphon_platform::{Atomic, Atomics, Platform, WaiterId};
use antiphon_sync::lock::{Lock, ShflRwLock, ShflSpin};
use antiphon_sync::policy::None;

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Mutex, Sleepy};
use crate::program::{Program, finish, guarded, section};

type Spin = ShflSpin<Check, None, Sleepy>;
type RwLock = ShflRwLock<Check, None, Sleepy>;
type U8 = <Check as Atomics>::U8;
type U16 = <Check as Atomics>::U16;
type U32 = <Check as Atomics>::U32;
type U64 = <Check as Atomics>::U64;

/// Bits of the mutex's first byte.
const LOCKED: u8 = 1;
const WAKE: u8 = 2;
const FAIR: u8 = 4;

/// An index that the parent has used, and that the child's arena will not hand out.
const STALE: u32 = 40;
/// An index that both use: a parent's name without an epoch may denote a waiter of the child.
const SHARED: u16 = 1;

pub fn entries() -> Vec<Entry> {
    let plain = PLAIN;
    all_of([
        Subject("shfl-mutex").models([
            model("inherited-free-2x1", mutex(2, FAIR, false), plain),
            model("inherited-held-1+1", mutex(1, LOCKED | WAKE | FAIR, true), plain),
            model("inherited-held-2+1", mutex(2, LOCKED | WAKE | FAIR, true), plain).by_lot(3_000),
        ]),
        Subject("shfl-spin").models([model("inherited-held-2+1", spin(), plain)]),
        Subject("shfl-rw").models([
            model("inherited-free-2x1", rw(2, 0), plain),
            model("inherited-held-1+1", rw(1, RW_WRITER), plain),
            model("inherited-held-2+1", rw(2, RW_WRITER), plain).by_lot(3_000),
        ]),
    ])
}

/// Layout of the words of a [`Mutex`].
#[repr(C)]
struct Words {
    locked: U8,
    policy: U8,
    head: U16,
    tail: U32,
}

const _: () = assert!(size_of::<Words>() == size_of::<Mutex>());

fn mutex(lockers: u32, locked: u8, held: bool) -> Program {
    inherited::<Mutex>(lockers, held, move |lock| {
        // SAFETY: `Words` has the layout that the mutex's file defines; the mutex lives as long as
        // the borrow.
        let words = unsafe { &*std::ptr::from_ref(lock).cast::<Words>() };
        words.locked.store(locked, Relaxed);
        words.head.store(SHARED, Relaxed);
        let other_epoch = Check::epoch() + 1;
        words.tail.store(WaiterId::new(other_epoch, SHARED.into()).bits(), Relaxed);
    })
}

/// Bits of the readers-writer lock's state: a writer, and the head's flags.
const RW_WRITER: u64 = 1;
const RW_HEADS: u64 = 0xE;
const RW_NAME_SHIFT: u32 = 8;

/// Layout of the words of a [`RwLock`].
#[repr(C)]
struct RwWords {
    state: U64,
    tail: U32,
    counter: U32,
}

const _: () = assert!(size_of::<RwWords>() == size_of::<RwLock>());

fn rw(lockers: u32, writer: u64) -> Program {
    inherited::<RwLock>(lockers, writer != 0, move |lock| {
        // SAFETY: `RwWords` has the layout that the lock's file defines; it lives as long as the
        // borrow.
        let words = unsafe { &*std::ptr::from_ref(lock).cast::<RwWords>() };
        let name = u64::from(SHARED) << RW_NAME_SHIFT;
        words.state.store(writer | RW_HEADS | name, Relaxed);
        words.tail.store(WaiterId::new(Check::epoch() + 1, SHARED.into()).bits(), Relaxed);
    })
}

/// Layout of the words of a [`Spin`].
#[repr(C, align(4))]
struct SpinWords {
    locked: U8,
    tail: U16,
}

const _: () = assert!(size_of::<SpinWords>() == size_of::<Spin>());

fn spin() -> Program {
    inherited::<Spin>(2, true, |lock| {
        // SAFETY: `SpinWords` has the layout that the lock's file defines; it lives as long as the
        // borrow.
        let words = unsafe { &*std::ptr::from_ref(lock).cast::<SpinWords>() };
        words.locked.store(1, Relaxed);
        words.tail.store(STALE as u16, Relaxed);
    })
}

/// Threads of the child lock a lock in the state that `leave` writes; if it is `held`, one more
/// thread unlocks it, as the thread that has forked would. At the end the lock is free.
fn inherited<L: Lock>(
    lockers: u32,
    held: bool,
    leave: impl Fn(&L) + Send + Sync + 'static,
) -> Program {
    let threads = lockers + u32::from(held);
    Program::new(threads, threads, move |scope| {
        let (lock, data) = guarded::<L>(scope);
        leave(lock);
        scope.spawn_each(0..lockers, move |_| section(lock, data));
        if held {
            scope.spawn(move || finish(lock, data));
        }
        scope.finally(move || {
            assert_eq!(data.get(), threads);
            assert!(lock.try_lock(), "the lock is free at the end");
        });
    })
}
