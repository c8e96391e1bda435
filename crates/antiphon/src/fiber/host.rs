//! The fibers of a thread: which goes on next, and those that wait.
//!
//! - HOST-1: the state here is changed while no fiber runs, or while `busy` says so. A signal
//!   handler that lets fibers go on posts them: it may have come in between.

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

/// The fibers of one thread. It is on the thread's stack, and its own.
pub(crate) struct Host {
    stacks: Stacks,
    mail: &'static Ready<Linux>,
    /// Whether its fibers move.
    moves: bool,
    /// Fibers that may go on, the first at the front.
    ready: Line<Fiber>,
    /// Without a task; the last one used is at the end.
    idle: RefCell<Vec<Fiber>>,
    timers: RefCell<Wheel>,
    /// No task begins: there was no stack for one.
    dry: Cell<Option<Dry>>,
    /// How many wait.
    waiting: Cell<usize>,
    /// Whether a task has begun after the last time none was ready.
    began: Cell<bool>,
    /// Something changes the lists, though a fiber runs: HOST-1.
    busy: Cell<bool>,
    turns: Turns,
    /// The number of turns in which no fiber was ready, or one that only looked and waits on.
    in_vain: Cell<u32>,
    /// The looks at the clock, and with it at deadlines. The number of turns to the next is in the
    /// desk.
    looks: Looks,
    /// Fibers that wait, are timed, and have not looked at the clock.
    untold: Untold,
    /// The number of stacks that it has given back after its last look at how many are free.
    given: Cell<usize>,
    /// All fibers of the thread, each at its own index.
    all: RefCell<Vec<Fiber>>,
    desks: Arc<Desks>,
    desk: Arc<Desk>,
    /// The files that they wait for.
    pub(super) polls: Polls,
}

/// The next act of a thread with fibers.
pub(crate) enum Next {
    /// Begins a task, if it has one; then others go on.
    Task,
    /// As `Task`; if there is none, it begins a task from elsewhere, if there is one.
    AnyTask,
    /// Waits: some fibers do, and none may go on.
    Wait,
    /// As `Wait`, but it begins no task, because no stack can be had. It tries again at that time,
    /// by the monotonic clock.
    Dry(u64),
    /// The thread has no fibers.
    Nothing,
}

/// There was no stack, for this reason; another look is due at `until`, by the monotonic clock.
#[derive(Clone, Copy)]
struct Dry {
    until: u64,
    why: NoStack,
}

/// How many stacks without a task a thread keeps.
const KEPT: usize = 64;
/// The number of free stacks of a pool that keep their memory, beside those that threads keep.
const HOT: usize = 1024;
/// The number of free stacks that give their memory back at a time: no task begins meanwhile.
const PIECE: usize = 128;
/// Time between two looks of a thread without a stack for one that another thread may have given
/// back, which does not tell. In nanoseconds.
const NAP_NS: u64 = 1_000_000;
/// Deadlines are looked at every 16 turns, if there are any; also where nothing else is to be done,
/// and where the clock is looked at anyway.
const TIMERS_EVERY: u32 = 16;
/// A deadline by a clock that can be set is looked at again after this time, in nanoseconds.
const REALTIME_LOOK_NS: u64 = 1_000_000_000;

/// The mails of threads that have ended: READY-2.
static MAILS: Mutex<Vec<&'static Ready<Linux>>> = Mutex::new(Vec::new());

impl Host {
    /// The fibers of the calling thread, which has none yet.
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

    /// Runs a task, as a fiber, until that waits or is done. Where no stack is to be had, it is run
    /// on the thread's, which waits where the task waits.
    ///
    /// # Errors
    ///
    /// If there is no stack, and a fiber of the thread may give one back: the task, for this thread
    /// or another that has some. None begins here then until there is a stack for it.
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

    /// Notes that there is no stack: tasks begin later.
    #[cold]
    fn dries(&self, why: NoStack) {
        self.set_dry(Some(Dry { until: now().saturating_add(NAP_NS), why }));
    }

    fn set_dry(&self, dry: Option<Dry>) {
        self.dry.set(dry);
        self.desk.is_dry(dry.is_some());
    }

