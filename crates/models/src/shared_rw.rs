//! Models of the readers-writer lock that processes share. Threads stand for processes.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_sync::lock::{Form, Lock, Standard};
use antiphon_sync::shared::{Acquired, SharedRwLock};

use crate::bounds::{ANY_SHARED as ANY, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, model};
use crate::forms::{Backed, Sleepy, Spinning};
use crate::program::{GAVE_UP, Program, destruction, exclusion, retire, soon};
use crate::rw::look_around;

type RwLock<F = Sleepy> = SharedRwLock<Check, F>;

pub fn entries() -> Vec<Entry> {
    let (together, gave_up, found) = (&["together"], GAVE_UP, &["found"]);
    let tried = &["had", "refused"];
    Subject("shared-rwlock").models([
        model("excludes-2x1", exclusion::<Whole>(2, 1), PLAIN),
        model("excludes-3x1", exclusion::<Whole>(3, 1), PLAIN).by_lot(3_000),
        model("shares-1+1", sharing::<Sleepy>(1, 1), SPURIOUS),
        model("shares-any-platform-1+1", sharing::<Spinning>(1, 1), ANY),
        model("shares-2+1", sharing::<Sleepy>(2, 1), PLAIN).by_lot(5_000).reaches(together),
        model("shares-1+2", sharing::<Sleepy>(1, 2), PLAIN).by_lot(5_000),
        model("shares-backstop-2+1", sharing::<Backed>(2, 1), TIMED).by_lot(5_000),
        model("shares-shipped-2+2", sharing::<Standard>(2, 2), ANY).by_lot(3_000),
        model("prefers-writers-1+1", preferring(), PLAIN).reaches(&["refused"]),
        model("left-by-a-writer-1+1", left(1), TIMED).reaches(&["went ahead"]),
        model("tried-after-a-writer-1+1", left_and_tried(), PLAIN).reaches(&["went ahead"]),
        model("tried-beside-a-writer-1+1", trying(0), SPURIOUS).reaches(tried),
        model("tried-beside-a-writer-2+1", trying(1), PLAIN).by_lot(5_000).reaches(tried),
        model("gives-up-writer-1+2", giving_up(true), TIMED).by_lot(10_000).reaches(gave_up),
        model("gives-up-reader-1+2", giving_up(false), TIMED).by_lot(5_000).reaches(gave_up),
        model("writer-dies-1+1", dying(0), TIMED.mortal(1)).reaches(found),
        model("writer-dies-before-readers-1+1+2", dying(2), TIMED.mortal(1))
            .by_lot(5_000)
            .reaches(found),
        model("destroyed-1+1", destruction::<Whole>(), PLAIN).reaches(&["retired"]),
        model("destroyed-by-a-writer-1+1", destroying(), PLAIN).reaches(&["retired"]),
    ])
}

/// Only writers, none of which dies.
struct Whole(RwLock);

// SAFETY: these are the lock's own methods; its file gives the argument.
unsafe impl Lock for Whole {
    const NEW: Self = Self(SharedRwLock::NEW);

    fn lock(&self) {
        assert_eq!(self.0.write(), Acquired::Whole);
    }

    fn try_lock(&self) -> bool {
        self.0.try_write() == Some(Acquired::Whole)
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller makes the same promise.
        unsafe { self.0.unlock_write() }
    }
}

fn unlock_read<F: Form>(lock: &RwLock<F>) {
    // SAFETY: each caller holds it for reading.
    unsafe { lock.unlock_read() }
}

fn unlock_write<F: Form>(lock: &RwLock<F>) {
    // SAFETY: each caller holds it for writing.
    unsafe { lock.unlock_write() }
}

/// Readers read plain data, writers write it. Reaches `together` if two readers are in at the same
/// time.
fn sharing<F: Form>(readers: u32, writers: u32) -> Program {
    Program::new(readers + writers, readers + writers, move |scope| {
        let lock = scope.share(RwLock::<F>::NEW);
        let data = scope.share(Data::new(0));
        let inside = scope.share(Cell::new(0));
        scope.spawn_each(0..readers, move |_| {
            assert_eq!(lock.read(), Acquired::Whole);
            look_around(inside, data);
            unlock_read(lock);
        });
        scope.spawn_each(0..writers, move |_| {
            assert_eq!(lock.write(), Acquired::Whole);
            data.set(data.get() + 1);
            unlock_write(lock);
        });
        scope.finally(move || assert!(data.get() == writers && !lock.is_locked()));
    })
}

/// While a reader is in, only a writer that waits keeps another reader out. Must reach `refused`.
fn preferring() -> Program {
    Program::new(2, 3, |scope| {
        let lock = scope.share(RwLock::<Sleepy>::NEW);
        let data = scope.share(Data::new(0));
        scope.spawn(move || {
            let _ = lock.read();
            if lock.try_read().is_some() {
                unlock_read(lock);
            } else {
                probe("refused");
            }
            let _ = data.get();
            unlock_read(lock);
        });
        scope.spawn(move || {
            let _ = lock.write();
            data.set(1);
            unlock_write(lock);
        });
    })
}

/// State left by a killed writer: its request.
const WAITING: u32 = 1 << 30;

