//! A condition variable whose broadcast is one interrupt, whatever the number of waiters: each CPU
//! wakes its own threads.
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
    /// caller was notified before the deadline; it is not woken otherwise.
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
        let was_notified = self.0.wait(&Metal, deadline_ns, unlock);
        lock();
        was_notified
    }

    /// Notifies all waiters. An action of a message may call it.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all(&Metal);
    }

    /// Notifies the waiters of one CPU: at least one waiter, if any waits. Returns whether there
    /// was one. An action of a message may call it.
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
