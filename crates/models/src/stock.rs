//! Models of the kernel's locks, exhaustively where the search terminates.

use antiphon_check::{Check, probe};
use antiphon_rivals::stock::{LinuxMutex, LinuxRwSem, QSpinLock};

use crate::bounds::{Bounds, PLAIN};
use crate::entry::{Entry, Subject, all_of, model};
use crate::program::{Program, destruction, exclusion, guarded, tries, unlock};

/// A waiter may be told not to spin, a spin may be cut short, and a wake may be spurious.
const ANY: Bounds = PLAIN.crowded(2).expiries(1).spurious(1);

pub fn entries() -> Vec<Entry> {
    const LOTS: u64 = 700;
    type Spin = QSpinLock<Check>;
    type Mutex = LinuxMutex<Check>;
    // The first waiter asks for the hand-off at once.
    type RwSem = LinuxRwSem<Check, 0>;
    all_of([
        Subject("qspinlock").models([
            model("excludes-2x1", exclusion::<Spin>(2, 1), PLAIN),
            model("excludes-2x2", exclusion::<Spin>(2, 2), PLAIN),
            model("excludes-3x1", exclusion::<Spin>(3, 1), PLAIN),
            model("excludes-4x2", exclusion::<Spin>(4, 2), PLAIN).by_lot(LOTS),
            model("tries-1+1", tries::<Spin>(1), PLAIN).reaches(&["busy"]),
            model("destroyed-1+1", destruction::<Spin>(), PLAIN).reaches(&["retired"]),
            model("exhausted-3x1", exclusion::<Spin>(3, 1), PLAIN.nodes(0)),
        ]),
        Subject("linux-mutex").models([
            model("excludes-2x1", exclusion::<Mutex>(2, 1), PLAIN.crowded(1)),
            model("excludes-3x1", exclusion::<Mutex>(3, 1), PLAIN.crowded(2)).by_lot(LOTS),
            model("excludes-3x2", exclusion::<Mutex>(3, 2), ANY).by_lot(LOTS),
            model("excludes-4x2", exclusion::<Mutex>(4, 2), ANY).by_lot(LOTS),
            model("tries-1+1", tries::<Mutex>(1), PLAIN).reaches(&["busy"]),
            model("destroyed-1+1", destruction::<Mutex>(), PLAIN.crowded(1)).reaches(&["retired"]),
            model("exhausted-2x1", exclusion::<Mutex>(2, 1), PLAIN.nodes(0)),
        ]),
        Subject("linux-rwsem").models([
            model("excludes-2x1", exclusion::<RwSem>(2, 1), PLAIN.crowded(1)),
            model("excludes-3x2", exclusion::<RwSem>(3, 2), ANY).by_lot(LOTS),
            model("tries-1+1", tries::<RwSem>(1), PLAIN).reaches(&["busy"]),
            model("tries-to-read-1+1", trying_to_read(), PLAIN).reaches(&["busy"]),
            model("shares-1+1", sharing::<0>(1, 1, 1), PLAIN.crowded(1)),
            model("shares-2+1", sharing::<0>(2, 1, 1), PLAIN.crowded(1)).by_lot(LOTS),
            model("shares-2+2", sharing::<0>(2, 2, 2), ANY).by_lot(LOTS),
            model("shares-3+2", sharing::<0>(3, 2, 1), ANY).by_lot(LOTS),
            model("patient-2+2", sharing::<4_000_000>(2, 2, 1), ANY).by_lot(LOTS),
            model("destroyed-1+1", destruction::<RwSem>(), PLAIN.crowded(1)).reaches(&["retired"]),
            model("exhausted-1+1", sharing::<0>(1, 1, 1), PLAIN.nodes(0)),
        ]),
    ])
}

/// Readers read plain data, which writers change, `rounds` times each; every second writer
/// downgrades and reads.
fn sharing<const PATIENCE_NS: u64>(readers: u32, writers: u32, rounds: u32) -> Program {
    Program::new(readers + writers, (readers + writers) * rounds, move |scope| {
        let (lock, data) = guarded::<LinuxRwSem<Check, PATIENCE_NS>>(scope);
        scope.spawn_each(0..readers, move |_| {
            for _ in 0..rounds {
                lock.read();
                let _ = data.get();
                // SAFETY: acquired above.
                unsafe { lock.unlock_read() };
            }
        });
        scope.spawn_each(0..writers, move |number| {
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
        let (lock, data) = guarded::<LinuxRwSem<Check, 0>>(scope);
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
