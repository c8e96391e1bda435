//! Waking threads on their CPUs: a kick for a CPU that is halted, and none for others.
//!
//! - KICK-1: a sender that has replaced `HALTED` of an inbox, or `LAST` of a token, sends the
//!   interrupt before it runs other code: interrupts are off from the first exchange of a batch to
//!   its last command. Other senders rely on that interrupt (INBOX-2, TOKEN-3).
//! - KICK-2: each CPU that must be is interrupted: by a command of its own, or by one to all other
//!   CPUs, which does nothing to a CPU that runs.
//! - KICK-3: a CPU sends itself none: it reads its inbox before it halts, and looks at the token
//!   after, even if a handler of its own has woken the thread.

use core::mem::MaybeUninit;
use core::slice;

use antiphon_platform::Atomics;

use crate::inbox::{Inbox, Linked, Wake};
use crate::machine::Machine;
use crate::token::{self, Woken};

/// A good number of CPUs to interrupt one by one at most: their names are on the stack meanwhile.
pub const MOST: usize = 256;

/// The place of a thread that is woken.
pub struct Home<'a, M: Machine, T: Linked<Words = M::Words>> {
    /// Its CPU.
    pub cpu: M::Cpu,
    /// The inbox of that CPU.
    pub inbox: &'a Inbox<T>,
}

impl<M: Machine, T: Linked<Words = M::Words>> Home<'_, M, T> {
    /// Puts a thread in. Returns its CPU if it must be interrupted; interrupts stay off until that
    /// is done.
    ///
    /// # Safety
    ///
    /// See [`Inbox::put`].
    #[inline]
    unsafe fn put(self, machine: &M, thread: *const T) -> Option<M::Cpu> {
        // SAFETY: the caller's promise.
        let wake = unsafe { self.inbox.put(thread) };
        if wake == Wake::Interrupt { self.unless_own(machine) } else { None }
    }

    /// Returns the CPU, unless it is the caller's (KICK-3).
    #[inline]
    fn unless_own(&self, machine: &M) -> Option<M::Cpu> {
        (!machine.is_current(self.cpu)).then_some(self.cpu)
    }
}

/// Makes a new thread runnable at home. What the caller did before is seen by the thread.
///
/// # Safety
///
/// The thread is asleep on no token, and the rest is as for [`Inbox::put`].
#[inline]
pub unsafe fn make_runnable<M, T>(machine: &M, home: Home<'_, M, T>, thread: *const T)
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

/// Ends the sleep of a token's sleeper. Returns its CPU if that must be interrupted.
///
/// # Safety
///
/// See [`wake`].
#[inline]
unsafe fn end_sleep<'a, M, T>(
    machine: &M,
    token: &<M::Words as Atomics>::U32,
    sleeper: impl FnOnce() -> (Home<'a, M, T>, *const T),
) -> Option<M::Cpu>
where
    M: Machine + 'a,
    T: Linked<Words = M::Words> + 'a,
{
    match token::wake(token) {
        Woken::No => None,
        Woken::Last => sleeper().0.unless_own(machine),
        Woken::Asleep => {
            let (home, thread) = sleeper();
            // SAFETY: the caller's promise; TOKEN-2: no other puts it anywhere.
            unsafe { home.put(machine, thread) }
        }
    }
}

/// Ends the present or next sleep of a thread on this token. What the caller did before is seen by
/// the thread. `sleeper` returns the thread; it is called only if the thread sleeps.
///
/// # Safety
///
/// - The token says that its sleeper sleeps only while the thread that `sleeper` returns is in no
///   inbox, no list that was taken out, and no run queue: only this crate writes the token, the
///   functions of [`token`] are called as each of them says, and only the code to which they give a
///   sleeper makes it runnable.
/// - A thread that sleeps is neither moved nor borrowed exclusively until it runs, and is not freed
///   until each call that may have found its sleep has returned.
/// - The words keep what was stored.
#[inline]
pub unsafe fn wake<'a, M, T>(
    machine: &M,
    token: &<M::Words as Atomics>::U32,
    sleeper: impl FnOnce() -> (Home<'a, M, T>, *const T),
) where
    M: Machine + 'a,
    T: Linked<Words = M::Words> + 'a,
{
    // KICK-1.
    machine.without_interrupts(|| {
        // SAFETY: the caller's promise.
        if let Some(cpu) = unsafe { end_sleep(machine, token, sleeper) } {
            machine.interrupt(cpu, M::KICK);
        }
    });
}

/// Wakes the sleepers of several tokens, in that order, and then interrupts their CPUs with as few
/// commands as possible: one to all others if at least half of those need it, because a kick does
/// nothing to a CPU that runs; otherwise [`Machine::interrupt_several`]. More than `N` are
/// interrupted with all others; see [`MOST`].
///
/// # Safety
///
/// As [`wake`], for each of them.
pub unsafe fn wake_all<'a, M, T, F, const N: usize>(
    machine: &M,
    sleepers: impl Iterator<Item = (&'a <M::Words as Atomics>::U32, F)>,
) where
    M: Machine + 'a,
    T: Linked<Words = M::Words> + 'a,
    F: FnOnce() -> (Home<'a, M, T>, *const T),
{
    // KICK-1.
    machine.without_interrupts(|| {
        let mut kicks = Kicks::<M, N>::new();
        for (token, sleeper) in sleepers {
            // SAFETY: the caller's promise.
            if let Some(cpu) = unsafe { end_sleep(machine, token, sleeper) } {
                kicks.add(cpu);
            }
        }
        kicks.send(machine, M::KICK);
    });
}

/// Returns whether `count` CPUs are interrupted by one command to all `others`: if they are at
/// least half of those.
#[inline]
pub(crate) fn is_for_all(count: usize, others: usize) -> bool {
    count > 1 && 2 * count >= others
}

/// The CPUs that a batch must interrupt.
pub(crate) struct Kicks<M: Machine, const N: usize> {
    /// The first `count` were written.
    cpus: [MaybeUninit<M::Cpu>; N],
    count: usize,
}

impl<M: Machine, const N: usize> Kicks<M, N> {
    #[inline]
    pub(crate) fn new() -> Self {
        // No zeros are written, which would take as long as some kicks.
        Self { cpus: [const { MaybeUninit::uninit() }; N], count: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, cpu: M::Cpu) {
        if let Some(place) = self.cpus.get_mut(self.count) {
            place.write(cpu);
        }
        self.count += 1;
    }

    /// Sends the interrupts (KICK-2).
    #[inline]
    pub(crate) fn send(&self, machine: &M, signal: M::Signal) {
        if self.count > N || is_for_all(self.count, machine.others()) {
            machine.interrupt_others(signal);
        } else {
            // SAFETY: `add` has written the first `count`, of which there are no more than these.
            let cpus = unsafe { slice::from_raw_parts(self.cpus.as_ptr().cast(), self.count) };
            machine.interrupt_several(cpus, signal);
        }
    }
}