fn leave_wish<F: Form>(lock: &RwLock<F>) {
    // SAFETY: the lock is one word, and lives as long as the borrow.
    let word = unsafe { &*std::ptr::from_ref(lock).cast::<<Check as Atomics>::U32>() };
    word.store(WAITING, Relaxed);
}

/// A writer was killed while it waited: a try to read must not fail while the lock is free. Must
/// reach `went ahead`.
fn left_and_tried() -> Program {
    Program::new(2, 2, move |scope| {
        let lock = scope.share(RwLock::<Sleepy>::NEW);
        let data = scope.share(Data::new(false));
        leave_wish(lock);
        scope.spawn(move || {
            if lock.try_read().is_some() {
                if !data.get() {
                    probe("went ahead");
                }
                unlock_read(lock);
            }
        });
        scope.spawn(move || {
            let _ = lock.write();
            data.set(true);
            unlock_write(lock);
        });
        scope.finally(move || assert!(lock.try_read().is_some() && lock.try_read().is_some()));
    })
}

/// One thread reads, leaves, and tries to read again; neither a waiting writer nor the `readers`
/// behind it may be forgotten because of that. Must reach `had` and `refused`.
fn trying(readers: u32) -> Program {
    Program::new(2 + readers, 3 + readers, move |scope| {
        let lock = scope.share(RwLock::<Sleepy>::NEW);
        let data = scope.share(Data::new(0));
        scope.spawn(move || {
            let _ = lock.read();
            let _ = data.get();
            unlock_read(lock);
            if lock.try_read().is_some() {
                probe("had");
                let _ = data.get();
                unlock_read(lock);
            } else {
                probe("refused");
            }
        });
        scope.spawn_each(0..readers, move |_| {
            let _ = lock.read();
            let _ = data.get();
            unlock_read(lock);
        });
        scope.spawn(move || {
            let _ = lock.write();
            data.set(1);
            unlock_write(lock);
        });
        scope.finally(move || assert!(data.get() == 1 && !lock.is_locked()));
    })
}

/// A writer was killed while it waited: `readers` still come in, and writers after them. Must reach
/// `went ahead`.
fn left(readers: u32) -> Program {
    Program::new(readers + 1, readers + 1, move |scope| {
        let lock = scope.share(RwLock::<Backed>::NEW);
        let data = scope.share(Data::new(false));
        leave_wish(lock);
        scope.spawn_each(0..readers, move |_| {
            assert_eq!(lock.read(), Acquired::Whole);
            if !data.get() {
                probe("went ahead");
            }
            unlock_read(lock);
        });
        scope.spawn(move || {
            assert_eq!(lock.write(), Acquired::Whole);
            data.set(true);
            unlock_write(lock);
        });
        scope.finally(move || assert!(data.get() && !lock.is_locked()));
    })
}

/// A thread that wants to write (or read) may give up, beside two threads of the other kind. No
/// thread hangs. Must reach `gave up`.
fn giving_up(writes: bool) -> Program {
    Program::new(3, 3, move |scope| {
        let lock = scope.share(RwLock::<Sleepy>::NEW);
        let data = scope.share(Data::new(0));
        let enter = move |writes: bool, hurried: bool| match (writes, hurried) {
            (true, true) => lock.write_until(soon()).is_some(),
            (true, false) => lock.write() == Acquired::Whole,
            (false, true) => lock.read_until(soon()).is_some(),
            (false, false) => lock.read() == Acquired::Whole,
        };
        scope.spawn_each(
            [(writes, true), (!writes, false), (!writes, false)],
            move |(writes, hurried)| {
                if !enter(writes, hurried) {
                    assert!(hurried);
                    probe("gave up");
                } else if writes {
                    data.set(data.get() + 1);
                    unlock_write(lock);
                } else {
                    let _ = data.get();
                    unlock_read(lock);
                }
            },
        );
        scope.finally(move || assert!(!lock.is_locked() && lock.try_read().is_some()));
    })
}

/// One thread writes and ends. Another thread learns of the death when it write-locks, and declares
/// the data whole. The `readers` also learn of it, unless they come after that. Must reach `found`.
fn dying(readers: u32) -> Program {
    Program::new(readers + 2, readers + 2, move |scope| {
        let lock = scope.share(RwLock::<Backed>::NEW);
        let found = scope.share(Data::new(false));
        let told = scope.share(Cell::new(false));
        scope.spawn(move || assert_eq!(lock.write(), Acquired::Whole));
        scope.spawn(move || {
            if lock.write() == Acquired::OwnerDied {
                probe("found");
                found.set(true);
                lock.recovered();
            }
            unlock_write(lock);
        });
        scope.spawn_each(0..readers, move |_| {
            if lock.read() == Acquired::OwnerDied {
                assert!(!found.get(), "nobody is told after that");
                told.set(true);
            }
            unlock_read(lock);
        });
        scope.finally(move || {
            assert!(found.get() || told.get() || lock.is_locked(), "it has died");
        });
    })
}

/// SHARED-3: the writer that a reader has let in frees the lock. Must reach `retired`.
fn destroying() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(RwLock::<Sleepy>::NEW);
        let came = scope.share(Cell::new(false));
        scope.spawn(move || {
            let _ = lock.read();
            came.set(true);
            unlock_read(lock);
        });
        scope.spawn(move || {
            let _ = lock.write();
            let last = came.get();
            unlock_write(lock);
            if last {
                retire(lock);
            }
        });
    })
}
