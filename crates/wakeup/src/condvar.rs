//! A condition variable whose waiters stand in lists of their own CPUs, for threads that stay on
//! their CPU while they wait.
//!
//! A waker of another CPU's thread moves lines of that thread to itself and back, for one thread
//! after the other. Here a notifier touches no waiter: it takes bits out of a word, and interrupts
//! the CPUs whose bits it has taken: all others by one command, if at least half of them have
//! waiters. Each of them wakes its own threads. Listing, giving up and handling an interrupt look
//! at all waiters of the CPU, with interrupts off.
//!
//! | what | contents | written by |
//! |---|---|---|
//! | a condition variable's bit of a CPU | whether its list has waiters for it | it, notifiers |
//! | a CPU's list | its waiters, for all condition variables | it, with interrupts off |
//!
//! ```text
//!  CPU of the waiter                             bit     notifier, on any CPU
//!  is listed, sets the bit                      0 → 1
//!  unlocks its mutex, sleeps
//!                                               1 → 0    takes bits, interrupts their CPUs
//!  interrupt: wakes all whose bit is clear
//! ```
//!
//! - PERCPU-1 (no lost wake-up): a waiter is listed, and its bit is set, before its mutex is
//!   released. A notifier that has had the mutex since then takes the bit, or finds that another
//!   has taken it since the waiter was listed.
//! - PERCPU-2: a notifier that has taken a bit interrupts its CPU before it runs other code:
//!   interrupts are off meanwhile. Other notifiers rely on that interrupt. On its own CPU it wakes
//!   the waiters itself.
//! - PERCPU-3: a CPU's bit is set while its list has waiters that were not notified, and only then.
//!   A waiter that finds the bit clear wakes those that are listed, and then sets it; the last one
//!   that gives up clears it. So there is a waiter behind each bit that
//!   [`notify_one`](Condvar::notify_one) takes.
//! - PERCPU-4 (no spurious wake): a CPU wakes those of its waiters whose bit is clear, and no
//!   others: a notifier has cleared it since they were listed, or while they were being listed. In
//!   the second case its change may be one that the waiter has seen. A CPU wakes
//!   all of these: the unit of a notification is a CPU.
//! - PERCPU-5: a waiter that gives up, but whose bit was taken, was notified.
//! - PERCPU-6: a list is accessed by its CPU only, with interrupts off, and a waiter has left it
//!   when its wait returns. So a waiter is on the stack of its thread, and no condition variable is
//!   dropped while one is listed.
//!
//! An interrupt names no condition variable, so that any number of them shares one vector: its
//! handler looks at the words for which threads of its CPU wait. Interrupts that are merged lose
//! nothing, because the bits say what is to be done.

use core::cell::Cell;
use core::mem;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Atomics};

use crate::kick::{Kicks, is_for_all};
use crate::machine::Machine;

const BITS: usize = u64::BITS as usize;

/// A kernel's threads, as its condition variables see them. Functions that name no CPU are about
/// the caller's.
///
/// # Safety
///
/// - [`waiters`](Self::waiters) returns the list of the caller's CPU, which no other code accesses.
///   `without_interrupts` keeps handlers of that CPU out that notify or [`handle`], and
///   [`wake`](Self::wake) does neither.
/// - A thread whose [`wait`](Condvar::wait) has not returned stays on its CPU, also while it runs
///   the caller's `unlock`.
/// - The words keep what was stored.
pub unsafe trait Threads: Machine {
    /// A thread.
    type Thread: Copy;
    /// A time at which a wait ends.
    type Deadline: Copy;

    /// The signal whose handler calls [`handle`].
    const NOTIFY: Self::Signal;

    /// Returns the number of the CPU.
    fn number(&self) -> usize;
    /// Returns a number that is above those of all CPUs.
    fn numbers(&self) -> usize;
    /// Returns the CPU with this number.
    fn cpu(&self, number: usize) -> Self::Cpu;
    /// Returns the list of the CPU.
    ///
    /// # Safety
    ///
    /// Interrupts are off, and the caller has no other reference to it.
    #[expect(clippy::mut_from_ref, reason = "a CPU is named by a shared reference everywhere")]
    unsafe fn waiters(&self) -> &mut Waiters<Self::Words, Self::Thread>;

