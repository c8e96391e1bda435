//! A fiber whose time is recorded: it looks at the clock where it is suspended and goes on.
//!
//! | what | who looks at the clock |
//! |---|---|
//! | it waits, it goes on | the fiber |
//! | somebody lets it go on | whoever does, by `woken` of its control block |
//! | its deadline was over | nobody: that is the time |
//! | it yields | the fiber, about each 32 µs, and each 256 yields |
//! | another is long | the thread, when a tick has come meanwhile, or some turns later |
//!
//! Yields between two that are timed are taken to last as long as these; where all of them together
//! were long, that is told apart by ticks, of a pool with a patience; else in proportion.
//!
//! A fiber that is not timed pays a load and a comparison where it is suspended, and where it is
//! let go on.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Deadline, Platform as _};
use antiphon_runtime::flight::{LONG_NS, Pace};

use super::control::{Fiber, Said};
use super::hooks;
use super::host::{self, Host};
use crate::pool::Account;

/// What a fiber knows of its time: on its stack.
pub(crate) struct Clocked {
    account: Arc<Account>,
    pace: Cell<Pace>,
    /// Yields until one is timed, and of how many that is the last.
    left: Cell<u32>,
    of: Cell<u32>,
    /// How long the others took, when that was seen last.
    away_ns: Cell<u64>,
    /// For how long its thread was kept by tasks, when it could go on.
    kept_ns: Cell<u64>,
    /// When it went on; since then, how long others kept the thread in yields that were not timed.
    since_ns: Cell<u64>,
    missed_ns: Cell<u64>,
    /// Whether it has left by such a yield last.
    is_untold: Cell<bool>,
    /// Of 1024, how much of a short time was yields that were not timed.
    share: Cell<u64>,
}

/// Until this is dropped the fiber is timed.
pub(crate) struct Attached<'a>(Option<Fiber>, &'a Clocked);

/// Yields that are timed are so far apart …
const PERIOD_NS: u64 = 32_000;
/// … and no more yields.
const MOST: u32 = 256;

const WHOLE: u64 = 1024;

/// In `woken` of a control block: who lets the fiber go on, says when.
pub(super) const WANTED: u64 = 1;

impl Clocked {
    /// Of a task that begins.
    pub(crate) fn new(account: Arc<Account>) -> Self {
        let pace = Cell::new(Pace::new(PERIOD_NS, MOST));
        let (left, of) = (Cell::new(1), Cell::new(1));
        let [away_ns, kept_ns, missed_ns, share] = [const { Cell::new(0) }; 4];
        let (since_ns, is_untold) = (Cell::new(account.since_ns()), Cell::new(false));
        Self { account, pace, left, of, away_ns, kept_ns, since_ns, missed_ns, is_untold, share }
    }

