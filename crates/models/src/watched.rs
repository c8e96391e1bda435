//! A policy that watches the shuffler.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Data, Scope};
use antiphon_platform::{Atomic, Platform, Waiter};
use antiphon_sync::lock::Lock;
use antiphon_sync::policy::Policy;

use crate::program::{Program, contend};

/// What [`Watched`] has seen of the present round of shuffling.
#[derive(Clone, Copy)]
struct Round {
    batch: u32,
}

thread_local! {
    /// The watch of the execution that runs on this thread.
    static WATCH: Cell<*const Data<Round>> = const { Cell::new(ptr::null()) };
}

/// Groups by socket, and asserts the four invariants of `000_…`, "Shuffling invariants for
/// correctness", each time that a shuffler asks. To be used in [`sorting`] only.
pub struct Watched;

/// [`exclusion`](crate::program::exclusion), watched: INV-1…4, and that sorting loses nobody. `L`
/// has the policy [`Watched`]. Reaches `shuffled` if a waiter looks at another.
pub fn sorting<L: Lock>(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        watch(scope);
        contend::<L>(scope, threads, 1);
    })
}

fn watch<'scope>(scope: &'scope Scope<'scope, '_>) {
    WATCH.set(scope.share(Data::new(Round { batch: 0 })));
}

impl Policy for Watched {
    fn shuffles<P: Platform>() -> bool {
        true
    }

    fn groups<P: Platform>(shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool {
        const HEAD: u32 = 2;
        antiphon_check::probe("shuffled");
        // SAFETY: set by `watch` for this execution.
        let watch = unsafe { &*WATCH.get() };
        let batch = shuffler.batch.load(Relaxed);
        let is_head = shuffler.status.load(Relaxed) & HEAD != 0;
        // INV-1: two shufflers at a time would touch the watch in no order: a data race.
        let last = watch.get().batch;
        watch.set(Round { batch });
        // INV-2: a round begins at the head; whoever else shuffles was grouped, and given the role.
        assert!(is_head || batch > 1, "INV-2: a waiter shuffles that is not the head");
        // INV-3: who is behind the shuffler is neither the head nor the shuffler.
        assert!(candidate.status.load(Relaxed) & HEAD == 0, "INV-3: the role went forward");
        assert!(!ptr::eq(shuffler, candidate), "INV-3: a shuffler groups itself");
        // INV-4: who has passed the role on has a smaller batch than who has it.
        assert!(batch >= last || is_head && batch == 1, "INV-4: shuffles after passing the role");
        shuffler.socket.load(Relaxed) == candidate.socket.load(Relaxed)
    }
}
