//! The host of a thread's fibers: its run queue, its waiting fibers, and the order in which fibers
//! continue.
//!
//! - HOST-1: the state here is changed only while no fiber runs, or while `busy` is set. A signal
//!   handler that wakes fibers posts them, because it may have interrupted a change.

mod answers;
mod below;
mod marks;
mod moves;
pub(super) mod timing;

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_linux::Linux;
use antiphon_linux::stack::{NoStack, Stack, Stacks};
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_runtime::fiber::{self, Line, Ready, Turn, Turns};
use antiphon_runtime::task::{Awaited, Task};
use antiphon_runtime::timer::Wheel;

use super::census::{Desk, Desks};
use super::clocked::Thread as _;
use super::control::{Fiber, Order, Said};
use super::current;
use super::looks::Looks;
use super::polls::Polls;
use super::untold::Untold;
use crate::deadline::PAST;
use crate::local;
use crate::worker::{passes, run};

pub(super) use below::{below, has_ready, may_move, rest, turn, wait_here, wake_beside};
pub(crate) use moves::has_begun;

/// The fibers of one thread. It lies on the thread's stack, and only that thread uses it.
pub(crate) struct Host {
    stacks: Stacks,
    mail: &'static Ready<Linux>,
    /// Whether its fibers move to other threads.
    moves: bool,
    /// The run queue: fibers that may continue, the next at the front.
    ready: Line<Fiber>,
    /// Fibers without a task; the last one used is at the end.
    idle: RefCell<Vec<Fiber>>,
    timers: RefCell<Wheel>,
    /// Set while no task begins, because there was no stack.
    dry: Cell<Option<Dry>>,
    /// The number of waiting fibers.
    waiting: Cell<usize>,
    /// Whether a task has begun since the last time that no fiber was ready.
    began: Cell<bool>,
    /// Whether the lists are being changed while a fiber runs: HOST-1.
    busy: Cell<bool>,
    turns: Turns,
    /// The number of turns in which no fiber was ready, or a fiber only checked its condition and
    /// waits again.
    in_vain: Cell<u32>,
    /// The readings of the clock, at which deadlines are checked. The number of turns to the next
    /// reading is in the desk.
    looks: Looks,
    /// Timed fibers that wait and have not looked at the clock.
    untold: Untold,
    /// The number of stacks given back since the thread last checked how many are free.
    given: Cell<usize>,
    /// All fibers of the thread, each at its own index.
    all: RefCell<Vec<Fiber>>,
    desks: Arc<Desks>,
    desk: Arc<Desk>,
    /// The polls for files that the fibers wait for.
    pub(super) polls: Polls,
}

/// The next act of a thread with fibers.
pub(crate) enum Next {
    /// Begins a task of its own, if it has one; then fibers continue.
    Task,
    /// Begins a task of its own or, if it has none, from elsewhere.
    AnyTask,
    /// Waits: some fibers wait, and none may continue.
    Wait,
    /// Waits, and begins no task, because no stack is available. It tries again at that time, by
    /// the monotonic clock, in nanoseconds.
    Dry(u64),
    /// The thread has no fibers.
    Nothing,
}

/// No stack was available, for the reason `why`; another try is due at `until`, by the monotonic
/// clock, in nanoseconds.
#[derive(Clone, Copy)]
struct Dry {
    until: u64,
    why: NoStack,
}

/// Maximum number of stacks without a task that a thread keeps.
const KEPT: usize = 64;
/// Number of free stacks of a pool that keep their memory, besides those that threads keep.
const HOT: usize = 1024;
/// Number of free stacks that give their memory back at a time: no task begins meanwhile.
const PIECE: usize = 128;
/// Time between two tries of a thread to get a stack, in nanoseconds. A thread that gives a stack
/// back does not notify others.
const NAP_NS: u64 = 1_000_000;
/// Deadlines, if there are any, are checked every 16 turns, when there is nothing else to do, and
/// when the clock is read anyway.
const TIMERS_EVERY: u32 = 16;
/// A deadline by a clock that can be set is checked again after this time, in nanoseconds.
const REALTIME_LOOK_NS: u64 = 1_000_000_000;

