//! Models of the count of threads that may still touch an object before it is destroyed, and of the
//! renewal of the object in a child of a fork.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_sync::wait;

use crate::bounds::{Bounds, PLAIN};
use crate::entry::{Entry, Subject, model};
use crate::program::{Program, retire};

type Inside = wait::Inside<Check>;

/// Shortened spins: then the count is checked between naps.
const TIRED: Bounds = PLAIN.expiries(1);

pub fn entries() -> Vec<Entry> {
    Subject("inside").models([
        model("destroyed-1+1", destroyed(1), TIRED).reaches(&["retired"]),
        model("destroyed-2+1", destroyed(2), TIRED).reaches(&["retired"]),
        model("adopted-2", adopted(2, 0), TIRED),
        model("inherited-2", adopted(2, STRANGERS), TIRED).reaches(&["renewed"]),
        model("inherited-3", adopted(3, STRANGERS), PLAIN).reaches(&["renewed"]),
        model("interrupted-2", adopted(2, STRANGERS | 1 << 31), PLAIN).reaches(&["renewed"]),
    ])
}

/// The epoch of a parent.
const STRANGERS: u32 = 2;

/// Visitors leave an object, and another thread destroys it when all have left. That thread counts
/// one visitor out. Must reach `retired`.
fn destroyed(visitors: u32) -> Program {
    Program::new(visitors + 1, visitors + 1, move |scope| {
        let inside = scope.share(Inside::NEW);
        let used = scope.share([const { Data::new(0) }; 2]);
        for visitor in 0..visitors {
            let visit = inside.enter();
            scope.spawn(move || {
                used[visitor as usize].set(1);
                inside.leave(visit);
            });
        }
        // The visitor that notifies and destroys; the other visitor was moved.
        let _ = inside.enter();
        scope.spawn(move || {
            inside.count_out(1);
            inside.wait_until_empty();
            let all: u32 = used.iter().map(Data::get).sum();
            assert_eq!(all, visitors);
            retire(inside);
        });
    })
}

/// Each thread uses an object that has this epoch. If it is a parent's, one thread renews the
/// object, and the model has to reach `renewed`.
fn adopted(threads: u32, epoch: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let inside = scope.share(Inside::NEW);
        let made = scope.share(Data::new(0));
        let uses = scope.share(Cell::new(0));
        // SAFETY: the object has this layout by its file, and lives as long as the borrow.
        let words = unsafe { &*std::ptr::from_ref(inside).cast::<[<Check as Atomics>::U32; 2]>() };
        if epoch != 0 {
            // Visitors of the parent.
            words[0].store(3, Relaxed);
            words[1].store(epoch, Relaxed);
        }
        scope.spawn_each(0..threads, move |_| {
            inside.adopt(|| {
                probe("renewed");
                made.set(made.get() + 1);
            });
            assert_eq!(made.get(), u32::from(epoch != 0), "made new, and once");
            let visit = inside.enter();
            uses.set(uses.get() + 1);
            inside.leave(visit);
        });
        scope.finally(move || {
            assert!(uses.get() == threads && inside.is_used());
            inside.wait_until_empty();
        });
    })
}
