//! Models of the kernel's locks, exhaustively where the search terminates.

use antiphon_check::{Check, Data, probe};
use antiphon_rivals::stock::{LinuxMutex, LinuxRwSem, QSpinLock};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::program::{Program, destruction, exclusion, tries, unlock};

const PLAIN: Bounds = Bounds::PLAIN;
/// A waiter may be told not to spin, a spin may be cut short, and a wake may be spurious.
const ANY: Bounds = PLAIN.crowded(2).expiries(1).spurious(1);

pub fn entries() -> Vec<Entry> {
    const LOTS: u64 = 700;
    type Spin = QSpinLock<Check>;
    type Mutex = LinuxMutex<Check>;
    // The first waiter asks for the hand-off at once.
    type RwSem = LinuxRwSem<Check, 0>;
    vec![
        Entry::new("qspinlock/excludes-2x1", exclusion::<Spin>(2, 1), PLAIN),
        Entry::new("qspinlock/excludes-2x2", exclusion::<Spin>(2, 2), PLAIN),
        Entry::new("qspinlock/excludes-3x1", exclusion::<Spin>(3, 1), PLAIN),
        Entry::new("qspinlock/excludes-4x2", exclusion::<Spin>(4, 2), PLAIN).by_lot(LOTS),
        Entry::new("qspinlock/tries-1+1", tries::<Spin>(1), PLAIN).reaches(&["busy"]),
        Entry::new("qspinlock/destroyed-1+1", destruction::<Spin>(), PLAIN).reaches(&["retired"]),
        Entry::new("qspinlock/exhausted-3x1", exclusion::<Spin>(3, 1), PLAIN.nodes(0)),
        Entry::new("linux-mutex/excludes-2x1", exclusion::<Mutex>(2, 1), PLAIN.crowded(1)),
        Entry::new("linux-mutex/excludes-3x1", exclusion::<Mutex>(3, 1), PLAIN.crowded(2))
            .by_lot(LOTS),
        Entry::new("linux-mutex/excludes-3x2", exclusion::<Mutex>(3, 2), ANY).by_lot(LOTS),
        Entry::new("linux-mutex/excludes-4x2", exclusion::<Mutex>(4, 2), ANY).by_lot(LOTS),
        Entry::new("linux-mutex/tries-1+1", tries::<Mutex>(1), PLAIN).reaches(&["busy"]),
        Entry::new("linux-mutex/destroyed-1+1", destruction::<Mutex>(), PLAIN.crowded(1))
            .reaches(&["retired"]),
        Entry::new("linux-mutex/exhausted-2x1", exclusion::<Mutex>(2, 1), PLAIN.nodes(0)),
        Entry::new("linux-rwsem/excludes-2x1", exclusion::<RwSem>(2, 1), PLAIN.crowded(1)),
        Entry::new("linux-rwsem/excludes-3x2", exclusion::<RwSem>(3, 2), ANY).by_lot(LOTS),
        Entry::new("linux-rwsem/tries-1+1", tries::<RwSem>(1), PLAIN).reaches(&["busy"]),
        Entry::new("linux-rwsem/tries-to-read-1+1", trying_to_read(), PLAIN).reaches(&["busy"]),
        Entry::new("linux-rwsem/shares-1+1", sharing::<0>(1, 1, 1), PLAIN.crowded(1)),
        Entry::new("linux-rwsem/shares-2+1", sharing::<0>(2, 1, 1), PLAIN.crowded(1)).by_lot(LOTS),
        Entry::new("linux-rwsem/shares-2+2", sharing::<0>(2, 2, 2), ANY).by_lot(LOTS),
        Entry::new("linux-rwsem/shares-3+2", sharing::<0>(3, 2, 1), ANY).by_lot(LOTS),
        Entry::new("linux-rwsem/patient-2+2", sharing::<4_000_000>(2, 2, 1), ANY).by_lot(LOTS),
        Entry::new("linux-rwsem/destroyed-1+1", destruction::<RwSem>(), PLAIN.crowded(1))
            .reaches(&["retired"]),
        Entry::new("linux-rwsem/exhausted-1+1", sharing::<0>(1, 1, 1), PLAIN.nodes(0)),
    ]
}

/// Readers read plain data, which writers change, `rounds` times each; every second writer
/// downgrades and reads.
fn sharing<const PATIENCE_NS: u64>(readers: u32, writers: u32, rounds: u32) -> Program {
    Program::new(readers + writers, (readers + writers) * rounds, move |scope| {
        let lock = scope.share(LinuxRwSem::<Check, PATIENCE_NS>::NEW);
        let data = scope.share(Data::new(0));
        for _ in 0..readers {
            scope.spawn(move || {
                for _ in 0..rounds {
                    lock.read();
                    let _ = data.get();
                    // SAFETY: acquired above.
                    unsafe { lock.unlock_read() };
                }
            });
        }
        for number in 0..writers {
            scope.spawn(move || {
                for _ in 0..rounds {
                    lock.write();
                    data.set(data.get() + 1);
                    if number % 2 == 0 {
                        unlock(lock);
                        continue;
                    }
                    let mine = data.get();
                    // SAFETY: acquired above.
                    unsafe { lock.downgrade() };
                    assert_eq!(data.get(), mine, "a writer came in between");
                    // SAFETY: downgraded above.
                    unsafe { lock.unlock_read() };
                }
            });
        }
        scope.finally(move || {
            assert_eq!(data.get(), writers * rounds);
            assert!(lock.try_write(), "a free lock can be tried");
            assert!(!lock.try_read(), "a held one can't");
            unlock(lock);
            assert!(lock.try_read(), "a free lock can be tried");
            // SAFETY: acquired above.
            unsafe { lock.unlock_read() };
        });
    })
}

/// A writer, and a reader that does not wait for it. Must reach `busy`.
fn trying_to_read() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(LinuxRwSem::<Check, 0>::NEW);
        let data = scope.share(Data::new(0));
        scope.spawn(move || {
            lock.write();
            data.set(1);
            unlock(lock);
        });
        scope.spawn(move || {
            if !lock.try_read() {
                return probe("busy");
            }
            let _ = data.get();
            // SAFETY: acquired above.
            unsafe { lock.unlock_read() };
        });
        scope.finally(move || assert!(lock.try_write(), "free at the end"));
    })
}