    /// Whether no task may begin, because no stack can be had.
    #[cold]
    fn is_dry(&self, Dry { until, .. }: Dry) -> bool {
        if self.idle.borrow().is_empty() {
            if now() < until {
                return true;
            }
            // Before a task is taken that would have to be put back. A fiber that has begun needs
            // no stack.
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

    /// A stack without a task.
    fn stack(&self) -> Result<Fiber, NoStack> {
        let idle = self.idle.borrow_mut().pop();
        idle.map_or_else(|| self.stacks.take().map(|stack| self.begin(stack)), Ok)
    }

    /// Another, on that stack.
    fn begin(&self, stack: Stack) -> Fiber {
        let fiber = Fiber::new(stack, self.mail, self.moves);
        self.list(fiber);
        fiber
    }

    /// Puts it among all of the thread.
    fn list(&self, fiber: Fiber) {
        let mut all = self.all.borrow_mut();
        fiber.get().at.set(all.len());
        all.push(fiber);
    }

    /// Takes it from among them.
    fn unlist(&self, fiber: Fiber) {
        let (at, mut all) = (fiber.get().at.get(), self.all.borrow_mut());
        all.swap_remove(at);
        if let Some(moved) = all.get(at) {
            moved.get().at.set(at);
        }
    }

    /// Ends one.
    ///
    /// # Safety
    ///
    /// The fiber is idle, and on no other list.
    unsafe fn free(&self, fiber: Fiber) {
        self.unlist(fiber);
        // SAFETY: the caller's; and so no other code has it any more.
        unsafe { fiber.free() };
    }

    /// Makes this the host of the calling thread.
    pub(crate) fn attach(&self) {
        local::with(|own| own.host.set(Some(NonNull::from(self).cast())));
    }

    /// Runs fibers that may go on, until it is time for something else, and returns what that is.
    pub(crate) fn go_on(&self) -> Next {
        self.go_on_by(|fiber| self.switch(fiber, Order::GoOn))
    }

    /// As [`go_on`](Self::go_on), each by `go_on`.
    #[inline(always)]
    fn go_on_by(&self, go_on: impl FnMut(Fiber) -> Turn) -> Next {
        let prepare = || {
            // Relaxed: others compare it.
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

    /// The turn was one of those. Not before its questions are answered.
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
        // Where no task has begun, a poll comes anyway.
        self.collect(timed || began && !self.polls.is_idle());
        // There may be another task: files are polled then when that is due.
        if began {
            return Next::Task;
        }
        self.poll_if_worth_it();
        if self.ready.is_empty() { Next::Wait } else { Next::Task }
    }

    /// Looks at the files, where no fiber may go on and some wait for them.
    fn poll_if_worth_it(&self) {
        if self.ready.is_empty() && self.polls.is_worth_it() {
            self.poll(PAST);
        }
    }

    /// Gives the memory of a few stacks back to the kernel, where many are free.
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

    /// Finds the fibers that may go on: others have said so; or, where the clock is looked at,
    /// their deadlines have passed, or their files are ready.
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
        // SAFETY: the thread's own.
        while let Some(item) = unsafe { self.mail.take() } {
            // SAFETY: the posted item is the handle of a fiber of this thread, which waits.
            self.wake(unsafe { Fiber::of_handle(item.word()) });
        }
        self.desk.questions().for_each(|question| self.answer(&question));
    }

    /// The number of turns after the last look at the clock.
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
            // SAFETY: all timers of the wheel are of fibers that are there.
            let fiber = unsafe { Fiber::of_timer(timer) };
            let sleep = fiber.get().sleep.get().expect("a timer is that of a sleep");
            // SAFETY: it has not gone on: its timer would have been taken away.
            if unsafe { sleep.expire() } {
                fiber.get().looked.set(Some(sleep).filter(|sleep| sleep.looks_again));
                self.wake(fiber);
            }
        }
    }

    /// A fiber waits no more.
    fn wake(&self, fiber: Fiber) {
        let deadline = fiber.get().sleep.take().and_then(|sleep| sleep.deadline);
        if deadline.is_some() {
            // SAFETY: the timer of a fiber that is there; of this wheel, if it is of one.
            unsafe { self.timers.borrow_mut().remove(fiber.timer()) };
        }
        if let Some(clocked) = fiber.get().clocked.get() {
            self.woken(fiber, clocked, deadline);
        }
        self.waiting.set(self.waiting.get() - 1);
        self.ready.push(fiber);
    }

