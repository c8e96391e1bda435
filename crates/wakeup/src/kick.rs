//! Making threads runnable on their CPUs: a kick for a CPU that is halted, and none for others.
//!
//! - KICK-1: a sender that has replaced `HALTED` sends the interrupt before it runs other code:
//!   interrupts are off from the first thread of a batch to its last command. Other senders rely
//!   on that interrupt (INBOX-2).
//! - KICK-2: a CPU sends itself none: it reads its inbox before it halts, even if a handler of its
//!   own has put the thread in.

use core::mem::MaybeUninit;
use core::slice;

use crate::inbox::{Inbox, Linked, Wake};
use crate::machine::Machine;

/// The most CPUs that are interrupted together: more are interrupted with all others.
const MOST_KICKS: usize = 256;

/// The place of a thread that is woken.
pub struct Home<'a, M: Machine> {
    /// Its CPU.
    pub cpu: M::Cpu,
    /// The inbox of that CPU.
    pub inbox: &'a Inbox<M::Words>,
}

impl<M: Machine> Home<'_, M> {
    /// Puts a thread in. Returns its CPU if it must be interrupted; interrupts stay off until that
    /// is done.
    ///
    /// # Safety
    ///
    /// See [`Inbox::put`].
    #[inline]
    unsafe fn put<T>(self, machine: &M, thread: *const T) -> Option<M::Cpu>
    where
        T: Linked<Words = M::Words>,
    {
        // SAFETY: the caller's promise.
        let wake = unsafe { self.inbox.put(thread) };
        // KICK-2.
        (wake == Wake::Interrupt && !machine.is_current(self.cpu)).then_some(self.cpu)
    }
}

/// Makes a thread that is asleep, or new, runnable at home. What the caller did before is seen by
/// the thread.
///
/// # Safety
///
/// The caller alone may put the thread anywhere: it is new, or the caller has taken its
/// [token](crate::token) away from `ASLEEP`. The thread neither moves nor is freed until it runs.
#[inline]
pub unsafe fn make_runnable<M, T>(machine: &M, home: Home<'_, M>, thread: *const T)
where
    M: Machine,
    T: Linked<Words = M::Words>,
{
    // KICK-1.
    machine.without_interrupts(|| {
        // SAFETY: the caller's promise.
        if let Some(cpu) = unsafe { home.put(machine, thread) } {
            machine.interrupt(cpu, M::KICK);
        }
    });
}

/// Makes threads runnable, in that order, and then interrupts their CPUs with as few commands as
/// possible: one to all others if at least half of those need it, because a kick does nothing to a
/// CPU that runs; otherwise [`Machine::interrupt_several`].
///
/// # Safety
///
/// As [`make_runnable`], for each thread.
pub unsafe fn make_all_runnable<'a, M, T>(
    machine: &M,
    threads: impl Iterator<Item = (Home<'a, M>, *const T)>,
) where
    M: Machine + 'a,
    T: Linked<Words = M::Words>,
{
    // KICK-1.
    machine.without_interrupts(|| {
        let mut kicks = Kicks::<M>::new();
        for (home, thread) in threads {
            // SAFETY: the caller's promise.
            if let Some(cpu) = unsafe { home.put(machine, thread) } {
                kicks.add(cpu);
            }
        }
        kicks.send(machine);
    });
}

/// The CPUs that a batch must interrupt.
struct Kicks<M: Machine> {
    /// The first `count` were written.
    cpus: [MaybeUninit<M::Cpu>; MOST_KICKS],
    count: usize,
}

impl<M: Machine> Kicks<M> {
    #[inline]
    fn new() -> Self {
        // No zeros are written, which would take as long as some kicks.
        Self { cpus: [const { MaybeUninit::uninit() }; MOST_KICKS], count: 0 }
    }

    #[inline]
    fn add(&mut self, cpu: M::Cpu) {
        if let Some(place) = self.cpus.get_mut(self.count) {
            place.write(cpu);
        }
        self.count += 1;
    }

    #[inline]
    fn send(&self, machine: &M) {
        if self.count > MOST_KICKS || self.count > 1 && 2 * self.count >= machine.others() {
            machine.interrupt_others(M::KICK);
        } else {
            // SAFETY: `add` has written the first `count`, of which there are no more than these.
            let cpus = unsafe { slice::from_raw_parts(self.cpus.as_ptr().cast(), self.count) };
            machine.interrupt_several(cpus, M::KICK);
        }
    }
}
