//! T1: a helper thread that lets loops run first while they are late.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use antiphon_linux::Linux;
use antiphon_linux::schedule::{self, Class, Policy, Refused};
use antiphon_platform::{Platform as _, ThreadId};
use antiphon_runtime::coop::boost::{Boosts, Counts, Helper, Raise};

use super::{Boosted, Cooperate, Options};

/// The options of a [`Booster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoostOptions {
    /// The real-time priority of a late loop: 1 to 98. The helper has one more, for which the
    /// process needs the right. A loop that used up its slack, or seemed to sleep, and has not
    /// polled afterwards gets one less, so that other loops do not wait for it again; with priority
    /// 1 it keeps 1. Programs that share a CPU should use the same priority, or priorities that
    /// differ by three.
    pub priority: u8,
    /// The largest number of loops at a time. Further loops are not helped, and are
    /// [counted](BoosterStats::unseated).
    pub loops: usize,
    /// `slack_ns`: a loop that has used this much CPU time while raised, without a poll, is lowered
    /// for a while; so is a loop that has been raised for ten times as long and has not used it.
    /// `threshold_ns`: a loop that owes this much is not raised.
    pub options: Options,
}

impl BoostOptions {
    /// Default priority of a late loop. There is one priority below it.
    pub const PRIORITY: u8 = 2;
}

impl Default for BoostOptions {
    fn default() -> Self {
        Self { priority: Self::PRIORITY, loops: 64, options: Options::default() }
    }
}

/// Runs the loops of this process before all time-sharing threads, but only while a timer of the
/// loop is overdue.
///
/// A thread, `antiphon-boost`, sleeps until the next release of any loop. If the loop has not
/// dispatched it by then, the thread puts the loop's thread into `SCHED_FIFO`. The loop then ends
/// its current work, dispatches its timers and polls, and is put back. If the loop runs for the
/// slack in between, or sleeps, and does not poll, it is put back at once. It is helped again after
/// a fourth of the slack, and after twice as long each further time, until it polls, but behind
/// other late loops (BOOST-6). It pays back what it ran in this way: see [`Boosted`].
///
/// A clone is the same booster. The thread ends with the last clone and the last loop.
///
/// In the child of a fork it does nothing. A program that is started in place of this one
/// (`execve`) may stay in `SCHED_FIFO`: drop the [`Boosted`] before. Threads that are in a
/// real-time class by themselves are left alone.
#[derive(Clone)]
pub struct Booster(pub(super) Arc<Running>);

pub(super) struct Running {
    pub(super) boosts: Arc<Boosts<Linux>>,
    options: BoostOptions,
    helper: ThreadId,
    pub(super) epoch: u32,
    pub(super) unseated: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

/// The figures of a [`Booster`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoosterStats {
    /// The counts of all its loops, including loops that have ended.
    pub counts: Counts,
    /// The CPU time of the helper, in nanoseconds.
    pub helper_ns: u64,
    /// Number of polls by loops that were not helped, because [the maximum](BoostOptions::loops)
    /// was reached.
    pub unseated: u64,
}

impl Booster {
    /// Starts the helper. It runs on the CPUs that the calling thread may use.
    ///
    /// # Errors
    ///
    /// If this process may not use real-time priorities, or cannot start a thread. The message says
    /// how to get the right.
    ///
    /// # Panics
    ///
    /// If the priority is 0 or above 98, or the number of loops is 0.
    pub fn start(options: BoostOptions) -> Result<Self, Refused> {
        assert!(
            (1..=98).contains(&options.priority),
            "the priority of a booster must be from 1 to 98"
        );
        assert!(options.loops > 0, "a booster needs room for at least one loop");
        let boosts = Arc::new(Boosts::new(options.loops));
        let (tell, told) = mpsc::sync_channel(1);
        let helped = Arc::clone(&boosts);
        let serve = move || {
            let ready = schedule::set_fifo(ThreadId(0), options.priority + 1);
            let ready = ready.map(|()| Linux::thread());
            let refused = ready.is_err();
            // The thread that started this one waits for that message.
            if tell.send(ready).is_err() || refused {
                return;
            }
            let system = System { priority: options.priority };
            Helper::new(&helped, options.options, system).run();
        };
        let start = || thread::Builder::new().name("antiphon-boost".into()).spawn(serve);
        let thread = schedule::without_signals(start).map_err(Refused::from)?;
        let helper = told.recv().unwrap_or(Err(Refused::FAILED))?;
        let epoch = Linux::epoch();
        let (unseated, thread) = (AtomicU64::new(0), Some(thread));
        Ok(Self(Arc::new(Running { boosts, options, helper, epoch, unseated, thread })))
    }

    /// Creates a loop that yields its CPU by `inner`, and is helped when it is late. It belongs to
    /// the thread that polls it.
    pub fn boost<C: Cooperate>(&self, inner: C) -> Boosted<C> {
        Boosted::new(self.clone(), inner)
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> BoostOptions {
        self.0.options
    }

    /// Returns the figures so far.
    #[must_use]
    pub fn stats(&self) -> BoosterStats {
        let helper_ns = schedule::cpu_ns(self.0.helper).unwrap_or(0);
        // Relaxed: a counter for reports.
        let unseated = self.0.unseated.load(Relaxed);
        BoosterStats { counts: self.0.boosts.total(), helper_ns, unseated }
    }
}

impl fmt::Debug for Booster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Booster").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Running {
    /// Returns whether the caller is in the process that has started the helper.
    pub(super) fn here(&self) -> bool {
        self.epoch == Linux::epoch()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child of a fork does not have this thread.
        if self.here()
            && let Some(thread) = self.thread.take()
        {
            self.boosts.stop();
            // If the helper has panicked, it has lowered all loops, and printed the panic.
            let _ = thread.join();
        }
    }
}

/// Linux, as used by the helper.
struct System {
    priority: u8,
}

impl Raise for System {
    type Before = Class;

    fn raise(&mut self, thread: ThreadId, behind: bool) -> Option<(Class, u64)> {
        // Returns `None` for a thread that has ended, whose number another process may have by now.
        let ran_ns = schedule::cpu_ns(thread)?;
        let before = schedule::class(thread).ok()?;
        if matches!(before.policy, Policy::Fifo | Policy::RoundRobin | Policy::Deadline) {
            return None;
        }
        schedule::set_fifo(thread, (self.priority - u8::from(behind)).max(1)).ok()?;
        Some((before, ran_ns))
    }

    fn lower(&mut self, thread: ThreadId, before: Class) -> Option<u64> {
        // The thread may have ended. No thread is refused time sharing.
        let _ = schedule::set_timeshared(thread, before);
        schedule::cpu_ns(thread)
    }

    fn ran_ns(&mut self, thread: ThreadId) -> Option<u64> {
        schedule::cpu_ns(thread)
    }
}