/// The mailboxes of threads that have ended: READY-2.
static MAILS: Mutex<Vec<&'static Ready<Linux>>> = Mutex::new(Vec::new());

impl Host {
    /// Creates the host of the calling thread, without fibers.
    ///
    /// A task that occupies the thread for more than `hog_ns` counts as a hog.
    pub(crate) fn new(stacks: Stacks, moves: bool, desks: Arc<Desks>, hog_ns: u64) -> Self {
        let used = MAILS.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mail = used.unwrap_or_else(|| Box::leak(Box::new(Ready::NEW)));
        Self {
            stacks,
            moves,
            mail,
            desk: desks.open(mail),
            desks,
            all: RefCell::default(),
            ready: Line::default(),
            idle: RefCell::default(),
            timers: RefCell::new(Wheel::new()),
            dry: Cell::new(None),
            waiting: Cell::new(0),
            began: Cell::new(false),
            busy: Cell::new(false),
            turns: Turns::new(),
            in_vain: Cell::new(0),
            looks: Looks::new(hog_ns),
            untold: Untold::default(),
            given: Cell::new(0),
            polls: Polls::default(),
        }
    }

    /// Runs a task as a fiber until it waits or is done. If no stack is available and the thread
    /// has no fibers, the task runs on the thread's own stack, and its waits block the thread.
    ///
    /// # Errors
    ///
    /// The task, if no stack is available and a fiber of the thread may give one back. This thread
    /// then begins no task until there is a stack; another thread may have a stack.
    pub(crate) fn run(&self, task: Task<Linux>) -> Result<(), Task<Linux>> {
        self.desk.has_none(false);
        self.began.set(true);
        match self.stack() {
            Ok(fiber) => _ = self.switch(fiber, Order::Run(task)),
            Err(why) if self.has_fibers() => {
                self.dries(why);
                return Err(task);
            }
            Err(_) => run(task),
        }
        Ok(())
    }

    /// Records that no stack is available, so tasks begin later.
    #[cold]
    fn dries(&self, why: NoStack) {
        self.set_dry(Some(Dry { until: now().saturating_add(NAP_NS), why }));
    }

    fn set_dry(&self, dry: Option<Dry>) {
        self.dry.set(dry);
        self.desk.is_dry(dry.is_some());
    }

    /// Returns whether no task may begin, because no stack is available.
    #[cold]
    fn is_dry(&self, Dry { until, .. }: Dry) -> bool {
        if self.idle.borrow().is_empty() {
            if now() < until {
                return true;
            }
            // Try now, before a task is taken that would have to be put back. A fiber that has
            // begun needs no stack.
            if !self.moves {
                match self.stack() {
                    Ok(fiber) => self.idle.borrow_mut().push(fiber),
                    Err(why) => {
                        self.dries(why);
                        return true;
                    }
                }
            }
        }
        self.set_dry(None);
        false
    }

    /// Takes an idle fiber, or makes one.
    fn stack(&self) -> Result<Fiber, NoStack> {
        let idle = self.idle.borrow_mut().pop();
        idle.map_or_else(|| self.stacks.take().map(|stack| self.begin(stack)), Ok)
    }

    /// Makes a fiber on that stack.
    fn begin(&self, stack: Stack) -> Fiber {
        let fiber = Fiber::new(stack, self.mail, self.moves);
        self.list(fiber);
        fiber
    }

    /// Adds the fiber to the list of all fibers of the thread.
    fn list(&self, fiber: Fiber) {
        let mut all = self.all.borrow_mut();
        fiber.get().at.set(all.len());
        all.push(fiber);
    }

