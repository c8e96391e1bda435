//! Time accounting of a fiber: where the clock is read when it is suspended and continues. A
//! reading of the clock is called a look; a suspension with a look is told.
//!
//! | event | which code looks at the clock |
//! |---|---|
//! | the fiber waits, yields or continues | the fiber, about each 32 µs, and at each 256th time |
//! | it has continued, and is suspended again | the fiber, to time the run |
//! | it waits, and has not looked | its thread, at the thread's next look, or before it rests |
//! | another thread lets it continue | that thread, by `woken_ns` of the control block |
//! | its deadline was over | no look: the deadline is the time |
//! | another fiber runs for long | the thread, if a tick has come meanwhile, or some turns later |
//!
//! - CLOCKED-1: parts are told from one look to the next, without a gap: their sum is the fiber's
//!   life.
//! - CLOCKED-2: the time between two looks is split by [`Cycles`], from the cycles that were timed.
//!   No suspension is skipped before one of its kind was timed.
//! - CLOCKED-3: a skipped wait is [cut](Clocked::cut) by a look of its thread, except waits within
//!   32 µs of a cut one. So the time that is split is short, or a look was late. In a pool with
//!   patience, ticks tell the two apart; otherwise the time is split in proportion.
//!
//! ```text
//!            is due ┌──────┐                        goes_on
//!          ┌──────► │ told │ ─────────────────────────────►
//!   ┌──────┴┐       └──────┘
//!   │ runs: │             cut ┌─────┐                 goes_on
//!   │ told  │         ┌─────► │ cut │ ─────────────────────►
//!   └──────┬┘ waits ┌─┴─────┐ └─────┘
//!          ├──────► │ waits │
//!          │        └─┬─────┘ is_found
//!          │ yields   ▼
//!          │        ┌─────────┐              without a look
//!          └──────► │ in line │ ───────────────────────────►
//!                   └─────────┘
//! ```
//!
//! A fiber that is not timed pays a load and a comparison when it is suspended, and when it is
//! woken.

use std::cell::Cell;
use std::sync::Arc;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::flight::{LONG_NS, Pace};

use crate::observe::{Account, Cycles, PERIOD_NS, Parts, Skipped};

/// The times of one fiber, kept on its stack.
pub(crate) struct Clocked {
    account: Arc<Account>,
    pace: Cell<Pace>,
    /// The number of suspensions until the next timed one, and the number that it was set to.
    left: Cell<u32>,
    of: Cell<u32>,
    /// The times of the suspensions and runs that were timed, and the number skipped since then.
    cycles: Cell<Cycles>,
    skipped: Cell<Skipped>,
    away: Cell<Away>,
    /// Whether it is in its thread's list of fibers that wait and have not looked.
    is_noted: Cell<bool>,
    /// The thread's `kept_ns` at the fiber's last suspension, cut or wake-up.
    kept_ns: Cell<u64>,
    /// When it was suspended, if it looked then.
    left_ns: Cell<Option<u64>>,
    /// When it continued, and looked; how long others have kept the thread since then, while the
    /// fiber was in line and had not looked; and the thread's total `kept_ns` when the fiber last
    /// got in line.
    since_ns: Cell<u64>,
    missed_ns: Cell<u64>,
    in_line_ns: Cell<u64>,
}

/// The thread of a fiber, as far as the fiber's times are concerned.
pub(super) trait Thread {
    /// Looks at the clock, and returns the time.
    fn mark(&self) -> u64;

    /// Returns whether a look at the clock is due.
    fn is_look_due(&self) -> bool;

    /// Returns the total time for which tasks have kept the thread from its run queue; only long
    /// tasks count.
    fn kept_ns(&self) -> u64;

    /// Returns the time of the thread's last look at the clock.
    fn looked_ns(&self) -> u64;
}

/// The state of the fiber, as far as its times are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Away {
    /// It runs; or it is suspended, and its account records that.
    Told,
    /// It waits, and its account still counts it as running.
    Waits,
    /// It may continue, or has continued, and its account still counts it as running.
    InLine,
    /// It waits, or may continue; its account records that from a look of the thread.
    Cut,
}

