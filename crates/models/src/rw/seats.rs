//! Models of readers that are counted by socket: [`PerSocket`].

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Scope, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_sync::lock::{PerSocket, Seat};
use antiphon_sync::policy::None;

use super::sharing::look_around;
use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::{Sleepy, Spinning};
use crate::program::{Program, destruction, exclusion, soon};

type Lock<F = Sleepy> = PerSocket<Check, None, F, 2>;

/// Layout of the words of a [`Lock`].
#[repr(C, align(64))]
struct Words {
    inside: [u64; 2],
    until: u32,
    line: Line,
    _other: Line,
}

#[repr(C, align(64))]
struct Line(<Check as Atomics>::U64);

const _: () = assert!(size_of::<Words>() == size_of::<Lock>());

/// Returns the line of socket 0.
fn line(lock: &Lock) -> &<Check as Atomics>::U64 {
    // SAFETY: `Words` has the layout that the lock's file defines.
    unsafe { &(*std::ptr::from_ref(lock).cast::<Words>()).line.0 }
}

pub fn entries() -> Vec<Entry> {
    let two = Bounds::PLAIN.sockets(2);
    let any = two.spurious(1).expiries(1).crowded(1);
    let timed = two.timeouts(1);
    let by_line = &["by a line"];
    vec![
        Entry::new("shfl-rw+per-socket/excludes-2x1", exclusion::<Lock>(2, 1), two),
        Entry::new("shfl-rw+per-socket/shares-1+1", seats(1, 1, 1), two).reaches(by_line),
        // Readers of two lines have no word in common: no execution shows that they meet.
        Entry::new("shfl-rw+per-socket/shares-2+1", seats(2, 1, 1), two).reaches(by_line).long(),
        Entry::new("shfl-rw+per-socket/shares-1+2", seats(1, 2, 1), two)
            .by_lot(5_000)
            .reaches(by_line),
        Entry::new("shfl-rw+per-socket/shares-any-platform-1+1", spinning(), any).reaches(by_line),
        Entry::new("shfl-rw+per-socket/shares-2+2", seats(2, 2, 2), two.spurious(1))
            .by_lot(10_000)
            .reaches(&["by a line", "together"]),
        Entry::new("shfl-rw+per-socket/exhausted-1+1", seats(1, 1, 1), two.nodes(0)),
        Entry::new("shfl-rw+per-socket/exhausted-2+1", seats(2, 1, 1), two.nodes(0)).long(),
        Entry::new("shfl-rw+per-socket/prefers-writers-2+1", writer_first(), two),
        Entry::new("shfl-rw+per-socket/times-out-1+1", giving_up(0), timed).reaches(&["gave up"]),
        Entry::new("shfl-rw+per-socket/gives-up-1+1+1", giving_up(1), timed)
            .by_lot(10_000)
            .reaches(&["gave up"]),
        Entry::new("shfl-rw+per-socket/tries-2+1", looking(), two).reaches(&["together"]),
        Entry::new("shfl-rw+per-socket/tries-1+1+1", trying(), two).reaches(&["busy"]),
        Entry::new("shfl-rw+per-socket/downgrades-1+1", downgrading(), two),
        Entry::new("shfl-rw+per-socket/destroyed-1+1", destruction::<Lock>(), two)
            .reaches(&["retired"]),
        Entry::new("shfl-rw+per-socket/left-for-good-1+1", leaving(), two).reaches(&["retired"]),
    ]
}

/// Shares a lock whose line of socket 0 is open, as after a read.
fn opened<'scope>(scope: &'scope Scope<'scope, '_>) -> &'scope Lock {
    let lock = scope.share(Lock::NEW);
    leave(lock, enter(lock));
    assert!(line(lock).load(Relaxed) & 1 == 1, "who reads opens its line");
    lock
}

fn enter(lock: &Lock) -> Seat {
    let seat = lock.read().expect("few readers");
    if seat.socket().is_some() {
        probe("by a line");
    }
    seat
}

fn leave(lock: &Lock, seat: Seat) {
    // SAFETY: each caller has got its seat from a read.
    unsafe { lock.unlock_read(seat) }
}

fn unlock_write(lock: &Lock) {
    // SAFETY: each caller has acquired the lock for writing.
    unsafe { lock.unlock_write() }
}

fn write(lock: &Lock, data: &Data<u32>) {
    lock.write();
    data.set(data.get() + 1);
    unlock_write(lock);
}

/// Readers, on the two sockets in turn, and writers.
fn seats(readers: u32, writers: u32, rounds: u32) -> Program {
    Program::new(readers + writers, (readers + writers) * rounds, move |scope| {
        let lock = opened(scope);
        let data = scope.share(Data::new(0));
        let inside = scope.share(Cell::new(0));
        for reader in 0..readers {
            scope.spawn_on(reader % 2, move || {
                for _ in 0..rounds {
                    let seat = enter(lock);
                    look_around(inside, data);
                    leave(lock, seat);
                }
            });
        }
        for _ in 0..writers {
            scope.spawn(move || (0..rounds).for_each(|_| write(lock, data)));
        }
        scope.finally(move || {
            assert_eq!(data.get(), writers * rounds);
            assert!(lock.try_write(), "free at the end");
        });
    })
}