    /// Removes the fiber from the list of all fibers of the thread.
    fn unlist(&self, fiber: Fiber) {
        let (at, mut all) = (fiber.get().at.get(), self.all.borrow_mut());
        all.swap_remove(at);
        if let Some(moved) = all.get(at) {
            moved.get().at.set(at);
        }
    }

    /// Ends a fiber.
    ///
    /// # Safety
    ///
    /// The fiber is idle, and on no other list.
    unsafe fn free(&self, fiber: Fiber) {
        self.unlist(fiber);
        // SAFETY: promised by the caller; so no other code uses it any more.
        unsafe { fiber.free() };
    }

    /// Makes this the host of the calling thread.
    pub(crate) fn attach(&self) {
        local::with(|own| own.host.set(Some(NonNull::from(self).cast())));
    }

    /// Resumes fibers that may continue until it is time for something else, and returns the next
    /// act.
    pub(crate) fn go_on(&self) -> Next {
        self.go_on_by(|fiber| self.switch(fiber, Order::GoOn))
    }

    /// As [`go_on`](Self::go_on), but resumes each fiber with `go_on`.
    #[inline(always)]
    fn go_on_by(&self, go_on: impl FnMut(Fiber) -> Turn) -> Next {
        let prepare = || {
            // Relaxed: other threads only compare it.
            self.desk.turn.store(self.turn(), Relaxed);
            self.collect(self.is_look_due());
            let is_dry = self.dry.get().is_some_and(|dry| self.is_dry(dry));
            if is_dry && self.ready.is_empty() {
                let timed = !self.timers.borrow().is_empty();
                self.collect(timed);
                self.poll_if_worth_it();
            }
            !is_dry
        };
        match self.turns.go_on(&self.ready, prepare, go_on) {
            fiber::Next::Nobody => {
                let next =
                    self.dry.get().map_or_else(|| self.nothing_ready(), |dry| Next::Dry(dry.until));
                self.was_in_vain();
                next
            }
            fiber::Next::Task => Next::Task,
            fiber::Next::AnyTask => Next::AnyTask,
        }
    }

    /// Counts the turn as one in which no fiber ran. Called after its questions are answered.
    fn was_in_vain(&self) {
        self.in_vain.set(self.in_vain.get().wrapping_add(1));
    }

    fn nothing_ready(&self) -> Next {
        if self.given.get() >= PIECE {
            self.trim();
            return Next::Task;
        }
        if self.waiting.get() == 0 {
            self.desk.has_none(true);
            return Next::Nothing;
        }
        let (began, timed) = (self.began.take(), !self.timers.borrow().is_empty());
        // If no task has begun, a poll follows anyway.
        self.collect(timed || began && !self.polls.is_idle());
        // There may be another task: files are then polled only when a poll is due.
        if began {
            return Next::Task;
        }
        self.poll_if_worth_it();
        if self.ready.is_empty() { Next::Wait } else { Next::Task }
    }

    /// Polls for files if no fiber may continue and some wait for files.
    fn poll_if_worth_it(&self) {
        if self.ready.is_empty() && self.polls.is_worth_it() {
            self.poll(PAST);
        }
    }

    /// Gives the memory of a few stacks back to the kernel, if many are free.
    #[cold]
    fn trim(&self) {
        let hot = self.stacks.counts().hot;
        self.stacks.trim(hot.saturating_sub(PIECE).max(HOT));
        if hot <= HOT + PIECE {
            self.given.set(0);
        }
    }

    fn has_fibers(&self) -> bool {
        self.waiting.get() > 0 || !self.ready.is_empty()
    }

    /// Finds the fibers that may continue: those that were posted and, if `looks` (the clock is
    /// read), those whose deadlines have passed or whose files are ready.
    #[inline]
    fn collect(&self, looks: bool) {
        if !self.mail.is_quiet() {
            self.read_mail();
        }
        if looks {
            self.look();
        }
    }

