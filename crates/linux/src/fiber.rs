//! Fibers as waiters: a hook table that a fiber runtime installs once.
//!
//! Whether a waiter is a thread or a fiber is decided when it waits: `park` asks the runtime
//! whether the caller is a fiber. A fiber's handle goes in its node, and `unpark` resumes that
//! fiber where it would have woken a thread; so threads and fibers wait in the same queue of the
//! same lock.
//!
//! The hard case is a wake between "I decide to suspend" and "I am suspended": resumed too early, a
//! fiber would run on a stack that another thread has not left yet. The order of things excludes
//! it:
//!
//! ```text
//!  fiber            scheduler of its thread               a waker, anywhere
//!  ─────            ───────────────────────               ─────────────────
//!  park
//!   hooks.suspend ─► (switches away from the stack)
//!                    sleep.commit()
//!                     ├ true:  forget the fiber           unpark: hooks.resume(handle)
//!                     └ false: run it again               (the wake came first)
//!   ◄──────────────  (switches back, on whatever thread)
//! ```
//!
//! A deadline is the runtime's to watch: when it has passed, `sleep.expire()` says whether the
//! runtime is the one to resume the fiber. `park` itself looks at the clock afterwards, so that an
//! early or late expiry is a spurious wake and nothing worse.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Parked, Probe, Traced, TracedKind, Waiter};

use crate::park::suspended;
use crate::{Linux, clock, local};

/// The functions by which a fiber runtime serves waiting fibers.
///
/// None of it may unwind: that aborts the process. A wait that is unwound would leave a waiter in
/// the queue of a lock that it has promised to outlast. So a fiber that is suspended here must not
/// be dropped where that unwinds it, but be resumed until its wait is over.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// A handle of the fiber that the caller runs on; `None` on a plain thread. No two fibers that
    /// live have the same, and it is below 2^63, as addresses and counts are. Called in slow paths
    /// of locks: it must not lock, allocate or suspend. A thread that sleeps in a call of its own
    /// may have one meanwhile: its `resume` ends that call, and it is never switched to.
    pub current: fn() -> Option<u64>,
    /// Suspends the fiber `handle`, which is the caller, as the module's page shows. Returns when
    /// the fiber runs again: after a commit that failed, a `resume`, or an expiry that succeeded.
    pub suspend: fn(handle: u64, sleep: Sleep),
    /// Makes the suspended fiber `handle` runnable. Called on any thread, fibers' or not, perhaps
    /// in a signal handler's unlock: it must not suspend, nor wait for a lock whose holder can be
    /// suspended. Called once for each commit that no expiry has ended.
    pub resume: fn(handle: u64),
    /// Lets other fibers of the caller's thread run, if the caller is a fiber and some may go on;
    /// returns whether it did. See [`give_way`](antiphon_platform::Hints::give_way).
    pub give_way: fn() -> bool,
}

/// A fiber that is about to suspend, as its scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    waiter: NonNull<Waiter<Linux>>,
    /// When the wait ends; the runtime's to watch.
    pub deadline: Option<Deadline>,
    /// Whether that is not the end of the wait: the fiber only looks again then.
    pub looks_again: bool,
    /// The lock that the fiber waits for, if it is one that says so ([`Probe::WaitStart`]).
    pub lock: Option<Traced>,
}

// SAFETY: a node is made of atomics; the contract of its functions says when the handle may be
// used.
unsafe impl Send for Sleep {}

impl Sleep {
    /// Says that the fiber's stack is no longer in use. From here on `resume` may be called for it,
    /// perhaps before this returns. `false`: a wake was due, so run the fiber again instead.
    ///
    /// # Safety
    ///
    /// The fiber is switched away from and has not returned from `suspend`. Called once.
    #[must_use]
    pub unsafe fn commit(self) -> bool {
        // SAFETY: the node belongs to the fiber, which is still inside `park` by the contract.
        suspended::commit(unsafe { self.waiter.as_ref() })
    }

    /// Whether the other one is by the same node: one that looks again, perhaps.
    #[must_use]
    pub fn is_by_node_of(&self, other: &Self) -> bool {
        self.waiter == other.waiter
    }

    /// Ends a committed sleep whose deadline has passed. `true`: the caller must resume the fiber.
    /// `false`: a wake has already made it runnable.
    ///
    /// # Safety
    ///
    /// The fiber has not returned from `suspend` after the commit, or its node is one of the
    /// arena's, which are never freed; in that case a call that is late may end another sleep of
    /// the node's, spuriously, and then that fiber is the one to resume. A runtime that drops the
    /// timer when it resumes the fiber need not think of this.
    #[must_use]
    pub unsafe fn expire(self) -> bool {
        // SAFETY: the node is still there by the contract.
        suspended::expire(unsafe { self.waiter.as_ref() })
    }
}

/// Hooks are installed already, other ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyInstalled;

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(null_mut());

