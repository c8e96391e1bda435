//! T2 and T1b: timers run in their own thread, beside the threads that work.

mod mail;
mod worker;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use antiphon_linux::Linux;
use antiphon_linux::schedule::{self, Class, Policy, Refused};
use antiphon_platform::{Clock, Clocks as _, Platform as _, ThreadId};
use antiphon_runtime::coop::boost::{NEVER, Vigil};

use super::tardiness::Tally;
use super::{BoostOptions, Tardiness, Tier};
use mail::{Due, Mail};
pub use worker::Worker;

/// The options of a [`Split`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitOptions {
    /// The slice of the timer thread, in nanoseconds: the shorter it is, the sooner the thread
    /// runs.
    pub timer_slice_ns: u64,
    /// The slice of each [`Worker`], in nanoseconds.
    pub worker_slice_ns: u64,
    /// The real-time priority of the timer thread, 1 to 99; with `None` it shares time (T2).
    pub priority: Option<u8>,
}

impl SplitOptions {
    /// A real-time priority for timers (T1b) as high as that of the default [`Booster`]'s helper,
    /// so that timers do not wait for loops that are boosted.
    ///
    /// [`Booster`]: super::Booster
    pub const PRIORITY: u8 = BoostOptions::PRIORITY + 1;
}

impl Default for SplitOptions {
    fn default() -> Self {
        Self { timer_slice_ns: 100_000, worker_slice_ns: 20_000_000, priority: None }
    }
}

/// Runs timers in a separate thread, `antiphon-timers`. The thread runs very little, so the
/// scheduler lets it run at once: because of its short slice (T2), or because of a real-time
/// priority (T1b). The threads that work get a long slice each, by [`worker`](Self::worker).
///
/// Callbacks run beside the work, at any moment: they are `Send`, and must not wait for anything
/// that a worker holds, because the worker may be kept from the CPU meanwhile. Timers travel to the
/// thread and back in mailboxes without locks. The memory of a timer is freed by the threads that
/// submit, so the timer thread frees nothing but what callbacks themselves free.
///
/// ```
/// use antiphon_coop::{Split, SplitOptions};
/// use std::sync::mpsc;
///
/// let timers = Split::start(SplitOptions::default())?;
/// let _slice = timers.worker();
/// let (send, receive) = mpsc::channel();
/// let at_ns = Split::now_ns() + 2_000_000;
/// timers.submit(at_ns, move |_| send.send("shown").unwrap());
/// // Work on the next one, and then:
/// assert_eq!(receive.recv()?, "shown");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Clones share one timer thread. The thread ends with the last clone; timers that are not due by
/// then are dropped. In the child of a fork nothing runs.
#[derive(Clone)]
pub struct Split(Arc<Running>);

struct Running {
    shared: Arc<Shared>,
    options: SplitOptions,
    timers: ThreadId,
    /// The scheduling class of the thread before it had a priority.
    before: Class,
    epoch: u32,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    mail: Mail,
    vigil: Vigil<Linux>,
    stopped: AtomicU32,
    tally: Tally,
    panics: AtomicU32,
}

/// A submitted timer. If this is dropped, the timer still runs.
pub struct SplitTimer(Arc<AtomicU32>);

/// The states of a timer.
const SET: u32 = 0;
const RUNS: u32 = 1;
const CANCELLED: u32 = 2;

impl SplitTimer {
    /// Cancels the timer; returns whether that was in time. Does not block.
    pub fn cancel(&self) -> bool {
        // Acquire, also where it fails: pairs with the release in `run_due`, which has begun the
        // callback.
        self.0.compare_exchange(SET, CANCELLED, AcqRel, Acquire).is_ok()
    }
}

impl fmt::Debug for SplitTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: only for display.
        let state = ["set", "runs or has run", "cancelled"][self.0.load(Relaxed) as usize];
        f.debug_tuple("SplitTimer").field(&state).finish()
    }
}

impl Split {
    /// Starts the thread. It runs on the CPUs that the calling thread may use.
    ///
    /// # Errors
    ///
    /// If the kernel has no slices, or the process may not use that priority, or cannot start a
    /// thread.
    pub fn start(options: SplitOptions) -> Result<Self, Refused> {
        let shared = Arc::new(Shared {
            mail: Mail::new(),
            vigil: Vigil::NEW,
            stopped: AtomicU32::new(0),
            tally: Tally::new(),
            panics: AtomicU32::new(0),
        });
        let (tell, told) = mpsc::sync_channel(1);
        let served = Arc::clone(&shared);
        let serve = move || {
            let ready = prepare(options);
            let refused = ready.is_err();
            // The thread that started this one waits for that message.
            if tell.send(ready).is_err() || refused {
                return;
            }
            served.serve();
        };
        let start = || thread::Builder::new().name("antiphon-timers".into()).spawn(serve);
        let thread = schedule::without_signals(start).map_err(Refused::from)?;
        let (timers, before) = told.recv().unwrap_or(Err(Refused::FAILED))?;
        let (epoch, thread) = (Linux::epoch(), Some(thread));
        Ok(Self(Arc::new(Running { shared, options, timers, before, epoch, thread })))
    }