    #[inline(never)]
    fn read_mail(&self) {
        self.mail.look();
        // SAFETY: the mailbox belongs to this thread.
        while let Some(item) = unsafe { self.mail.take() } {
            // SAFETY: the posted item is the handle of a fiber of this thread, which waits.
            self.wake(unsafe { Fiber::of_handle(item.word()) });
        }
        self.desk.questions().for_each(|question| self.answer(&question));
    }

    /// Returns the number of turns since the last look at the clock.
    fn turns(&self) -> u32 {
        self.turn().wrapping_sub(self.looks.turn())
    }

    #[inline(never)]
    fn look(&self) {
        let now = self.mark();
        passes(now);
        if self.polls.is_due(now) {
            self.poll(PAST);
        }
        self.expire(now);
    }

    fn expire(&self, now: u64) {
        loop {
            let Some(timer) = self.timers.borrow_mut().expire(now) else { return };
            // SAFETY: all timers of the wheel belong to fibers that exist.
            let fiber = unsafe { Fiber::of_timer(timer) };
            let sleep = fiber.get().sleep.get().expect("a timer is that of a sleep");
            // SAFETY: the fiber has not continued: its timer would have been removed.
            if unsafe { sleep.expire() } {
                fiber.get().looked.set(Some(sleep).filter(|sleep| sleep.looks_again));
                self.wake(fiber);
            }
        }
    }

    /// Moves a fiber whose wait is over to the run queue.
    fn wake(&self, fiber: Fiber) {
        let deadline = fiber.get().sleep.take().and_then(|sleep| sleep.deadline);
        if deadline.is_some() {
            // SAFETY: the fiber exists, and its timer is in no other wheel than this one.
            unsafe { self.timers.borrow_mut().remove(fiber.timer()) };
        }
        if let Some(clocked) = fiber.get().clocked.get() {
            self.woken(fiber, clocked, deadline);
        }
        self.waiting.set(self.waiting.get() - 1);
        self.ready.push(fiber);
    }

    /// Waits for files until the deadline, and wakes the fibers whose files are ready. Returns the
    /// number of fibers that waited for these files.
    fn poll(&self, deadline: Option<Deadline>) -> usize {
        self.polls.poll(deadline, |handle| {
            // SAFETY: the fiber is in `Suspends::wait_after`, and so it exists.
            let fiber = unsafe { Fiber::of_handle(handle) };
            // None: its deadline has passed, and it has not continued since.
            let sleep = fiber.get().sleep.get();
            // SAFETY: the fiber has not continued.
            if sleep.is_some_and(|sleep| unsafe { sleep.expire() }) {
                self.wake(fiber);
            }
        })
    }

    /// Runs `rest`, in which the thread waits. If fibers wait for files, ready files end it, too.
    pub(crate) fn resting<R>(&self, rest: impl FnOnce() -> R) -> R {
        if !self.untold.is_empty() {
            self.cut(self.mark(), 0);
        }
        self.looks.resting(|| self.polls.resting(rest))
    }

    /// Returns whether another fiber may continue.
    #[cfg(feature = "io_uring")]
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of turns so far, modulo 2³².
    #[inline]
    pub(super) fn turn(&self) -> u32 {
        self.turns.count()
    }

    /// Returns the mailbox and the deadline that wake the thread, besides tasks.
    pub(crate) fn awaited(&self) -> (Awaited<'static, Linux>, Option<Deadline>) {
        let next = self.timers.borrow().next_ns();
        (self.mail.awaited(), next.map(|ns| Deadline { clock: Clock::Monotonic, ns }))
    }

    /// Sleeps until a fiber may continue, the thread is notified, or the time is `ns`, by the
    /// monotonic clock.
    pub(crate) fn wait_until(&self, ns: u64) {
        self.wait(Some(Deadline { clock: Clock::Monotonic, ns }));
    }

