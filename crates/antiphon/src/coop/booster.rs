//! T1: the helper that has loops run first while they are late.

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

/// What a [`Booster`] can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoostOptions {
    /// The real-time priority of a loop that is late: 1 to 98. The helper has one more, which the
    /// process needs the right to. A loop that used up its slack, or seemed to sleep, and has not
    /// polled since has one less, so that others do not wait for it again; with 1 it has the same.
    /// Programs that share a CPU take one priority, or such as differ by three.
    pub priority: u8,
    /// How many loops there may be at a time. More are not helped, and
    /// [counted](BoosterStats::unseated).
    pub loops: usize,
    /// `slack_ns`: a loop that is raised for so much CPU time, and does not poll, is lowered for a
    /// while; so is one that is raised for ten times as long and has not used it.
    /// `threshold_ns`: one that owes so much is not raised.
    pub options: Options,
}

impl BoostOptions {
    /// The usual priority of a loop that is late: there is one below it.
    pub const PRIORITY: u8 = 2;
}

impl Default for BoostOptions {
    fn default() -> Self {
        Self { priority: Self::PRIORITY, loops: 64, options: Options::default() }
    }
}

/// Has the loops of this process run before all that share time, each while its timer is overdue.
///
/// A thread, `antiphon-boost`, sleeps until the next release of any loop. If the loop has not
/// dispatched it by then, the thread puts the loop's thread into `SCHED_FIFO`: that ends what it is
/// at, dispatches its timers and polls, and is put back. A loop that runs for the slack in between,
/// or sleeps, and does not poll, is put back at once, and helped again after a fourth of the slack,
/// and after twice as long each time, until it polls, but behind others that are late (BOOST-6).
/// What it ran like that it gives back: see [`Boosted`].
///
/// A clone is the same booster. The thread ends with the last clone and the last loop.
///
/// In the child of a fork it does nothing. A program that loops turn into (`execve`) may stay in
/// `SCHED_FIFO`: drop the [`Boosted`] before. Threads that are in a real-time class by themselves
/// are left alone.
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

/// What a [`Booster`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoosterStats {
    /// Of all its loops, those that have gone too.
    pub counts: Counts,
    /// The CPU time of the helper, in nanoseconds.
    pub helper_ns: u64,
    /// How many polls were by loops that were not helped, as there were
    /// [as many](BoostOptions::loops) already.
    pub unseated: u64,
}

impl Booster {
    /// Starts the helper. It runs where the calling thread may run.
    ///
    /// # Errors
    ///
    /// If this process may not use real-time priorities, or starts no more threads: the message
    /// says how to get the right.
    ///
    /// # Panics
    ///
    /// If the priority is 0 or more than 98, or there are no loops.
    pub fn start(options: BoostOptions) -> Result<Self, Refused> {
        assert!((1..=98).contains(&options.priority), "a priority of 1 to 98 there can be");
        assert!(options.loops > 0, "a booster of no loops");
        let boosts = Arc::new(Boosts::new(options.loops));
        let (tell, told) = mpsc::sync_channel(1);
        let helped = Arc::clone(&boosts);
        let serve = move || {
            let ready = schedule::set_fifo(ThreadId(0), options.priority + 1);
            let ready = ready.map(|()| Linux::thread());
            let refused = ready.is_err();
            // Who started it waits for that.
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

    /// A loop that gives its CPU away by `inner`, and is helped when it is late. It is the loop of
    /// the thread that polls it.
    pub fn boost<C: Cooperate>(&self, inner: C) -> Boosted<C> {
        Boosted::new(self.clone(), inner)
    }

    /// What it was told.
    #[must_use]
    pub fn options(&self) -> BoostOptions {
        self.0.options
    }

    /// What it has done.
    #[must_use]
    pub fn stats(&self) -> BoosterStats {
        let helper_ns = schedule::cpu_ns(self.0.helper).unwrap_or(0);
        // Relaxed: a count.
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
    /// Whether the caller is in the process that has started the helper.
    pub(super) fn here(&self) -> bool {
        self.epoch == Linux::epoch()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child of a fork has no such thread.
        if self.here()
            && let Some(thread) = self.thread.take()
        {
            self.boosts.stop();
            // If it has failed it has lowered all, and said so.
            let _ = thread.join();
        }
    }
}

/// Linux, as the helper uses it.
struct System {
    priority: u8,
}

impl Raise for System {
    type Before = Class;

    fn raise(&mut self, thread: ThreadId, behind: bool) -> Option<(Class, u64)> {
        // `None` for one that has ended, whose number may be another process's by now.
        let ran_ns = schedule::cpu_ns(thread)?;
        let before = schedule::class(thread).ok()?;
        if matches!(before.policy, Policy::Fifo | Policy::RoundRobin | Policy::Deadline) {
            return None;
        }
        schedule::set_fifo(thread, (self.priority - u8::from(behind)).max(1)).ok()?;
        Some((before, ran_ns))
    }

    fn lower(&mut self, thread: ThreadId, before: Class) -> Option<u64> {
        // It may have ended; to share time is nobody refused.
        let _ = schedule::set_timeshared(thread, before);
        schedule::cpu_ns(thread)
    }

    fn ran_ns(&mut self, thread: ThreadId) -> Option<u64> {
        schedule::cpu_ns(thread)
    }
}
