//! The scheduler: run queues, sleeps, the timer, idle CPUs.
//!
//! A CPU runs the threads that are bound to it, in the order in which they became runnable, each
//! until it waits, yields or ends, or its time slice is over. Only the CPU itself accesses its run
//! queue and its deadlines, with interrupts off. Another CPU that makes a thread runnable puts it
//! into the [inbox](crate::inbox), and interrupts the CPU only if it is halted.
//!
//! - RUN-1: a thread is in one place: running, in a run queue, in an inbox, or asleep; only the
//!   code that moves its token away from `ASLEEP` puts a sleeping thread elsewhere.
//! - RUN-2: a thread that leaves its CPU may be in the inbox of that CPU before it has left: the
//!   CPU reads the inbox after it has saved the thread's registers. Only `AfterSwitch::Send` puts a
//!   thread into another CPU's inbox, and the thread that runs next does that.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_wakeup::kick::{self, Home};

use super::cpu::{self, Cpu, this};
use super::state::{AfterSwitch, Scheduler, Sleeper, Thread, Token};
use super::thread;
use super::wake;
use crate::metal::Metal;
use crate::token;
use crate::x86::cpu::{
    cpuid, halt_with_interrupts, restore, watch_with_interrupts, without_interrupts,
};
use crate::x86::{apic, clock, context};

/// How an idle CPU waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Idle {
    /// It halts, and an interrupt wakes it.
    Halt = 0,
    /// It watches its inbox (MONITOR, MWAIT): a store wakes it.
    Watch = 1,
}

/// Length of a time slice, in nanoseconds; 0 if threads are not preempted.
static SLICE_NS: AtomicU64 = AtomicU64::new(0);
static IDLE: AtomicUsize = AtomicUsize::new(Idle::Halt as usize);

/// Sets the length of time slices, in nanoseconds; with 0, threads run until they wait or yield.
pub fn set_slice_ns(ns: u64) {
    SLICE_NS.store(ns, Relaxed);
}

/// Sets how idle CPUs wait. Returns `false` if the processor can't wait so. CPUs that are halted
/// already stay halted until they are interrupted.
pub fn set_idle(idle: Idle) -> bool {
    const MONITOR: u32 = 1 << 3;
    let can = idle == Idle::Halt || cpuid(1, 0).ecx & MONITOR != 0;
    if can {
        IDLE.store(idle as usize, Relaxed);
    }
    can
}

impl Scheduler {
    /// Moves the threads of the inbox to the run queue.
    #[inline]
    fn collect(&mut self, cpu: &Cpu) {
        // SAFETY: RUN-1: they were in the inbox, and now they are in the queue. Threads are never
        // freed.
        unsafe { self.queue.push_all(cpu.inbox.take()) };
    }

    /// Sets the timer to interrupt at `at_ns`, unless it does so earlier.
    #[inline]
    fn alarm(&mut self, at_ns: u64) {
        if at_ns < self.alarm_ns {
            self.alarm_ns = at_ns;
            clock::set_alarm(at_ns);
        }
    }

    /// Begins the slice of the thread that runs next.
    #[inline]
    fn begin_slice(&mut self) {
        let slice_ns = SLICE_NS.load(Relaxed);
        if slice_ns != 0 {
            self.slice_end_ns = clock::now_ns().saturating_add(slice_ns);
            self.alarm(self.slice_end_ns);
        }
    }
}

/// Returns the scheduler of this CPU.
///
/// # Safety
///
/// `cpu` is the CPU that the caller runs on, interrupts are off, and the caller has no other
/// reference to the scheduler.
#[inline]
#[expect(clippy::mut_from_ref, reason = "the CPU is named by a shared reference everywhere")]
unsafe fn own(cpu: &Cpu) -> &mut Scheduler {
    // SAFETY: by the caller's promise only this CPU accesses it, and this is the only reference.
    unsafe { &mut *cpu.scheduler.get() }
}

