//! The writing end of the recorder: a worker's record of itself.
//!
//! The worker does not read the clock for each task: a reading costs as much as a short task. It
//! reads the clock at a [`Pace`], when it takes a task. The time between two readings is a stretch,
//! with a number of tasks. Consecutive stretches are one event, unless one is long.

use antiphon_platform::{Clock, Platform};

use super::event::{Event, Found, LONG_NS, What};
use super::pace::Pace;
use super::{Records, WORDS};

/// The approximate time between two readings of the clock, in nanoseconds.
const PERIOD_NS: u64 = 32_000;
/// The maximum number of tasks between two readings.
const MOST: u32 = 256;
/// The time for which short stretches are gathered into one event, in nanoseconds.
const GATHERED_NS: u64 = 4 * LONG_NS;

const _: () = assert!(PERIOD_NS < LONG_NS && WORDS == 4);

/// The recorder of one worker. Does nothing without a ring.
pub(crate) struct Log<'a, P: Platform> {
    ring: Option<&'a Records<P>>,
    pace: Pace,
    /// The number of tasks that the worker has taken, at the last reading and at the next.
    looked: u64,
    next: u64,
    /// The tasks that are not written yet: their start, and their number.
    began_ns: u64,
    gathered: u32,
    /// When the last search ended.
    resumed_ns: u64,
}

impl<'a, P: Platform> Log<'a, P> {
    /// Creates the recorder of a worker that has taken `taken` tasks, and searches for more.
    pub(crate) fn new(ring: Option<&'a Records<P>>, taken: u64) -> Self {
        let pace = Pace::new(PERIOD_NS, MOST);
        let (next, began_ns, gathered, resumed_ns) = (u64::MAX, 0, 0, 0);
        let mut log = Self { ring, pace, looked: taken, next, began_ns, gathered, resumed_ns };
        log.resume(taken);
        log
    }

    /// Returns whether a worker that has taken `taken` tasks must read the clock now.
    #[inline]
    pub(crate) fn is_due(&self, taken: u64) -> bool {
        taken == self.next
    }

    /// Called when the worker is at its queue, and has taken `taken` tasks.
    #[cold]
    pub(crate) fn look(&mut self, taken: u64) {
        if self.ring.is_some() {
            let now_ns = P::now(Clock::Monotonic);
            let tasks = self.stretch(taken, now_ns);
            self.next = taken + u64::from(self.pace.look(now_ns, tasks));
        }
    }

    /// Like [`look`](Self::look), for a worker that has read the clock for another reason, at a
    /// switch between two activities that are not tasks: runs of fibers.
    pub(crate) fn passes(&mut self, taken: u64, now_ns: u64) {
        if self.ring.is_some() {
            self.stretch(taken, now_ns);
            self.next = taken + u64::from(self.pace.resume(now_ns));
        }
    }

    /// Returns when the worker's last search for tasks ended.
    pub(crate) fn resumed_ns(&self) -> u64 {
        self.resumed_ns
    }

    /// Ends the present stretch. Returns the number of its tasks.
    fn stretch(&mut self, taken: u64, now_ns: u64) -> u32 {
        let (since_ns, tasks) = (self.pace.looked_ns(), (taken - self.looked) as u32);
        if now_ns.saturating_sub(since_ns) > LONG_NS {
            self.flush(since_ns);
            let what = What::Kept { tasks };
            self.note(Event { began_ns: since_ns, ended_ns: now_ns, what });
            self.began_ns = now_ns;
        } else {
            self.gathered += tasks;
            if now_ns.saturating_sub(self.began_ns) > GATHERED_NS {
                self.flush(now_ns);
            }
        }
        self.looked = taken;
        tasks
    }

    /// Called when the worker has nothing to do, and has taken `taken` tasks. Returns when that
    /// began.
    pub(crate) fn pause(&mut self, taken: u64) -> u64 {
        self.look(taken);
        let now_ns = self.pace.looked_ns();
        self.flush(now_ns);
        now_ns
    }

    /// Records that the worker has searched for tasks since `began_ns`, with the result `found`;
    /// the next task counts from here.
    pub(crate) fn searched(&mut self, began_ns: u64, found: Found, taken: u64) {
        if let Some(ended_ns) = self.now() {
            self.note(Event { began_ns, ended_ns, what: What::Searched { found } });
            self.resume(taken);
        }
    }

    /// Runs `rest`, and records that the worker did nothing meanwhile.
    pub(crate) fn rest(&self, rest: impl FnOnce()) {
        let began_ns = self.now();
        rest();
        if let (Some(began_ns), Some(ended_ns)) = (began_ns, self.now()) {
            self.note(Event { began_ns, ended_ns, what: What::Rested });
        }
    }

    /// Records another event.
    pub(crate) fn note(&self, event: Event) {
        if let Some(ring) = self.ring {
            ring.write(event.words());
        }
    }

    fn resume(&mut self, taken: u64) {
        let Some(now_ns) = self.now() else { return };
        (self.began_ns, self.resumed_ns, self.looked) = (now_ns, now_ns, taken);
        self.next = taken + u64::from(self.pace.resume(now_ns));
    }

    /// Writes the gathered tasks, as of `ended_ns`.
    fn flush(&mut self, ended_ns: u64) {
        let tasks = core::mem::take(&mut self.gathered);
        if tasks > 0 {
            let what = What::Ran { tasks };
            self.note(Event { began_ns: self.began_ns, ended_ns, what });
        }
        self.began_ns = ended_ns;
    }

    fn now(&self) -> Option<u64> {
        self.ring.map(|_| P::now(Clock::Monotonic))
    }
}