/// Maximum number of suspensions from one timed suspension to the next.
const MOST: u32 = 256;

/// The value of a control block's `woken_ns` that asks the thread that wakes the fiber to store the
/// time.
pub(super) const WANTED: u64 = 1;

impl Clocked {
    /// Creates the times of a task that begins.
    pub(crate) fn new(account: Arc<Account>) -> Self {
        let since_ns = Cell::new(account.since_ns());
        Self {
            account,
            pace: Cell::new(Pace::new(PERIOD_NS, MOST)),
            left: Cell::new(1),
            of: Cell::new(1),
            cycles: Cell::default(),
            skipped: Cell::default(),
            away: Cell::new(Away::Told),
            is_noted: Cell::new(false),
            kept_ns: Cell::new(0),
            left_ns: Cell::new(None),
            since_ns,
            missed_ns: Cell::new(0),
            in_line_ns: Cell::new(0),
        }
    }

    /// Called when the fiber is being suspended. Returns whether this suspension is timed, which is
    /// also so if a look of its thread is due, because the fiber itself may have run for long.
    pub(super) fn is_due(&self, waits: bool, host: Option<&impl Thread>) -> bool {
        self.has_been_in_line(host);
        let left = self.left.get() - 1;
        self.left.set(left);
        let mut skipped = self.skipped.get();
        // CLOCKED-2.
        let is_due = left == 0
            || !self.cycles.get().knows(waits)
            || host.is_some_and(Thread::is_look_due)
            || skipped.all() == 0 && self.has_run_long();
        if !is_due {
            skipped.add(waits);
            self.skipped.set(skipped);
            match host {
                Some(host) if !waits => self.is_in_line(host),
                _ => self.away.set(Away::Waits),
            }
        }
        is_due
    }

    /// Called at the end of the first run after the fiber continued and looked. Returns whether the
    /// run was long.
    fn has_run_long(&self) -> bool {
        self.ran(Linux::now(Clock::Monotonic)) > PERIOD_NS
    }

    fn ran(&self, now_ns: u64) -> u64 {
        let ran_ns = now_ns.saturating_sub(self.since_ns.get());
        let mut cycles = self.cycles.get();
        cycles.ran(ran_ns);
        self.cycles.set(cycles);
        ran_ns
    }

    /// Records a timed suspension.
    pub(super) fn stops(&self, waits: bool, host: &impl Thread) {
        let own_ns = Self::own_ns(Some(host));
        let now_ns = host.mark();
        if self.skipped.get().all() == 0 {
            self.ran(now_ns);
        }
        self.settle(now_ns, waits, Some(own_ns));
        let mut pace = self.pace.get();
        let next = pace.look(now_ns, self.of.get() - self.left.get());
        self.pace.set(pace);
        self.left.set(next);
        self.of.set(next);
        self.left_ns.set(Some(now_ns));
        self.kept_ns.set(host.kept_ns());
    }

    /// Returns the time of the fiber's last run, or 0 if it is unknown. It is known if a tick has
    /// come, and either none had come before the fiber continued, or there was a look then.
    fn own_ns(host: Option<&impl Thread>) -> u64 {
        let host = host.filter(|host| host.is_look_due());
        host.map_or(0, |host| Linux::now(Clock::Monotonic).saturating_sub(host.looked_ns()))
    }

    /// CLOCKED-1: accounts for all time until now, including the skipped suspensions. `own_ns` is
    /// the least time that the fiber has run at the end; `None` if it waits and has not looked.
    fn settle(&self, now_ns: u64, waits: bool, own_ns: Option<u64>) {
        self.away.set(Away::Told);
        let (missed_ns, skipped) = (self.missed_ns.take(), self.skipped.take());
        let passed_ns = now_ns.saturating_sub(self.since_ns.get() + missed_ns);
        let runs = skipped.all() + u32::from(own_ns.is_some());
        let own_ns = own_ns.filter(|&ns| ns > LONG_NS).unwrap_or(0);
        let parts = self.cycles.get().split(passed_ns.saturating_sub(own_ns), runs, skipped);
        let runnable_ns = parts.runnable_ns + missed_ns;
        self.account.stops(now_ns, waits, Parts { runnable_ns, hogged_ns: missed_ns, ..parts });
    }