/// Switches to the next thread; the caller has put the running one where it belongs. Returns when
/// that runs again, perhaps on another CPU. Interrupts are off.
fn switch_away(cpu: &Cpu) {
    let running = cpu.current();
    let next = {
        // SAFETY: interrupts are off, and the reference ends before the switch.
        let own = unsafe { own(cpu) };
        own.collect(cpu);
        let next = own.queue.pop().unwrap_or(own.idle);
        if next == own.idle {
            own.slice_end_ns = u64::MAX;
        } else {
            own.begin_slice();
        }
        next
    };
    if next == running {
        return;
    }
    cpu.set_current(next);
    // SAFETY: threads are never freed; `next` does not run, and its stack was left by this function
    // or is a prepared one.
    unsafe { context::switch((*running).stack_pointer.get(), *(*next).stack_pointer.get()) };
    after_switch();
}

/// Takes the step that the thread which has left this CPU has asked for. Interrupts are off.
#[inline]
pub(super) fn after_switch() {
    // SAFETY: interrupts are off.
    let after = unsafe { &mut own(this()).after };
    if !matches!(after, AfterSwitch::Nothing) {
        do_for(core::mem::replace(after, AfterSwitch::Nothing));
    }
}

#[cold]
fn do_for(after: AfterSwitch) {
    match after {
        AfterSwitch::Nothing => {}
        AfterSwitch::Reap(thread) => thread::recycle(thread),
        AfterSwitch::Send(thread) => make_runnable(thread),
    }
}

/// Leaves the CPU, and makes the next thread take the step `after`. Interrupts are off.
pub(super) fn leave(after: AfterSwitch) {
    let cpu = this();
    // SAFETY: interrupts are off.
    unsafe { own(cpu).after = after };
    switch_away(cpu);
}

/// Returns the place of a thread that is woken.
#[inline]
fn home(thread: *const Thread) -> Home<'static, Metal> {
    // SAFETY: threads are never freed.
    let cpu = unsafe { (*thread).cpu() };
    Home { cpu, inbox: &cpu.inbox }
}

/// Makes a thread that is asleep, or new, runnable on its CPU.
#[inline]
pub(crate) fn make_runnable(thread: *const Thread) {
    // SAFETY: RUN-1: only the caller may put it elsewhere. Threads are never freed.
    unsafe { kick::make_runnable(&Metal, home(thread), thread) };
}

/// Makes threads that are asleep runnable, in that order, and then interrupts their CPUs, with as
/// few commands as possible.
pub(crate) fn make_all_runnable(threads: impl Iterator<Item = *const Thread>) {
    // SAFETY: as in `make_runnable`.
    unsafe { kick::make_all_runnable(&Metal, threads.map(|thread| (home(thread), thread))) };
}

/// Ends the present or next sleep of the thread on this token.
///
/// `sleeper` returns the thread; it is called only if the thread is asleep.
#[inline]
pub(crate) fn wake(token: &Token, sleeper: impl FnOnce() -> *const Thread) {
    if token::wake(token) {
        make_runnable(sleeper());
    }
}

/// Sleeps until the token is woken, or until `deadline_ns` of the monotonic clock; seldom returns
/// spuriously. Returns whether it was woken.
pub(crate) fn sleep(token: &Token, deadline_ns: Option<u64>) -> bool {
    let cpu = this();
    assert!(!cpu.in_interrupt.get(), "an action of a message can't sleep");
    let were_on = without_interrupts();
    if !token::fall_asleep(token) {
        restore(were_on);
        return true;
    }
    let thread = cpu.current();
    if let Some(at_ns) = deadline_ns {
        // SAFETY: interrupts are off. The alarm belongs to this thread, and is not set, because a
        // thread is in one sleep at a time.
        unsafe {
            let own = own(cpu);
            own.deadlines.set(&raw const (*thread).alarm, at_ns, Sleeper { thread, token });
            own.alarm(at_ns);
        }
    }
    switch_away(cpu);
    if deadline_ns.is_some() {
        // SAFETY: interrupts are off; a thread that sleeps stays on its CPU.
        unsafe { own(this()).deadlines.unset(&(*thread).alarm) };
    }
    restore(were_on);
    token::wake_up(token)
}

/// Lets the runnable threads of this CPU run; returns whether there were any.
pub fn yield_now() -> bool {
    let cpu = this();
    if cpu.in_interrupt.get() {
        return false;
    }
    let were_on = without_interrupts();
    let others = yield_with_interrupts_off(cpu);
    restore(were_on);
    others
}