    /// Sleeps until a fiber may continue, the thread is notified, or the deadline has passed.
    pub(crate) fn wait(&self, deadline: Option<Deadline>) {
        let (awaited, next) = self.awaited();
        // Both deadlines are of the same clock.
        let deadline = next.into_iter().chain(deadline).min_by_key(|deadline| deadline.ns);
        self.resting(|| awaited.wait_until(deadline));
        self.resumed(now());
    }

    /// Returns the mailbox through which the thread is notified.
    pub(crate) fn mail(&self) -> &'static Ready<Linux> {
        self.mail
    }

    /// Switches to the fiber, then handles the reason why it switches back.
    #[inline(always)]
    fn switch(&self, fiber: Fiber, order: Order) -> Turn {
        let said = self.runs(fiber, order);
        self.sees_to(fiber, said)
    }

    /// Switches to the fiber, and returns the reason why it switches back.
    #[inline(always)]
    fn runs(&self, fiber: Fiber, order: Order) -> Said {
        current::set_current(Some(fiber));
        // SAFETY: the fiber comes from the list of idle fibers for `Run`, and from the run queue,
        // of suspended ones, for `GoOn`.
        let said = unsafe { fiber.switch(order) };
        current::set_current(None);
        said.expect("the fiber ends only by `Order::End`")
    }

    #[inline(always)]
    fn sees_to(&self, fiber: Fiber, said: Said) -> Turn {
        match said {
            Said::Yields { soft } => {
                self.ready.push(fiber);
                return if soft { Turn::Soft } else { Turn::Over };
            }
            Said::Done => self.done(fiber),
            Said::Sleeps => self.sleeps(fiber),
            Said::Told => unreachable!("it was not asked"),
        }
        Turn::Over
    }

    fn done(&self, fiber: Fiber) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < KEPT {
            idle.push(fiber);
        } else {
            drop(idle);
            // SAFETY: the fiber is idle, and on no other list.
            unsafe { self.free(fiber) };
            self.given.set(self.given.get() + 1);
        }
    }

    fn sleeps(&self, fiber: Fiber) {
        let Some(sleep) = fiber.get().sleep.get() else { return };
        // The fiber has only checked its condition, and waits again.
        if fiber.get().looked.take().is_some_and(|looked| looked.is_by_node_of(&sleep)) {
            self.in_vain.set(self.in_vain.get().wrapping_add(1));
        }
        // SAFETY: its stack was switched away from, and it continues only through this host.
        if !unsafe { sleep.commit() } {
            fiber.get().sleep.set(None);
            if let Some(clocked) = fiber.get().clocked.get() {
                self.woken(fiber, clocked, None);
            }
            self.ready.push(fiber);
            return;
        }
        self.waiting.set(self.waiting.get() + 1);
        self.note(fiber);
        if let Some(deadline) = sleep.deadline {
            // SAFETY: the timer is removed, or expires, before the fiber continues.
            unsafe { self.timers.borrow_mut().insert(fiber.timer(), monotonic_ns(deadline)) };
            // Relaxed: only this thread and ticks write it.
            self.desk.look_in.fetch_min(self.turns() + TIMERS_EVERY, Relaxed);
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        debug_assert!(!self.has_fibers(), "a thread stays for its fibers");
        self.desks.close(&self.desk);
        for fiber in self.idle.take() {
            // SAFETY: the fiber is idle, and on no other list.
            unsafe { self.free(fiber) };
        }
        MAILS.lock().unwrap_or_else(PoisonError::into_inner).push(self.mail);
    }
}

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}

/// Converts a deadline to the clock of the timers.
pub(crate) fn monotonic_ns(deadline: Deadline) -> u64 {
    match deadline.clock {
        Clock::Monotonic => deadline.ns,
        clock => {
            let left = deadline.ns.saturating_sub(Linux::now(clock));
            now().saturating_add(left.min(REALTIME_LOOK_NS))
        }
    }
}