    /// Records that the task of the fiber is over.
    pub(super) fn ends(&self, host: Option<&impl Thread>) {
        self.has_been_in_line(host);
        let own_ns = Self::own_ns(host);
        let now_ns = Linux::now(Clock::Monotonic);
        self.settle(now_ns, false, Some(own_ns));
        self.account.goes_on(now_ns, 0);
    }

    /// Records that the fiber may continue, while its account counts it as running.
    fn is_in_line(&self, host: &impl Thread) {
        self.away.set(Away::InLine);
        self.in_line_ns.set(host.kept_ns());
    }

    /// Called when the fiber runs. If it was in line before, adds the time for which others have
    /// kept the thread.
    fn has_been_in_line(&self, host: Option<&impl Thread>) {
        if let (Away::InLine, Some(host)) = (self.away.get(), host) {
            let kept_ns = host.kept_ns();
            let missed_ns = kept_ns.saturating_sub(self.in_line_ns.replace(kept_ns));
            self.missed_ns.set(self.missed_ns.get() + missed_ns);
        }
    }

    /// Records that the fiber, which runs, has itself kept the thread for `kept_ns`.
    pub(super) fn has_kept(&self, kept_ns: u64) {
        self.in_line_ns.set(self.in_line_ns.get() + kept_ns);
    }

    /// Called when the fiber begins to wait. Returns whether its thread must note it, because it
    /// has not looked.
    pub(super) fn is_to_note(&self) -> bool {
        self.away.get() == Away::Waits && !self.is_noted.replace(true)
    }

    /// CLOCKED-3: called after a look of the thread that has noted the fiber. If the fiber still
    /// waits, its wait began before that look.
    pub(super) fn cut(&self, at_ns: u64, host: &impl Thread) {
        self.is_noted.set(false);
        if self.away.get() == Away::Waits {
            self.settle(at_ns.max(self.since_ns.get()), true, None);
            self.away.set(Away::Cut);
            self.left_ns.set(None);
            self.kept_ns.set(host.kept_ns());
        }
    }

    /// Returns whether it is in its thread's list of fibers that wait and have not looked.
    pub(super) fn is_noted(&self) -> bool {
        self.is_noted.get()
    }

    /// Returns whether its account records its wait from a look of the thread.
    pub(super) fn is_cut(&self) -> bool {
        self.away.get() == Away::Cut
    }

    /// Records that the task is a fiber.
    pub(super) fn is_fiber(&self) {
        self.account.is_fiber();
    }

    /// Returns whether it waits, and has not looked.
    pub(super) fn is_untold(&self) -> bool {
        self.away.get() == Away::Waits
    }

    /// Records that the fiber may continue. If neither it nor its thread has looked since it was
    /// suspended, no look is taken.
    pub(super) fn is_found(&self, host: &impl Thread) {
        if self.is_untold() {
            self.is_in_line(host);
        }
    }

    /// Records that the fiber continues, with a look.
    pub(super) fn goes_on(&self, waited: bool, host: &impl Thread) {
        let now_ns = host.mark();
        let hogged_ns = host.kept_ns() - self.kept_ns.get();
        let runnable_ns = self.account.goes_on(now_ns, hogged_ns);
        if let Some(left_ns) = self.left_ns.take() {
            let mut cycles = self.cycles.get();
            cycles.away(waited, now_ns.saturating_sub(left_ns), runnable_ns);
            self.cycles.set(cycles);
        }
        self.away.set(Away::Told);
        self.since_ns.set(now_ns);
    }

    /// Records that its thread has found that the fiber may continue since `at_ns`.
    pub(super) fn wakes(&self, at_ns: u64, hogged_ns: u64, host: &impl Thread) {
        self.account.wakes(at_ns, hogged_ns);
        self.kept_ns.set(host.kept_ns());
    }
}