    /// Returns the calling thread.
    fn running(&self) -> Self::Thread;
    /// Sleeps until the calling thread is woken, or until the deadline; may return spuriously. A
    /// wake that comes first ends the next sleep. Returns `false` if the deadline has passed.
    fn sleep(&self, deadline: Option<Self::Deadline>) -> bool;
    /// Wakes a thread of this CPU. Called with interrupts off, while the list is borrowed.
    fn wake(&self, thread: Self::Thread);
}

/// The bits of 64 CPUs, on cache lines of their own.
#[repr(align(128))]
struct Group<A: Atomics>(A::U64);

/// A condition variable for the threads of up to `64 * WORDS` CPUs.
pub struct Condvar<A: Atomics, const WORDS: usize>([Group<A>; WORDS]);

/// A waiter. Only its CPU accesses it, with interrupts off.
struct Waiter<A: Atomics, T> {
    /// The word of the condition variable that has the CPU's bit, and that bit.
    word: *const A::U64,
    bit: u64,
    thread: T,
    is_listed: Cell<bool>,
    next: Cell<*const Self>,
}

/// The waiters of a CPU, in the order in which they came.
pub struct Waiters<A: Atomics, T> {
    first: *const Waiter<A, T>,
    last: *const Waiter<A, T>,
}

/// A waiter that is listed; it leaves the list when this is dropped.
struct Listed<'a, K: Threads> {
    kernel: &'a K,
    waiter: &'a Waiter<K::Words, K::Thread>,
}

impl<A: Atomics, const WORDS: usize> Condvar<A, WORDS> {
    /// A condition variable that no thread waits for.
    pub const NEW: Self = Self([const { Group(A::U64::ZERO) }; WORDS]);

    /// Waits until notified, or until `deadline`. `unlock` releases the caller's mutex, which is
    /// not acquired again. Returns whether the caller was notified (PERCPU-5), also if that was
    /// after the deadline, but before the thread ran again. A caller that was notified, and can't
    /// use that, must pass it on with [`notify_one`](Self::notify_one). What the notifier did
    /// before happens before the return.
    ///
    /// # Panics
    ///
    /// If the number of the CPU is too large.
    pub fn wait<K>(&self, kernel: &K, deadline: Option<K::Deadline>, unlock: impl FnOnce()) -> bool
    where
        K: Threads<Words = A>,
    {
        let own = kernel.number();
        let waiter = Waiter {
            word: &raw const self.0[own / BITS].0,
            bit: 1 << (own % BITS),
            thread: kernel.running(),
            is_listed: Cell::new(false),
            next: Cell::new(ptr::null()),
        };
        // PERCPU-1: before the mutex is released.
        let listed = Listed::new(kernel, &waiter);
        unlock();
        // Before the first sleep, too: `unlock` may have slept, which uses a wake up.
        while !listed.is_over() {
            if !kernel.sleep(deadline) {
                return listed.give_up();
            }
        }
        mem::forget(listed);
        true
    }

    /// Notifies all waiters. The condition was changed with the mutex held since the waiter checked
    /// it; otherwise a waiter may miss the notification (PERCPU-1).
    ///
    /// If it finds bits of at least half of the other CPUs, it interrupts all of them by one
    /// command. So it may interrupt CPUs in vain, once each: the count includes the caller's bit,
    /// and may be older than the exchange. Otherwise it interrupts each CPU whose bit it has taken,
    /// by [`Machine::interrupt_several`] for 64 of them.
    pub fn notify_all<K>(&self, kernel: &K)
    where
        K: Threads<Words = A>,
    {
        // PERCPU-2.
        kernel.without_interrupts(|| {
            let words = self.words(kernel);
            // Relaxed, here and below: PERCPU-1: the mutex orders.
            let bits = words.iter().map(|word| word.0.load(Relaxed).count_ones() as usize);
            // How many there are decides only how they are interrupted: bits may be set meanwhile.
            let count = bits.sum();
            if count == 0 {
                return;
            }
            let at_once = is_for_all(count, kernel.others());
            let own = kernel.number();
            let mut is_own = false;
            for (index, word) in words.iter().enumerate().filter(|(_, it)| it.0.load(Relaxed) != 0)
            {
                // Release: the notifier's past; pairs with the acquires in `is_notified` and
                // `leave`.
                let mut told = word.0.swap(0, Release);
                if index == own / BITS {
                    is_own = told >> (own % BITS) & 1 == 1;
                    told &= !(1 << (own % BITS));
                }
                if !at_once {
                    interrupt_each(kernel, index * BITS, told);
                }
            }
            if at_once {
                kernel.interrupt_others(K::NOTIFY);
            }
            if is_own {
                // SAFETY: interrupts are off.
                unsafe { handle(kernel) };
            }
        });
    }

