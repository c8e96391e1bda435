//! Fibers as waiters: a hook table that a fiber runtime installs once.
//!
//! `park` decides whether the waiter is a thread or a fiber: it asks the runtime whether the caller
//! is a fiber. A fiber's handle goes in its node, and `unpark` resumes that fiber instead of waking
//! a thread; so threads and fibers wait in the same queue of the same lock.
//!
//! The hard case is a wake between "I decide to suspend" and "I am suspended": resumed too early, a
//! fiber would run on a stack that another thread has not left yet. The order of the steps excludes
//! this:
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
//! The runtime watches the deadline: when it has passed, `sleep.expire()` returns whether the
//! runtime must resume the fiber. `park` itself reads the clock afterwards, so an early or late
//! expiry is only a spurious wake.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Parked, Probe, Traced, TracedKind, Waiter};

use crate::park::suspended;
use crate::{Linux, clock, local};

/// The functions by which a fiber runtime serves waiting fibers.
///
/// None of them may unwind: that aborts the process. An unwound wait would leave its waiter in the
/// queue of a lock, where the waiter must stay valid until the wait ends. So where dropping a
/// suspended fiber unwinds it, the runtime must not drop it here, but resume it until its wait is
/// over.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Returns the handle of the fiber that the caller runs on; `None` on a plain thread. No two
    /// live fibers have the same handle, and it is below 2^63, as addresses and counts are. Called
    /// in slow paths of locks: it must not lock, allocate or suspend. A thread that sleeps in its
    /// own system call may have a handle during the sleep: its `resume` ends that call, and nothing
    /// is switched to.
    pub current: fn() -> Option<u64>,
    /// Suspends the fiber `handle`, which is the caller, as the module page shows. Returns when the
    /// fiber runs again: after a failed commit, a `resume`, or a successful expiry.
    pub suspend: fn(handle: u64, sleep: Sleep),
    /// Makes the suspended fiber `handle` runnable. Called on any thread, with fibers or without,
    /// perhaps in a signal handler's unlock: it must not suspend, nor wait for a lock whose holder
    /// can be suspended. Called once for each commit that no expiry has ended.
    pub resume: fn(handle: u64),
    /// Runs other runnable fibers of the caller's thread, if the caller is a fiber; returns whether
    /// any ran. See [`give_way`](antiphon_platform::Hints::give_way).
    pub give_way: fn() -> bool,
}

/// A fiber that is about to suspend, for its scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    waiter: NonNull<Waiter<Linux>>,
    /// The time at which the wait ends; the runtime watches it.
    pub deadline: Option<Deadline>,
    /// Whether `deadline` is not the end of the wait: the fiber then only checks its condition
    /// again.
    pub looks_again: bool,
    /// The lock that the fiber waits for, if the lock reports its waits ([`Probe::WaitStart`]).
    pub lock: Option<Traced>,
}

// SAFETY: a node consists of atomics; the contracts of the functions say when they may be called.
unsafe impl Send for Sleep {}

impl Sleep {
    /// Announces that the fiber's stack is no longer in use. From here on `resume` may be called
    /// for the fiber, perhaps before this returns. Returns `false` if a wake was pending: run the
    /// fiber again instead.
    ///
    /// # Safety
    ///
    /// The thread has switched away from the fiber, which has not returned from `suspend`. Called
    /// once per sleep.
    #[must_use]
    pub unsafe fn commit(self) -> bool {
        // SAFETY: the node belongs to the fiber, which is still inside `park` by the contract.
        suspended::commit(unsafe { self.waiter.as_ref() })
    }

    /// Returns whether `other` is a sleep on the same node, perhaps one that checks its condition
    /// again.
    #[must_use]
    pub fn is_by_node_of(&self, other: &Self) -> bool {
        self.waiter == other.waiter
    }

    /// Ends a committed sleep whose deadline has passed. Returns `true` if the caller must resume
    /// the fiber, and `false` if a wake has already made it runnable.
    ///
    /// # Safety
    ///
    /// Either the fiber has not returned from `suspend` after the commit, or its node is from the
    /// arena, whose nodes are never freed. In the second case a late call may spuriously end
    /// another sleep on the node, and the caller must then resume the fiber of that sleep. A
    /// runtime that drops the timer when it resumes the fiber never makes such a call.
    #[must_use]
    pub unsafe fn expire(self) -> bool {
        // SAFETY: by the contract, the node is still valid.
        suspended::expire(unsafe { self.waiter.as_ref() })
    }
}

/// Other hooks are already installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyInstalled;

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(null_mut());

/// Installs the hooks of this process's fiber runtime, for good.
///
/// # Errors
///
/// [`AlreadyInstalled`] if other hooks are installed; installing the same table twice is fine.
pub fn install(hooks: &'static Hooks) -> Result<(), AlreadyInstalled> {
    let new = core::ptr::from_ref(hooks).cast_mut();
    // Release: publishes the table; pairs with the load in `hooks`.
    match HOOKS.compare_exchange(null_mut(), new, Release, Relaxed) {
        Err(theirs) if theirs != new => Err(AlreadyInstalled),
        _ => Ok(()),
    }
}

#[inline]
fn hooks() -> Option<&'static Hooks> {
    // Acquire: pairs with the release in `install`.
    let hooks = HOOKS.load(Acquire);
    // SAFETY: null or the argument of `install`, which is `'static` and never written.
    unsafe { hooks.as_ref() }
}

/// The fiber that the caller runs on, if any, and its hooks.
#[inline]
pub(crate) fn current() -> Option<(&'static Hooks, u64)> {
    let hooks = hooks()?;
    Some((hooks, to_the_end(hooks.current)?))
}

/// A number for the fiber that the caller runs on, if any. It differs from all numbers of threads.
#[inline]
pub(crate) fn number() -> Option<u64> {
    current().map(|(_, handle)| !handle)
}

/// Calls a hook. If the hook unwinds, aborts the process.
fn to_the_end<R>(hook: impl FnOnce() -> R) -> R {
    struct Unwound;

    impl Drop for Unwound {
        fn drop(&mut self) {
            // SAFETY: `abort` takes no arguments and may be called anywhere.
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
    // Other fibers of the thread run in between.
    let noted = Noted::take();
    let looks_again = deadline.is_some_and(|deadline| deadline.ns == noted.looks_at_ns);
    let (waiter_at, lock) = (NonNull::from(waiter), noted.lock());
    let sleep = Sleep { waiter: waiter_at, deadline, looks_again, lock };
    to_the_end(|| (hooks.suspend)(handle, sleep));
    noted.put_back();
    // The fiber may now be on another thread: no thread-local state from above may be used.
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
        // Relaxed, here and below: only this thread accesses them.
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

    /// Restores the note on the thread where the fiber goes on.
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

/// Notes the lock that the calling fiber waits for.
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

/// Notes the time at which the calling fiber checks its condition again, if it parks until then.
pub(crate) fn looks_again(at_ns: u64) {
    if current().is_some() {
        local::with(|thread| thread.looks_at_ns.store(at_ns, Relaxed));
    }
}

/// Runs other runnable fibers of the thread, if there are any; returns whether there were.
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
