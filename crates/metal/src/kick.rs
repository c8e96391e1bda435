//! How a thread is made runnable: it is put into the inbox of its CPU, which is interrupted if it
//! has halted.
//!
//! - KICK-1: a sender that has replaced `HALTED` in an inbox sends the interrupt before it runs
//!   other code: interrupts are off from the first thread of a batch to its last command. Other
//!   senders rely on that interrupt, and code that ran before it could wait for the thread.
//! - KICK-2: each CPU whose `HALTED` was replaced is interrupted: by a command of its own, or by
//!   one to all other CPUs, which does nothing to a CPU that runs.
//! - KICK-3: a CPU does not interrupt itself: a handler that puts a thread into the inbox of its
//!   own CPU has ended the halt.

use core::mem::MaybeUninit;

use crate::inbox::Wake;
use crate::scheduler::Kernel;

/// Puts a thread into the inbox of its CPU. Returns that CPU if it must be interrupted; interrupts
/// stay off until the caller has done that (KICK-1).
///
/// # Safety
///
/// Only the caller may put the thread somewhere (RUN-1).
#[inline]
unsafe fn put<K: Kernel>(kernel: &K, thread: *const K::Thread) -> Option<K::Cpu> {
    let cpu = kernel.cpu_of(thread);
    // SAFETY: the caller's promise. Threads are never freed.
    let wake = unsafe { kernel.inbox(cpu).put(thread) };
    // KICK-3.
    (wake == Wake::Interrupt && !kernel.is_this(cpu)).then_some(cpu)
}

/// Makes a thread that is in no place runnable on its CPU.
///
/// # Safety
///
/// Only the caller may put the thread somewhere (RUN-1).
#[inline]
pub unsafe fn make_runnable<K: Kernel>(kernel: &K, thread: *const K::Thread) {
    // KICK-1.
    kernel.without_interrupts(|| {
        // SAFETY: the caller's promise.
        if let Some(cpu) = unsafe { put(kernel, thread) } {
            kernel.kick(cpu);
        }
    });
}

/// Makes threads that are in no place runnable, in that order, and then interrupts their CPUs, with
/// as few commands as possible. `MOST` is the largest number of CPUs that are interrupted one by
/// one.
///
/// # Safety
///
/// As for [`make_runnable`], of each thread when it is named.
pub unsafe fn make_all_runnable<K: Kernel, const MOST: usize>(
    kernel: &K,
    threads: impl Iterator<Item = *const K::Thread>,
) {
    // KICK-1.
    kernel.without_interrupts(|| {
        let mut kicks = Kicks::<K::Cpu, MOST>::new();
        // SAFETY: the caller's promise.
        threads.filter_map(|thread| unsafe { put(kernel, thread) }).for_each(|cpu| kicks.add(cpu));
        kicks.send(kernel);
    });
}

/// The CPUs that a batch must interrupt.
struct Kicks<C, const MOST: usize> {
    /// The first `count` were written.
    cpus: [MaybeUninit<C>; MOST],
    count: usize,
}

impl<C: Copy, const MOST: usize> Kicks<C, MOST> {
    #[inline]
    fn new() -> Self {
        // No zeros are written, which would take as long as some kicks.
        Self { cpus: [const { MaybeUninit::uninit() }; MOST], count: 0 }
    }

    /// Adds a CPU that must be interrupted.
    #[inline]
    fn add(&mut self, cpu: C) {
        if let Some(place) = self.cpus.get_mut(self.count) {
            place.write(cpu);
        }
        self.count += 1;
    }

    /// Sends the interrupts (KICK-2). One command goes to all other CPUs if at least half of them
    /// need one.
    #[inline]
    fn send<K: Kernel<Cpu = C>>(&self, kernel: &K) {
        if self.count > MOST || self.count > 1 && 2 * self.count >= kernel.others() {
            kernel.kick_others();
        } else {
            // SAFETY: `add` has written the first `count`, of which there are no more than these.
            let cpu = |place: &MaybeUninit<C>| unsafe { place.assume_init() };
            kernel.kick_each(self.cpus.iter().take(self.count).map(cpu));
        }
    }
}