    /// Calls `run` at `release_ns`, in nanoseconds of [`now_ns`](Self::now_ns), in the timer
    /// thread; its argument is how late the call is, in nanoseconds. Does not block. A callback
    /// that panics is counted, and the others run.
    pub fn submit(&self, release_ns: u64, run: impl FnOnce(u64) + Send + 'static) -> SplitTimer {
        let shared = &self.0.shared;
        let state = Arc::new(AtomicU32::new(SET));
        shared.mail.sweep();
        shared.mail.post(release_ns, Arc::clone(&state), run);
        shared.vigil.tell(release_ns.min(NEVER - 1));
        SplitTimer(state)
    }

    /// Gives the calling thread the long slice, until the [`Worker`] is dropped.
    ///
    /// # Errors
    ///
    /// If the calling thread does not share time (it is in a real-time class).
    pub fn worker(&self) -> Result<Worker, Refused> {
        Worker::new(self.0.options.worker_slice_ns)
    }

    /// Changes the priority of the timer thread, at once. With `None` it shares time.
    ///
    /// # Errors
    ///
    /// If the process may not use that priority; the thread then keeps its priority.
    pub fn set_priority(&self, priority: Option<u8>) -> Result<(), Refused> {
        match priority {
            Some(priority) => schedule::set_fifo(self.0.timers, priority),
            None => schedule::set_timeshared(self.0.timers, self.0.before),
        }
    }

    /// Returns the present tier.
    #[must_use]
    pub fn tier(&self) -> Tier {
        match schedule::class(self.0.timers) {
            Ok(Class { policy: Policy::Fifo, .. }) => Tier::RealTimeSplit,
            _ => Tier::Split,
        }
    }

    /// Returns how late the timers were.
    #[must_use]
    pub fn tardiness(&self) -> Tardiness {
        self.0.shared.tally.read()
    }

    /// Returns the number of callbacks that have panicked.
    #[must_use]
    pub fn panics(&self) -> u32 {
        // Relaxed: only for a report.
        self.0.shared.panics.load(Relaxed)
    }

    /// Returns the time of the clock of all releases: the monotonic one, in nanoseconds.
    #[must_use]
    pub fn now_ns() -> u64 {
        Linux::now(Clock::Monotonic)
    }
}

/// Prepares the timer thread, and returns its id and the class that it had before.
fn prepare(options: SplitOptions) -> Result<(ThreadId, Class), Refused> {
    let me = ThreadId(0);
    schedule::set_timer_slack(1);
    let before = schedule::class(me)?;
    // With a priority the thread needs no slice, so a priority works where slices are refused.
    let sliced = schedule::set_slice(me, options.timer_slice_ns);
    match options.priority {
        Some(priority) => schedule::set_fifo(me, priority)?,
        None => drop(sliced?),
    }
    Ok((Linux::thread(), before))
}

impl Shared {
    fn serve(&self) {
        let mut due = Due::new();
        // Relaxed: a thread that stops this one also rings, and the ring orders.
        while self.stopped.load(Relaxed) == 0 {
            self.vigil.sleep_by(|| self.run_due(&mut due));
        }
    }

    /// Takes the mail, runs timers that are due, and returns the release of the next one.
    fn run_due(&self, due: &mut Due) -> u64 {
        // Relaxed: as in `serve`.
        while self.stopped.load(Relaxed) == 0 {
            // SAFETY: this is the timer thread, the only one that takes.
            while let Some(letter) = unsafe { self.mail.take() } {
                due.put(letter);
            }
            let now_ns = Split::now_ns();
            match due.next_ns() {
                Some(at) if at <= now_ns => {}
                Some(at) => return at.min(NEVER - 1),
                None => return NEVER,
            }
            let Some(mut letter) = due.take() else { return NEVER };
            // Release: it is too late to cancel; pairs with the acquire in `cancel`.
            if letter.state().compare_exchange(SET, RUNS, AcqRel, Relaxed).is_ok() {
                let late_ns = now_ns - letter.release_ns();
                self.tally.add(late_ns);
                if catch_unwind(AssertUnwindSafe(|| letter.run(late_ns))).is_err() {
                    // Relaxed: only for a report, with one writer.
                    self.panics.store(self.panics.load(Relaxed) + 1, Relaxed);
                }
            }
            self.mail.spend(letter);
        }
        0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child of a fork does not have this thread.
        if self.epoch != Linux::epoch() {
            return;
        }
        // Relaxed: a flag; `ring` carries it.
        self.shared.stopped.store(1, Relaxed);
        self.shared.vigil.ring();
        if let Some(thread) = self.thread.take() {
            // The last handle may be dropped in a callback, on the timer thread itself, which
            // cannot wait for itself.
            if Linux::thread() == self.timers {
                return;
            }
            // If the thread has panicked, it has printed the panic.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("options", &self.0.options).finish_non_exhaustive()
    }
}