    /// Notifies the waiters of one CPU, which is at least one waiter if any waits: of the first CPU
    /// after the caller's that has waiters, by number and not by age. So a CPU may starve, if those
    /// before it wait again and again. Returns whether there was one; if not, all waiters so far
    /// have been notified. The condition was changed as for [`notify_all`](Self::notify_all).
    pub fn notify_one<K>(&self, kernel: &K) -> bool
    where
        K: Threads<Words = A>,
    {
        // PERCPU-2.
        kernel.without_interrupts(|| {
            let own = kernel.number();
            let Some(number) = claim(self.words(kernel), own) else { return false };
            if number == own {
                // SAFETY: interrupts are off.
                unsafe { handle(kernel) };
            } else {
                kernel.interrupt(kernel.cpu(number), K::NOTIFY);
            }
            true
        })
    }

    /// The words that have a bit of a CPU.
    fn words<K: Threads>(&self, kernel: &K) -> &[Group<A>] {
        &self.0[..kernel.numbers().div_ceil(BITS).clamp(1, WORDS)]
    }
}

/// Takes the bit of a CPU, the first after `own` that is set; that of `own` comes last.
fn claim<A: Atomics>(words: &[Group<A>], own: usize) -> Option<usize> {
    let above = !0 << (own % BITS) << 1;
    (0..=words.len()).find_map(|turn| {
        let index = (own / BITS + turn) % words.len();
        let among = match turn {
            0 => above,
            last if last == words.len() => !above,
            _ => !0,
        };
        claim_in(&words[index], among).map(|bit| index * BITS + bit)
    })
}

/// Takes the lowest bit among these.
fn claim_in<A: Atomics>(word: &Group<A>, among: u64) -> Option<usize> {
    // Relaxed: PERCPU-1: the mutex orders.
    let mut seen = word.0.load(Relaxed) & among;
    while seen != 0 {
        let bit = seen & seen.wrapping_neg();
        // Release: as in `notify_all`.
        let before = word.0.fetch_and(!bit, Release);
        if before & bit != 0 {
            return Some(bit.trailing_zeros() as usize);
        }
        seen = before & among;
    }
    None
}

/// Interrupts the CPUs of these bits; the first is that of CPU `first`.
#[inline]
fn interrupt_each<K: Threads>(kernel: &K, first: usize, told: u64) {
    let mut kicks = Kicks::<K, BITS>::new();
    let mut left = told;
    while left != 0 {
        kicks.add(kernel.cpu(first + left.trailing_zeros() as usize));
        left &= left - 1;
    }
    kicks.send(kernel, K::NOTIFY);
}

/// Wakes the waiters of the caller's CPU that were notified: the handler of [`Threads::NOTIFY`].
///
/// # Safety
///
/// Interrupts are off.
#[inline]
pub unsafe fn handle<K: Threads>(kernel: &K) {
    // SAFETY: the caller's promise; `wake` does not access the list.
    unsafe { kernel.waiters() }.sweep(|thread| kernel.wake(thread));
}

impl<A: Atomics, T: Copy> Waiter<A, T> {
    /// The word of the condition variable.
    #[inline]
    fn word(&self) -> &A::U64 {
        // SAFETY: the wait has borrowed the condition variable, and has not returned.
        unsafe { &*self.word }
    }

    #[inline]
    fn is_notified(&self) -> bool {
        // Acquire: the notifier's past; pairs with the releases in `notify_all` and `claim_in`.
        self.word().load(Acquire) & self.bit == 0
    }
}

