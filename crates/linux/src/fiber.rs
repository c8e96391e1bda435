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

use antiphon_platform::{Atomic, Deadline, Parked, Waiter};

use crate::park::suspended;
use crate::{Linux, clock};

/// What a fiber runtime does for those who wait.
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
}

/// A fiber that is about to suspend, as its scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    waiter: NonNull<Waiter<Linux>>,
    /// When the wait ends; the runtime's to watch.
    pub deadline: Option<Deadline>,
}

// SAFETY: a node is made of atomics; who may use the handle when is the contract of its functions.
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

    /// Ends a committed sleep whose deadline has passed. `true`: the caller must resume the fiber.
    /// `false`: a wake has already made it runnable.
    ///
    /// # Safety
    ///
    /// The fiber has not returned from `suspend` since the commit, or its node is one of the
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
    to_the_end(|| (hooks.suspend)(handle, Sleep { waiter: NonNull::from(waiter), deadline }));
    // Perhaps on another thread now: nothing thread-local may be kept from above.
    if suspended::finish(waiter) {
        return Parked::Woken;
    }
    match deadline {
        Some(deadline) if clock::now(deadline.clock) >= deadline.ns => Parked::TimedOut,
        _ => Parked::Woken,
    }
}

/// Makes a suspended fiber runnable.
pub(crate) fn resume(handle: u64) {
    // A fiber is suspended, so there are hooks.
    if let Some(hooks) = hooks() {
        to_the_end(|| (hooks.resume)(handle));
    }
}
