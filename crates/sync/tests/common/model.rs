//! What the models of locks share: forms with small numbers, the program that every lock runs, and
//! a policy that watches the shuffler.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Mode, Model, Report, Scope};
use antiphon_platform::{Atomic, Budget, Clock, Deadline, Platform, Waiter};
use antiphon_sync::lock::{Form, Lock, ShflMutex};
use antiphon_sync::policy::{self, Policy};

/// Small numbers, so that a few threads reach every edge; no spins, so that all of them sleep.
pub struct Sleepy;

impl Form for Sleepy {
    const HEAD_SLEEPS: bool = true;
    const GROUP: u32 = 3;
    const PATIENCE: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::NONE;
    const HEAD_SPIN: Budget = Budget::NONE;
}

/// As [`Sleepy`], but with spins in the queue, which end in any way they may.
pub struct Spinning;

impl Form for Spinning {
    const HEAD_SLEEPS: bool = true;
    const GROUP: u32 = 3;
    const PATIENCE: u32 = 1;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(1);
    const HEAD_SPIN: Budget = Budget::ns(1);
}

/// The mutex whose waiters all sleep.
pub type Mutex = ShflMutex<Check, policy::None, Sleepy>;

/// A model in which nothing happens that the platform may do but need not: no spurious wakes, no
/// `crowded()`, no early end of a timed wait or a spin. Each test adds what it is about.
pub fn plain(name: &str) -> Model {
    Model::new(name).spurious(0).crowded(0).timeouts(0).expiries(0)
}

/// The same bounds by lot: for what is too large to enumerate.
pub fn by_lot(model: &Model, executions: u64) -> [Model; 2] {
    let random = model.clone().mode(Mode::Random { seed: 1, executions });
    let pct = model.clone().mode(Mode::Pct { seed: 1, depth: 3, executions });
    [random, pct]
}

/// `threads` threads lock, touch plain data, and unlock, `rounds` times each. A lost wake is a
/// deadlock, a missing ordering a data race.
pub fn exclusion<L: Lock>(model: &Model, threads: u32, rounds: u32) -> Report {
    model.run(|scope| contend::<L>(scope, threads, rounds))
}

/// The program of [`exclusion`].
pub fn contend<'scope, L: Lock>(scope: &'scope Scope<'scope, '_>, threads: u32, rounds: u32) {
    let lock = scope.share(L::NEW);
    let data = scope.share(Data::new(0));
    for _ in 0..threads {
        scope.spawn(move || {
            for _ in 0..rounds {
                lock.lock();
                data.set(data.get() + 1);
                // SAFETY: locked above.
                unsafe { lock.unlock() };
            }
        });
    }
    scope.finally(move || assert_eq!(data.get(), threads * rounds));
}

/// Unlocks what the caller has locked.
pub fn unlock(lock: &impl Lock) {
    // SAFETY: each caller has locked it.
    unsafe { lock.unlock() }
}

/// A deadline that a model may let pass.
pub fn soon() -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Check::now(Clock::Monotonic) + 10 }
}

/// What [`Watched`] has seen of the present round of shuffling.
#[derive(Clone, Copy)]
pub struct Round {
    batch: u32,
}

thread_local! {
    /// The watch of the execution that runs on this thread.
    static WATCH: Cell<*const Data<Round>> = const { Cell::new(ptr::null()) };
}

/// Groups by socket, and asserts the four invariants of `000_…`, "Shuffling invariants for
/// correctness", each time that a shuffler asks.
pub struct Watched;

/// To be called by the program of each model that uses [`Watched`].
pub fn watch<'scope>(scope: &'scope Scope<'scope, '_>) {
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
