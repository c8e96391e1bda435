//! A condition variable whose waiters their own CPUs wake. A broadcast interrupts them by one
//! command, if at least half of the other CPUs have waiters; otherwise by one for each, or for each
//! cluster of an x2APIC.
//!
//! The condition variable of `antiphon-sync` runs here, too, and has one list, whose waiters a
//! notifier wakes one after the other, in the order in which they came. In this one a notifier
//! touches no waiter; the unit of a notification is a CPU. The protocol is that of
//! [`antiphon_wakeup::condvar`].

use antiphon_wakeup::condvar::{self, Threads, Waiters};

use super::cpu::{self, Cpu, MOST_CPUS, this};
use super::schedule;
use super::state::Thread;
use crate::metal::Metal;
use crate::x86::{apic, clock, vectors};

const WORDS: usize = MOST_CPUS.div_ceil(u64::BITS as usize);

/// A condition variable. It stores no mutex: any kind may be used, one at a time.
pub struct Condvar(condvar::Condvar<Metal, WORDS>);

impl Condvar {
    /// Creates a condition variable that no thread waits for.
    #[must_use]
    pub const fn new() -> Self {
        Self(condvar::Condvar::NEW)
    }

    /// Waits until notified, or until `deadline_ns` of the monotonic clock. `unlock` and `lock`
    /// release and acquire the caller's mutex, which is held before and after. Returns whether the
    /// caller was notified; it is not woken otherwise. A notification after the deadline counts, if
    /// it comes before the thread runs again. A caller that was notified, and can't use that, must
    /// pass it on with [`notify_one`](Self::notify_one).
    ///
    /// # Panics
    ///
    /// If an action of a message calls it, or `unlock` moves the thread to another CPU.
    pub fn wait(
        &self,
        deadline_ns: Option<u64>,
        unlock: impl FnOnce(),
        lock: impl FnOnce(),
    ) -> bool {
        assert!(!this().in_interrupt.get(), "an action of a message can't wait");
        let was_notified = self.0.wait(&Metal, deadline_ns, unlock);
        lock();
        was_notified
    }

    /// Notifies all waiters. The condition was changed with the mutex held since the waiter checked
    /// it; otherwise a waiter may miss the notification. An action of a message must not take a
    /// lock, so it can only pass a notification on, or hurry waiters that have a deadline.
    ///
    /// It may interrupt CPUs without waiters, once each; and interrupts are off while a CPU looks
    /// at all its waiters.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all(&Metal);
    }

    /// Notifies the waiters of one CPU: at least one waiter, if any waits. Returns whether there
    /// was one. It is the first CPU after the caller's that has waiters, by number and not by age,
    /// so another one may starve. The condition was changed as for
    /// [`notify_all`](Self::notify_all), and an action of a message can do no more here.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.0.notify_one(&Metal)
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: each CPU has its list, which only this module accesses, with the CPU's interrupts off;
// `schedule::wake` does not. `thread::bind` refuses to move a thread that waits.
unsafe impl Threads for Metal {
    type Thread = &'static Thread;
    type Deadline = u64;

    const NOTIFY: u8 = vectors::NOTIFY;

    #[inline]
    fn number(&self) -> usize {
        cpu::number() as usize
    }

    #[inline]
    fn numbers(&self) -> usize {
        cpu::count() as usize
    }

    #[inline]
    fn cpu(&self, number: usize) -> &'static Cpu {
        cpu::get(number as u32)
    }

    #[inline]
    unsafe fn waiters(&self) -> &mut Waiters<Self, &'static Thread> {
        // SAFETY: the caller's promise.
        unsafe { &mut *this().waiters.get() }
    }

    #[inline]
    fn running(&self) -> &'static Thread {
        cpu::current()
    }

    #[inline]
    fn sleep(&self, deadline_ns: Option<u64>) -> bool {
        schedule::sleep(&cpu::current().token, deadline_ns)
            || deadline_ns.is_none_or(|at_ns| clock::now_ns() < at_ns)
    }

    #[inline]
    fn wake(&self, thread: &'static Thread) {
        schedule::wake(&thread.token, || thread);
    }
}

/// Returns whether a thread of this CPU waits. Interrupts are off.
pub(super) fn waits(thread: &Thread) -> bool {
    // SAFETY: interrupts are off.
    unsafe { Metal.waiters() }.iter().any(|other| core::ptr::eq(other, thread))
}

/// Handles the interrupt of a notification.
pub(crate) extern "C" fn interrupt() {
    apic::end_of_interrupt();
    // SAFETY: interrupts are off in a handler.
    unsafe { condvar::handle(&Metal) };
}
