//! The writing end: what a worker records of itself.
//!
//! It does not look at the clock for each task: a look costs as much as a short task. It looks at a
//! [`Pace`], when it takes a task. From look to look is a stretch, with a number of tasks; those
//! that follow each other are one event, unless one is long.

use antiphon_platform::{Clock, Platform};

use super::event::{Event, Found, LONG_NS, What};
use super::pace::Pace;
use super::{Records, WORDS};

/// Looks are about so far apart …
const PERIOD_NS: u64 = 32_000;
/// … and no more tasks.
const MOST: u32 = 256;
/// Short stretches are one event for so long.
const GATHERED_NS: u64 = 4 * LONG_NS;

const _: () = assert!(PERIOD_NS < LONG_NS && WORDS == 4);

/// What one worker records. Without a ring it does nothing.
pub(crate) struct Log<'a, P: Platform> {
    ring: Option<&'a Records<P>>,
    pace: Pace,
    /// Tasks that the worker has taken, at the last look and at the next.
    looked: u64,
    next: u64,
    /// What is not written yet: tasks since then.
    began_ns: u64,
    gathered: u32,
    /// When the last search ended.
    resumed_ns: u64,
}

impl<'a, P: Platform> Log<'a, P> {
    /// Of a worker that has taken so many tasks, and looks for some.
    pub(crate) fn new(ring: Option<&'a Records<P>>, taken: u64) -> Self {
        let pace = Pace::new(PERIOD_NS, MOST);
        let (next, began_ns, gathered, resumed_ns) = (u64::MAX, 0, 0, 0);
        let mut log = Self { ring, pace, looked: taken, next, began_ns, gathered, resumed_ns };
        log.resume(taken);
        log
    }

    /// Whether a worker that has taken so many looks at the clock now.
    #[inline]
    pub(crate) fn is_due(&self, taken: u64) -> bool {
        taken == self.next
    }

    /// The worker is at its queue, and has taken so many.
    #[cold]
    pub(crate) fn look(&mut self, taken: u64) {
        if self.ring.is_some() {
            let now_ns = P::now(Clock::Monotonic);
            let tasks = self.stretch(taken, now_ns);
            self.next = taken + u64::from(self.pace.look(now_ns, tasks));
        }
    }

    /// As [`look`](Self::look), of a worker that has looked at the clock for another reason, where
    /// it is between two things that are no tasks: fibers that went on.
    pub(crate) fn passes(&mut self, taken: u64, now_ns: u64) {
        if self.ring.is_some() {
            self.stretch(taken, now_ns);
            self.next = taken + u64::from(self.pace.resume(now_ns));
        }
    }

    /// When the worker has looked for tasks last, the end of that.
    pub(crate) fn resumed_ns(&self) -> u64 {
        self.resumed_ns
    }

    /// The stretch since the last look: how many tasks were in it.
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

    /// The worker has nothing to do, and has taken so many: when that began.
    pub(crate) fn pause(&mut self, taken: u64) -> u64 {
        self.look(taken);
        let now_ns = self.pace.looked_ns();
        self.flush(now_ns);
        now_ns
    }

    /// It has looked for tasks since then, and that has ended so; the next task counts from here.
    pub(crate) fn searched(&mut self, began_ns: u64, found: Found, taken: u64) {
        if let Some(ended_ns) = self.now() {
            self.note(Event { began_ns, ended_ns, what: What::Searched { found } });
            self.resume(taken);
        }
    }

    /// Has it do nothing, which is recorded.
    pub(crate) fn rest(&self, rest: impl FnOnce()) {
        let began_ns = self.now();
        rest();
        if let (Some(began_ns), Some(ended_ns)) = (began_ns, self.now()) {
            self.note(Event { began_ns, ended_ns, what: What::Rested });
        }
    }

    /// Records something else.
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

    /// Writes what was gathered, up to then.
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