fn yield_with_interrupts_off(cpu: &Cpu) -> bool {
    let running = cpu.current();
    // SAFETY: interrupts are off.
    let own = unsafe { own(cpu) };
    own.collect(cpu);
    if own.queue.is_empty() {
        return false;
    }
    if running != own.idle {
        // SAFETY: RUN-1: the thread runs, and leaves the CPU below.
        unsafe { own.queue.push(running) };
    }
    switch_away(cpu);
    true
}

/// Handles the interrupt of this CPU's timer.
pub(crate) extern "C" fn timer_interrupt() {
    apic::end_of_interrupt();
    let cpu = this();
    let now_ns = clock::now_ns();
    let is_over = {
        // SAFETY: interrupts are off; the interrupted code has no reference, because it takes one
        // only with interrupts off.
        let own = unsafe { own(cpu) };
        own.alarm_ns = u64::MAX;
        while let Some(sleeper) = own.deadlines.take_due(now_ns) {
            // SAFETY: the token exists as long as the sleep. The sleeper has not returned from it:
            // it unsets its alarm first.
            if token::expire(unsafe { &*sleeper.token }) {
                // SAFETY: RUN-1: this code has moved the token away from `ASLEEP`.
                unsafe { own.queue.push(sleeper.thread) };
            }
        }
        if let Some(at_ns) = own.deadlines.first_ns() {
            own.alarm(at_ns);
        }
        if SLICE_NS.load(Relaxed) == 0 {
            // The slice that was begun before slices were switched off has no end.
            own.slice_end_ns = u64::MAX;
        }
        let is_over = own.slice_end_ns <= now_ns;
        if is_over {
            own.begin_slice();
        } else {
            own.alarm(own.slice_end_ns);
        }
        is_over && cpu.current() != own.idle
    };
    if is_over {
        yield_with_interrupts_off(cpu);
    }
}

/// Sets the idle thread of this CPU.
pub(super) fn set_idle_thread(thread: *const Thread) {
    let were_on = without_interrupts();
    // SAFETY: interrupts are off.
    unsafe { own(this()).idle = thread };
    restore(were_on);
}

/// Makes room for the deadlines of `count` threads of this CPU.
pub(super) fn make_room(count: usize) {
    let were_on = without_interrupts();
    // SAFETY: interrupts are off.
    unsafe { own(this()).deadlines.make_room(count) };
    restore(were_on);
}

/// The loop of this CPU's idle thread: runs other threads, and halts when none is runnable.
/// Interrupts are on only while it is halted.
pub(super) fn idle() -> ! {
    let cpu = this();
    loop {
        switch_away(cpu);
        if IDLE.load(Relaxed) == Idle::Watch as usize {
            // SAFETY: `set_idle` has checked that the processor has the instructions. A store
            // between the check and the watch ends the watch at once.
            cpu.inbox.watch(|word| unsafe {
                watch_with_interrupts(word, || !cpu.inbox.is_empty());
            });
        } else if let Some(tick_ns) = wake::tick_ns() {
            // The inbox does not say that this CPU is halted, so no sender interrupts it.
            // SAFETY: interrupts are off.
            unsafe { own(cpu).alarm(clock::now_ns() + tick_ns) };
            halt_with_interrupts();
        } else {
            cpu.inbox.halt(halt_with_interrupts);
        }
    }
}

/// Halts this CPU, together with the calling thread, until `ready` returns `true`. `ready` is
/// called again after each interrupt, so it does not miss a message that changes its answer.
///
/// Senders don't count the CPU as halted: other threads that become runnable here wait until a time
/// slice ends, or the caller waits or yields.
///
/// # Panics
///
/// If an action of a message calls it.
pub fn halt_until(mut ready: impl FnMut() -> bool) {
    assert!(!this().in_interrupt.get(), "an action of a message can't wait for another");
    let were_on = without_interrupts();
    while !ready() {
        halt_with_interrupts();
    }
    restore(were_on);
}

/// Returns whether other threads of this CPU can run.
#[inline]
pub fn has_others() -> bool {
    let cpu: &Cpu = cpu::this();
    let were_on = without_interrupts();
    // SAFETY: interrupts are off.
    let others = !unsafe { own(cpu) }.queue.is_empty() || !cpu.inbox.is_empty();
    restore(were_on);
    others
}