/// [`seats`] in which a waiter may spin, find the machine crowded, or wake spuriously.
fn spinning() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Lock::<Spinning>::NEW);
        let data = scope.share(Data::new(0));
        let read = |lock: &Lock<Spinning>, data: &Data<u32>| {
            let seat = lock.read().expect("few readers");
            if seat.socket().is_some() {
                probe("by a line");
            }
            let _ = data.get();
            // SAFETY: acquired above.
            unsafe { lock.unlock_read(seat) };
        };
        read(lock, data);
        scope.spawn_on(0, move || read(lock, data));
        scope.spawn(move || {
            lock.write();
            data.set(1);
            // SAFETY: acquired above.
            unsafe { lock.unlock_write() };
        });
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}

/// Readers that come and go for ever starve no writer: a reader that comes when the line is closed
/// gets the lock after the writer, although another is still in by the line.
fn writer_first() -> Program {
    Program::new(3, 3, |scope| {
        let lock = opened(scope);
        let written = scope.share(Data::new(0));
        let seat = Cell::new(Some(enter(lock)));
        scope.spawn_on(0, move || {
            // Stays in until the writer has closed the line.
            line(lock).wait_while(Relaxed, |line| line & 1 == 1);
            leave(lock, seat.take().expect("it was had before"));
        });
        scope.spawn(move || write(lock, written));
        scope.spawn_on(0, move || {
            line(lock).wait_while(Relaxed, |line| line & 1 == 1);
            let seat = enter(lock);
            assert_eq!(written.get(), 1, "a reader that came later was let in before");
            leave(lock, seat);
        });
    })
}

/// A writer that gives up while a reader is in by a line, and others that come after it. Must reach
/// `gave up`.
fn giving_up(others: u32) -> Program {
    Program::new(2 + others, 2 + others, move |scope| {
        let lock = opened(scope);
        let data = scope.share(Data::new(0));
        scope.spawn_on(0, move || {
            let seat = enter(lock);
            let _ = data.get();
            leave(lock, seat);
        });
        scope.spawn(move || {
            if !lock.write_until(soon()) {
                return probe("gave up");
            }
            data.set(data.get() + 1);
            unlock_write(lock);
        });
        for _ in 0..others {
            scope.spawn(move || write(lock, data));
        }
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}

/// [`giving_up`] with tries. Must reach `busy`.
fn trying() -> Program {
    Program::new(3, 4, |scope| {
        let lock = opened(scope);
        let data = scope.share(Data::new(0));
        scope.spawn_on(0, move || {
            if let Ok(seat) = lock.try_read() {
                let _ = data.get();
                leave(lock, seat);
            }
        });
        scope.spawn(move || {
            if !lock.try_write() {
                return probe("busy");
            }
            data.set(data.get() + 1);
            unlock_write(lock);
        });
        scope.spawn(move || write(lock, data));
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}

/// Readers of one line that do not wait, and a writer that does. Must reach `together`.
fn looking() -> Program {
    Program::new(3, 3, |scope| {
        let lock = opened(scope);
        let data = scope.share(Data::new(0));
        let inside = scope.share(Cell::new(0));
        for _ in 0..2 {
            scope.spawn_on(0, move || {
                if let Ok(seat) = lock.try_read() {
                    look_around(inside, data);
                    leave(lock, seat);
                }
            });
        }
        scope.spawn(move || write(lock, data));
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}

/// A writer becomes a reader, and gets its seat while inside.
fn downgrading() -> Program {
    Program::new(2, 2, |scope| {
        let lock = opened(scope);
        let data = scope.share(Data::new(0));
        scope.spawn_on(0, move || {
            lock.write();
            data.set(data.get() + 1);
            let mine = data.get();
            // SAFETY: acquired above.
            let seat = unsafe { lock.downgrade() };
            assert_eq!(data.get(), mine, "a writer came in between");
            leave(lock, seat);
        });
        scope.spawn(move || write(lock, data));
        scope.finally(move || assert_eq!(data.get(), 2));
    })
}

/// RW-3 of a reader by a line: the writer that comes after it may free the lock while that reader
/// is still in `unlock_read`. Must reach `retired`.
fn leaving() -> Program {
    Program::new(2, 2, |scope| {
        let lock = opened(scope);
        let data = scope.share(Data::new(()));
        let read_once = scope.share(Cell::new(false));
        scope.spawn_on(0, move || {
            let seat = enter(lock);
            data.get();
            read_once.set(true);
            leave(lock, seat);
        });
        scope.spawn(move || {
            lock.write();
            data.set(());
            let last = read_once.get();
            unlock_write(lock);
            if last {
                antiphon_check::retire(lock);
                probe("retired");
            }
        });
    })
}