    /// Times the calling fiber, if the caller is one, and is not timed already.
    pub(crate) fn attach(&self) -> Attached<'_> {
        let fiber = hooks::current_fiber().filter(|fiber| fiber.get().clocked.get().is_none());
        if let Some(fiber) = fiber {
            self.account.is_fiber();
            fiber.get().clocked.set(Some(NonNull::from(self)));
        }
        Attached(fiber, self)
    }

    /// It yields: whether this one is timed. If its thread is to look at the clock anyway, it may
    /// have run for long itself.
    fn is_due(&self) -> bool {
        let left = self.left.get() - 1;
        self.left.set(left);
        let is_due = left == 0 || host::below().is_some_and(Host::is_look_due);
        self.is_untold.set(!is_due);
        is_due
    }

    /// It is suspended.
    fn stops(&self, waits: bool, host: &Host) {
        // Had another been long, there had been a look before this fiber went on.
        let (looked_ns, now_ns) = (host.looked_ns(), host.mark());
        let yields = self.of.get() - self.left.get() - u32::from(!waits);
        self.settle(now_ns, waits, (yields, now_ns.saturating_sub(looked_ns)));
        let mut pace = self.pace.get();
        let next = pace.look(now_ns, self.of.get() - self.left.get());
        self.pace.set(pace);
        self.left.set(next);
        self.of.set(next);
        self.kept_ns.set(host.kept_ns());
    }

    /// It has run until now, and so many yields were not timed; since the last of these for so long
    /// at the most.
    fn settle(&self, now_ns: u64, waits: bool, (yields, own_ns): (u32, u64)) {
        self.is_untold.set(false);
        let missed_ns = self.missed_ns.take();
        let passed_ns = now_ns.saturating_sub(self.since_ns.get() + missed_ns);
        let own_ns = if own_ns > LONG_NS { own_ns } else { 0 };
        let yields_ns = missed_ns + self.guess(passed_ns.saturating_sub(own_ns), yields);
        self.account.stops(now_ns, waits, (yields_ns, missed_ns));
    }

    /// Its task is over.
    fn ends(&self) {
        let now_ns = Linux::now(Clock::Monotonic);
        let looked_ns = host::below().map_or(now_ns, Host::looked_ns);
        let yields = self.of.get() - self.left.get();
        self.settle(now_ns, false, (yields, now_ns.saturating_sub(looked_ns)));
        self.account.goes_on(now_ns, 0);
    }

    /// How long so many yields took, that were not timed, of such a time.
    fn guess(&self, passed_ns: u64, yields: u32) -> u64 {
        if yields == 0 {
            return 0;
        }
        if passed_ns > LONG_NS {
            return passed_ns / WHOLE * self.share.get();
        }
        let yields_ns = (u64::from(yields) * self.away_ns.get()).min(passed_ns);
        self.share.set(yields_ns * WHOLE / passed_ns.max(1));
        yields_ns
    }

    /// It is in line, and another has kept the thread for so long.
    pub(super) fn is_kept(&self, kept_ns: u64) {
        if self.is_untold.get() {
            self.missed_ns.set(self.missed_ns.get() + kept_ns);
        }
    }

    /// It goes on.
    fn goes_on(&self, waited: bool, host: &Host) {
        let now_ns = host.mark();
        let hogged_ns = host.kept_ns() - self.kept_ns.get();
        let away_ns = self.account.goes_on(now_ns, hogged_ns);
        if !waited {
            self.away_ns.set(away_ns);
        }
        self.since_ns.set(now_ns);
        let mut pace = self.pace.get();
        pace.resume(now_ns);
        self.pace.set(pace);
    }

    /// Its thread has found that it may go on.
    pub(super) fn wakes(&self, at_ns: u64, hogged_ns: u64, host: &Host) {
        self.account.wakes(at_ns, hogged_ns);
        self.kept_ns.set(host.kept_ns());
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        if let Some(fiber) = self.0 {
            fiber.get().clocked.set(None);
            self.1.ends();
        }
    }
}

/// Whether the calling fiber looks at the clock as it is suspended now. If not, nothing is to be
/// done when it goes on: so where it yields is the caller's own code.
///
/// # Safety
///
/// It is timed, by this.
#[inline(never)]
pub(super) unsafe fn is_told(clocked: NonNull<Clocked>, said: Said) -> bool {
    // SAFETY: the caller's: it is on the fiber's stack, and attached.
    matches!(said, Said::Sleeps) || unsafe { clocked.as_ref() }.is_due()
}

/// The calling fiber is suspended, and looks at the clock before and afterwards.
///
/// # Safety
///
/// As of [`Fiber::leave`]; and `clocked` is its own.
#[cold]
#[inline(never)]
pub(super) unsafe fn leave(fiber: Fiber, clocked: NonNull<Clocked>, said: Said) {
    // SAFETY: the caller's: it is on the fiber's stack, and attached.
    let clocked = unsafe { clocked.as_ref() };
    let waits = matches!(said, Said::Sleeps);
    let host = host::below().expect("a fiber has one");
    clocked.stops(waits, host);
    if waits {
        // Relaxed: published by the commit of its sleep, which who lets it go on acquires.
        fiber.get().woken_ns.store(WANTED, Relaxed);
    }
    // SAFETY: the caller's.
    unsafe { fiber.leave(said) };
    clocked.goes_on(waits, host);
}

/// When a fiber could go on, that waited until that deadline at the latest, and whose thread has
/// found it now. `None`: it was not suspended.
pub(super) fn woken_ns(fiber: Fiber, deadline: Option<Deadline>, now_ns: u64) -> Option<u64> {
    let woken_ns = &fiber.get().woken_ns;
    // Relaxed: posted with the fiber, or our own.
    let at_ns = woken_ns.load(Relaxed);
    woken_ns.store(0, Relaxed);
    let is_over = |it: &Deadline| it.clock == Clock::Monotonic && it.ns <= now_ns;
    match at_ns {
        0 => None,
        WANTED => Some(deadline.filter(is_over).map_or(now_ns, |it| it.ns)),
        at_ns => Some(at_ns.min(now_ns)),
    }
}
