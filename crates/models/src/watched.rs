//! A lock policy that checks the shuffler.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::{Atomic, Atomics, Platform, ThreadId, Waiter};
use antiphon_sync::lock::Lock;
use antiphon_sync::policy::{Numa, Policy, Waiting};

use crate::program::{Program, contend};

/// The observations of [`Watched`], and whether the first thread may begin to sort.
pub struct Watch {
    /// Size of the group that the last shuffler has gathered.
    batch: Data<u32>,
    /// Number of times that the first thread was asked whether there is anything to sort by.
    asked: Cell<u32>,
    /// Not zero: the first thread may sort.
    pub begun: <Check as Atomics>::U8,
}

thread_local! {
    /// Watch of the execution that runs on this thread.
    static WATCH: Cell<*const Watch> = const { Cell::new(ptr::null()) };
}

/// Groups by socket, or by what waiters want, and asserts the four invariants of `000_…`,
/// "Shuffling invariants for correctness", each time that a shuffler asks. Use it only after
/// [`watch`].
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Watched<const BY_WANTS: bool = false>;

/// [`exclusion`](crate::program::exclusion), watched: INV-1…4, and that sorting loses no waiter.
/// `L` has the policy [`Watched`]. Reaches `shuffled` if a waiter looks at another.
pub fn sorting<L: Lock>(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        watch(scope).begun.store(1, Relaxed);
        contend::<L>(scope, threads, 1);
    })
}

/// Begins to watch an execution. If its first thread becomes the head of the queue, it waits until
/// [`Watch::begun`].
pub fn watch<'scope>(scope: &'scope Scope<'scope, '_>) -> &'scope Watch {
    let begun = <Check as Atomics>::U8::ZERO;
    let watch = scope.share(Watch { batch: Data::new(0), asked: Cell::new(0), begun });
    WATCH.set(watch);
    watch
}

fn watched() -> &'static Watch {
    // SAFETY: set by `watch` for this execution; only its threads use it.
    unsafe { &*WATCH.get() }
}

impl<const BY_WANTS: bool> Policy for Watched<BY_WANTS> {
    /// Asked twice in a wait: before the waiter joins the queue, and when it is the head.
    fn shuffles<P: Platform>(self) -> bool {
        let watch = watched();
        if P::thread() == ThreadId(1) {
            watch.asked.set(watch.asked.get() + 1);
            if watch.asked.get() == 2 {
                watch.begun.wait_while(Relaxed, |begun| begun == 0);
            }
        }
        true
    }

    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        Numa.on_wait(me);
    }

    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        const HEAD: u32 = 2;
        const SHUFFLER: u32 = 8;
        antiphon_check::probe("shuffled");
        let watch = watched();
        // SAFETY: the shuffler is looking at both, so their nodes are valid.
        let [shuffler, candidate] = [shuffler, candidate].map(|of| unsafe { of.node() });
        let batch = shuffler.batch.load(Relaxed);
        let is_head = shuffler.status.load(Relaxed) & HEAD != 0;
        // INV-1: two shufflers at a time would touch the watch in no order: a data race.
        let last = watch.batch.get();
        watch.batch.set(batch);
        // INV-2: a round begins at the head; any other waiter that shuffles was grouped, and given
        // the role.
        assert!(is_head || batch > 1, "INV-2: a waiter shuffles that is not the head");
        // INV-3: a waiter behind the shuffler is neither the head nor the shuffler.
        let status = candidate.status.load(Relaxed);
        assert!(status & HEAD == 0, "INV-3: the role went forward");
        // INV-1, INV-4: the role has not passed to or by the candidate already.
        assert!(status & SHUFFLER == 0, "INV-1: shuffles after passing the role");
        assert!(candidate.batch.load(Relaxed) == 0, "INV-4: groups who is grouped");
        assert!(!ptr::eq(shuffler, candidate), "INV-3: a shuffler groups itself");
        // INV-4: a waiter that has passed the role on has a smaller batch than the one that has it.
        assert!(batch >= last || is_head && batch == 1, "INV-4: shuffles after passing the role");
        let key = |of: &Waiter<P>| {
            if BY_WANTS { of.wants.load(Relaxed) } else { of.socket.load(Relaxed).into() }
        };
        key(shuffler) == key(candidate)
    }
}