/// Installs the hooks of this process's fiber runtime, for good.
///
/// # Errors
///
/// [`AlreadyInstalled`] if there are other ones; installing the same table twice is fine.
pub fn install(hooks: &'static Hooks) -> Result<(), AlreadyInstalled> {
    let new = core::ptr::from_ref(hooks).cast_mut();
    // Release: the table as its owner wrote it, pairs with the load in `hooks`.
    match HOOKS.compare_exchange(null_mut(), new, Release, Relaxed) {
        Err(theirs) if theirs != new => Err(AlreadyInstalled),
        _ => Ok(()),
    }
}

#[inline]
fn hooks() -> Option<&'static Hooks> {
    // Acquire: pairs with the release in `install`.
    let hooks = HOOKS.load(Acquire);
    // SAFETY: null or what `install` was given, which lives for ever and is never written.
    unsafe { hooks.as_ref() }
}

/// The fiber that the caller runs on, if it does.
#[inline]
pub(crate) fn current() -> Option<(&'static Hooks, u64)> {
    let hooks = hooks()?;
    Some((hooks, to_the_end(hooks.current)?))
}

/// A number of the fiber that the caller runs on, if it does. No thread has it.
#[inline]
pub(crate) fn number() -> Option<u64> {
    current().map(|(_, handle)| !handle)
}

/// Calls a hook. If it unwinds the process is aborted.
fn to_the_end<R>(hook: impl FnOnce() -> R) -> R {
    struct Unwound;

    impl Drop for Unwound {
        fn drop(&mut self) {
            // SAFETY: it takes nothing and may be called anywhere.
            unsafe { libc::abort() }
        }
    }

    let unwound = Unwound;
    let result = hook();
    core::mem::forget(unwound);
    result
}

/// Parks the fiber `handle`, which is the caller.
pub(crate) fn park(
    hooks: &Hooks,
    handle: u64,
    waiter: &Waiter<Linux>,
    deadline: Option<Deadline>,
) -> Parked {
    // Published by the commit.
    waiter.handle.store(handle, Relaxed);
    // Other fibers of the thread come in between.
    let noted = Noted::take();
    let looks_again = deadline.is_some_and(|deadline| deadline.ns == noted.looks_at_ns);
    let (waiter_at, lock) = (NonNull::from(waiter), noted.lock());
    let sleep = Sleep { waiter: waiter_at, deadline, looks_again, lock };
    to_the_end(|| (hooks.suspend)(handle, sleep));
    noted.put_back();
    // Perhaps on another thread now: nothing thread-local may be kept from above.
    if suspended::finish(waiter) {
        return Parked::Woken;
    }
    match deadline {
        Some(deadline) if clock::now(deadline.clock) >= deadline.ns => Parked::TimedOut,
        _ => Parked::Woken,
    }
}

/// The calling thread's note on the wait of the fiber that it runs.
struct Noted {
    lock: u64,
    lock_kind: u32,
    looks_at_ns: u64,
}

impl Noted {
    fn take() -> Self {
        // Relaxed, here and below: the thread's own.
        local::with(|thread| {
            let noted = Self {
                lock: thread.lock.load(Relaxed),
                lock_kind: thread.lock_kind.load(Relaxed),
                looks_at_ns: thread.looks_at_ns.load(Relaxed),
            };
            thread.lock.store(0, Relaxed);
            thread.looks_at_ns.store(0, Relaxed);
            noted
        })
    }

    /// The fiber goes on, on whatever thread: puts back what was noted.
    fn put_back(&self) {
        if self.lock != 0 {
            local::with(|thread| {
                thread.lock.store(self.lock, Relaxed);
                thread.lock_kind.store(self.lock_kind, Relaxed);
            });
        }
    }

    fn lock(&self) -> Option<Traced> {
        let kinds = [
            TracedKind::Mutex,
            TracedKind::Read,
            TracedKind::Write,
            TracedKind::Spin,
            TracedKind::Semaphore,
        ];
        let kind = kinds.into_iter().find(|&kind| kind as u32 == self.lock_kind)?;
        (self.lock != 0).then_some(Traced { address: self.lock as usize, kind })
    }
}

/// Notes for which lock the calling fiber waits.
#[inline]
pub(crate) fn probe(probe: Probe) {
    if current().is_none() {
        return;
    }
    let (address, kind) = match probe {
        Probe::WaitStart(Traced { address, kind }) => (address as u64, kind as u32),
        Probe::Acquired(_) | Probe::GaveUp(_) => (0, 0),
    };
    local::with(|thread| {
        thread.lock.store(address, Relaxed);
        thread.lock_kind.store(kind, Relaxed);
    });
}

/// Notes when the calling fiber looks again, if it parks until then.
pub(crate) fn looks_again(at_ns: u64) {
    if current().is_some() {
        local::with(|thread| thread.looks_at_ns.store(at_ns, Relaxed));
    }
}

/// Lets other fibers of the thread run, if there are some that may go on.
pub(crate) fn give_way() -> bool {
    hooks().is_some_and(|hooks| to_the_end(hooks.give_way))
}

/// Makes a suspended fiber runnable.
pub(crate) fn resume(handle: u64) {
    // A fiber is suspended, so there are hooks.
    if let Some(hooks) = hooks() {
        to_the_end(|| (hooks.resume)(handle));
    }
}
