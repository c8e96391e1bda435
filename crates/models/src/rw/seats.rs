//! Models of readers that are counted by socket: [`PerSocket`].

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Scope, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_sync::lock::{PerSocket, Seat};
use antiphon_sync::policy::None;

use super::sharing::look_around;
use crate::bounds::NUMA;
use crate::entry::{Entry, Subject, model};
use crate::forms::{Sleepy, Spinning};
use crate::program::{
    GAVE_UP, Program, destruction, exclusion, finish, guarded, left_for_good, section, soon,
};

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
    let any = NUMA.spurious(1).expiries(1).crowded(1);
    let timed = NUMA.timeouts(1);
    let by_line = &["by a line"];
    Subject("shfl-rw+per-socket").models([
        model("excludes-2x1", exclusion::<Lock>(2, 1), NUMA),
        model("shares-1+1", seats(1, 1, 1), NUMA).reaches(by_line),
        // Readers of two lines have no word in common: no execution shows that they meet.
        model("shares-2+1", seats(2, 1, 1), NUMA).reaches(by_line).long(),
        model("shares-1+2", seats(1, 2, 1), NUMA).by_lot(5_000).reaches(by_line),
        model("shares-any-platform-1+1", spinning(), any).reaches(by_line),
        model("shares-2+2", seats(2, 2, 2), NUMA.spurious(1))
            .by_lot(10_000)
            .reaches(&["by a line", "together"]),
        model("exhausted-1+1", seats(1, 1, 1), NUMA.nodes(0)),
        model("exhausted-2+1", seats(2, 1, 1), NUMA.nodes(0)).long(),
        model("prefers-writers-2+1", writer_first(), NUMA),
        model("times-out-1+1", giving_up(0), timed).reaches(GAVE_UP),
        model("gives-up-1+1+1", giving_up(1), timed).by_lot(10_000).reaches(GAVE_UP),
        model("tries-2+1", looking(), NUMA).reaches(&["together"]),
        model("tries-1+1+1", trying(), NUMA).reaches(&["busy"]),
        model("downgrades-1+1", downgrading(), NUMA),
        model("destroyed-1+1", destruction::<Lock>(), NUMA).reaches(&["retired"]),
        model("left-for-good-1+1", leaving(), NUMA).reaches(&["retired"]),
    ])
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

/// Readers, on the two sockets in turn, and writers.
fn seats(readers: u32, writers: u32, rounds: u32) -> Program {
    Program::new(readers + writers, (readers + writers) * rounds, move |scope| {
        let (lock, data) = (opened(scope), scope.share(Data::new(0)));
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
        scope.spawn_each(0..writers, move |_| (0..rounds).for_each(|_| section(lock, data)));
        scope.finally(move || {
            assert_eq!(data.get(), writers * rounds);
            assert!(lock.try_write(), "free at the end");
        });
    })
}

/// [`seats`] in which a waiter may spin, find the machine crowded, or wake spuriously.
fn spinning() -> Program {
    Program::new(2, 2, |scope| {
        let (lock, data) = guarded::<Lock<Spinning>>(scope);
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
        scope.spawn(move || section(lock, written));
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
        let (lock, data) = (opened(scope), scope.share(Data::new(0)));
        scope.spawn_on(0, move || {
            let seat = enter(lock);
            let _ = data.get();
            leave(lock, seat);
        });
        scope.spawn(move || {
            if !lock.write_until(soon()) {
                return probe("gave up");
            }
            finish(lock, data);
        });
        scope.spawn_each(0..others, move |_| section(lock, data));
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}

/// [`giving_up`] with tries. Must reach `busy`.
fn trying() -> Program {
    Program::new(3, 4, |scope| {
        let (lock, data) = (opened(scope), scope.share(Data::new(0)));
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
            finish(lock, data);
        });
        scope.spawn(move || section(lock, data));
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}

/// Readers of one line that do not wait, and a writer that does. Must reach `together`.
fn looking() -> Program {
    Program::new(3, 3, |scope| {
        let (lock, data) = (opened(scope), scope.share(Data::new(0)));
        let inside = scope.share(Cell::new(0));
        for _ in 0..2 {
            scope.spawn_on(0, move || {
                if let Ok(seat) = lock.try_read() {
                    look_around(inside, data);
                    leave(lock, seat);
                }
            });
        }
        scope.spawn(move || section(lock, data));
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}

/// A writer becomes a reader, and gets its seat while inside.
fn downgrading() -> Program {
    Program::new(2, 2, |scope| {
        let (lock, data) = (opened(scope), scope.share(Data::new(0)));
        scope.spawn_on(0, move || {
            lock.write();
            data.set(data.get() + 1);
            let mine = data.get();
            // SAFETY: acquired above.
            let seat = unsafe { lock.downgrade() };
            assert_eq!(data.get(), mine, "a writer came in between");
            leave(lock, seat);
        });
        scope.spawn(move || section(lock, data));
        scope.finally(move || assert_eq!(data.get(), 2));
    })
}

/// RW-3 of a reader by a line: the writer that comes after it may free the lock while that reader
/// is still in `unlock_read`. Must reach `retired`.
fn leaving() -> Program {
    left_for_good(opened, |lock, inside| {
        let seat = enter(lock);
        inside();
        leave(lock, seat);
    })
}