impl<A: Atomics, T: Copy> Waiters<A, T> {
    /// The list of a CPU without waiters.
    pub const NEW: Self = Self { first: ptr::null(), last: ptr::null() };

    /// Returns the threads that wait.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        let mut at = self.first;
        core::iter::from_fn(move || {
            // SAFETY: PERCPU-6: a waiter that is listed exists.
            let waiter = unsafe { at.as_ref() }?;
            at = waiter.next.get();
            Some(waiter.thread)
        })
    }

    /// Adds a waiter at the end.
    ///
    /// # Safety
    ///
    /// The waiter is in no list, and leaves this one before it is dropped or moves.
    #[inline]
    unsafe fn push(&mut self, waiter: &Waiter<A, T>) {
        waiter.next.set(ptr::null());
        // SAFETY: PERCPU-6.
        match unsafe { self.last.as_ref() } {
            None => self.first = waiter,
            Some(last) => last.next.set(waiter),
        }
        self.last = waiter;
    }

    /// Takes all waiters out, and those that `keeps` in again.
    #[inline]
    fn retain(&mut self, mut keeps: impl FnMut(&Waiter<A, T>) -> bool) {
        let mut at = self.first;
        *self = Self::NEW;
        // SAFETY: PERCPU-6.
        while let Some(waiter) = unsafe { at.as_ref() } {
            at = waiter.next.get();
            if keeps(waiter) {
                // SAFETY: PERCPU-6: it was taken out above.
                unsafe { self.push(waiter) };
            } else {
                waiter.is_listed.set(false);
            }
        }
    }

    /// Wakes the waiters that were notified (PERCPU-4).
    #[inline]
    fn sweep(&mut self, mut wake: impl FnMut(T)) {
        self.retain(|waiter| {
            let is_notified = waiter.is_notified();
            if is_notified {
                wake(waiter.thread);
            }
            !is_notified
        });
    }

    /// Takes a waiter out that gives up; returns whether it was notified.
    fn leave(&mut self, waiter: &Waiter<A, T>) -> bool {
        let mut others = false;
        self.retain(|other| {
            let is_other = !ptr::eq(other, waiter);
            others |= is_other && ptr::eq(other.word, waiter.word);
            is_other
        });
        if others {
            return waiter.is_notified();
        }
        // PERCPU-3. Acquire: as in `is_notified`.
        waiter.word().fetch_and(!waiter.bit, Acquire) & waiter.bit == 0
    }
}

impl<'a, K: Threads> Listed<'a, K> {
    fn new(kernel: &'a K, waiter: &'a Waiter<K::Words, K::Thread>) -> Self {
        kernel.without_interrupts(|| {
            // Relaxed: only whether this CPU must set it; `sweep` acquires.
            if waiter.word().load(Relaxed) & waiter.bit == 0 {
                // PERCPU-3: they were notified.
                // SAFETY: interrupts are off.
                unsafe { handle(kernel) };
                // Relaxed: PERCPU-1: the mutex orders.
                waiter.word().fetch_or(waiter.bit, Relaxed);
            }
            waiter.is_listed.set(true);
            // SAFETY: interrupts are off. PERCPU-6: `is_over` or `drop` sees it leave.
            unsafe { kernel.waiters().push(waiter) };
        });
        Self { kernel, waiter }
    }

    /// Returns whether the waiter was notified, and so is not listed any more.
    #[inline]
    fn is_over(&self) -> bool {
        self.kernel.without_interrupts(|| !self.waiter.is_listed.get())
    }

    /// Takes the waiter out; returns whether it was notified before (PERCPU-5).
    fn give_up(self) -> bool {
        let was_notified = self.leave();
        mem::forget(self);
        was_notified
    }

    fn leave(&self) -> bool {
        self.kernel.without_interrupts(|| {
            // SAFETY: interrupts are off.
            !self.waiter.is_listed.get() || unsafe { self.kernel.waiters() }.leave(self.waiter)
        })
    }
}

impl<K: Threads> Drop for Listed<'_, K> {
    /// For a caller whose `unlock` panics.
    fn drop(&mut self) {
        let _ = self.leave();
    }
}