    /// Waits for files until the deadline, and lets the fibers go on whose files are ready. Returns
    /// the number of fibers that waited for these.
    fn poll(&self, deadline: Option<Deadline>) -> usize {
        self.polls.poll(deadline, |handle| {
            // SAFETY: it is in `Suspends::wait_after`, and so it is there.
            let fiber = unsafe { Fiber::of_handle(handle) };
            // None: its deadline has passed, and it has not gone on since.
            let sleep = fiber.get().sleep.get();
            // SAFETY: it has not gone on.
            if sleep.is_some_and(|sleep| unsafe { sleep.expire() }) {
                self.wake(fiber);
            }
        })
    }

    /// Runs `rest`, in which the thread waits: where fibers wait for files, these end it, too.
    pub(crate) fn resting<R>(&self, rest: impl FnOnce() -> R) -> R {
        if !self.untold.is_empty() {
            self.cut(self.mark(), 0);
        }
        self.looks.resting(|| self.polls.resting(rest))
    }

    /// Whether another fiber may go on.
    #[cfg(feature = "io_uring")]
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The number of turns so far, modulo 2³².
    #[inline]
    pub(super) fn turn(&self) -> u32 {
        self.turns.count()
    }

    /// The mail and the time that wake the thread, beside tasks.
    pub(crate) fn awaited(&self) -> (Awaited<'static, Linux>, Option<Deadline>) {
        let next = self.timers.borrow().next_ns();
        (self.mail.awaited(), next.map(|ns| Deadline { clock: Clock::Monotonic, ns }))
    }

    /// Sleeps until a fiber may go on, the thread is notified, or that time.
    pub(crate) fn wait_until(&self, ns: u64) {
        self.wait(Some(Deadline { clock: Clock::Monotonic, ns }));
    }

    /// Sleeps until a fiber may go on, the thread is notified, or that deadline.
    pub(crate) fn wait(&self, deadline: Option<Deadline>) {
        let (awaited, next) = self.awaited();
        // Both deadlines by one clock.
        let deadline = next.into_iter().chain(deadline).min_by_key(|deadline| deadline.ns);
        self.resting(|| awaited.wait_until(deadline));
        self.resumed(now());
    }

    /// The mailbox by which the thread is notified.
    pub(crate) fn mail(&self) -> &'static Ready<Linux> {
        self.mail
    }

    /// Switches to the fiber, and sees to what it says.
    #[inline(always)]
    fn switch(&self, fiber: Fiber, order: Order) -> Turn {
        let said = self.runs(fiber, order);
        self.sees_to(fiber, said)
    }

    /// Switches to the fiber; what it says.
    #[inline(always)]
    fn runs(&self, fiber: Fiber, order: Order) -> Said {
        current::set_current(Some(fiber));
        // SAFETY: idle for a task, and suspended to go on: it was of the list of such.
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
            // SAFETY: idle, and on no list.
            unsafe { self.free(fiber) };
            self.given.set(self.given.get() + 1);
        }
    }

    fn sleeps(&self, fiber: Fiber) {
        let Some(sleep) = fiber.get().sleep.get() else { return };
        // The fiber has looked, and goes on waiting.
        if fiber.get().looked.take().is_some_and(|looked| looked.is_by_node_of(&sleep)) {
            self.in_vain.set(self.in_vain.get().wrapping_add(1));
        }
        // SAFETY: it is switched away from, and goes on only here.
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
            // SAFETY: taken away again, or expired, before it goes on.
            unsafe { self.timers.borrow_mut().insert(fiber.timer(), monotonic_ns(deadline)) };
            // Relaxed: as above.
            self.desk.look_in.fetch_min(self.turns() + TIMERS_EVERY, Relaxed);
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        debug_assert!(!self.has_fibers(), "a thread stays for its fibers");
        self.desks.close(&self.desk);
        for fiber in self.idle.take() {
            // SAFETY: idle, and on no list any more.
            unsafe { self.free(fiber) };
        }
        MAILS.lock().unwrap_or_else(PoisonError::into_inner).push(self.mail);
    }
}

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}

/// The time of a deadline by the clock of the timers.
pub(crate) fn monotonic_ns(deadline: Deadline) -> u64 {
    match deadline.clock {
        Clock::Monotonic => deadline.ns,
        clock => {
            let left = deadline.ns.saturating_sub(Linux::now(clock));
            now().saturating_add(left.min(REALTIME_LOOK_NS))
        }
    }
}
