//! The figures of a loop's events, by name: tardiness, running times, and the causes of delays.

use alloc::vec::Vec;

use super::histogram::Histogram;
use super::name::Name;
use super::options::Options;

/// The figures of the events of one name.
#[derive(Clone, Debug)]
pub struct Stats {
    /// The name of the events.
    pub name: Name,
    /// The tardiness of each call of a timer, in nanoseconds.
    pub tardiness: Histogram,
    /// The duration of each call, in nanoseconds of the clock, including time that other threads
    /// took meanwhile.
    pub run: Histogram,
    /// The number of calls that took longer than the [limit](super::Options::long_ns).
    pub long: u64,
    /// How long timers of this name have run while the loop is behind.
    behind_ns: u64,
}

/// Something that keeps a loop from being on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A callback took longer than the limit.
    Long {
        /// The name of the event.
        name: Name,
        /// The duration of the call, in nanoseconds.
        ran_ns: u64,
    },
    /// For longer than the limit a timer was due all the time: timers alone need more than the CPU
    /// time that the loop has. Reported once, until the loop has caught up.
    Behind {
        /// The name of the events that took the most of that time.
        name: Name,
        /// How much of the time these events took, in nanoseconds.
        ran_ns: u64,
        /// For how long timers have been continuously due, in nanoseconds.
        for_ns: u64,
    },
}

/// A callback that was called.
#[derive(Clone, Copy)]
pub(super) struct Ran {
    pub(super) kind: usize,
    /// The duration of the call.
    pub(super) ns: u64,
    pub(super) is_timer: bool,
}

/// The figures of all names of a loop.
#[derive(Default)]
pub(super) struct Kinds {
    all: Vec<Stats>,
    /// The start of the time in which a timer was due all the time.
    behind_since_ns: Option<u64>,
    said: bool,
}

impl Kinds {
    /// Returns the place of a name, and whether it is new.
    pub(super) fn place(&mut self, name: Name) -> (usize, bool) {
        let glance = self.all.iter().position(|kind| kind.name.is_at_once(&name));
        let known = glance.or_else(|| self.all.iter().position(|kind| kind.name == name));
        if let Some(known) = known {
            return (known, false);
        }
        let (tardiness, run) = (Histogram::new(), Histogram::new());
        self.all.push(Stats { name, tardiness, run, long: 0, behind_ns: 0 });
        (self.all.len() - 1, true)
    }

    pub(super) fn all(&self) -> &[Stats] {
        &self.all
    }

    pub(super) fn reset(&mut self) {
        for kind in &mut self.all {
            let (tardiness, run) = (Histogram::new(), Histogram::new());
            *kind = Stats { name: kind.name, tardiness, run, long: 0, behind_ns: kind.behind_ns };
        }
    }

    /// Records that a timer is about to be called; returns the trouble to report about earlier
    /// calls.
    pub(super) fn begins(
        &mut self,
        kind: usize,
        release_ns: u64,
        now_ns: u64,
        options: &Options,
    ) -> Option<Trouble> {
        self.all[kind].tardiness.record(now_ns.saturating_sub(release_ns));
        let for_ns = now_ns.saturating_sub(*self.behind_since_ns.get_or_insert(now_ns));
        if for_ns <= options.behind_ns || self.said {
            return None;
        }
        self.said = true;
        let worst = self.all.iter().max_by_key(|kind| kind.behind_ns)?;
        Some(Trouble::Behind { name: worst.name, ran_ns: worst.behind_ns, for_ns })
    }

    /// Records that no timer is due.
    #[inline]
    pub(super) fn caught_up(&mut self) {
        if self.behind_since_ns.take().is_some() {
            self.said = false;
            self.all.iter_mut().for_each(|kind| kind.behind_ns = 0);
        }
    }

    /// Records that a callback was called; returns the trouble to report about it.
    pub(super) fn ends(&mut self, ran: Ran, options: &Options) -> Option<Trouble> {
        let of = &mut self.all[ran.kind];
        of.run.record(ran.ns);
        let is_long = ran.ns > options.long_ns;
        of.long += u64::from(is_long);
        if ran.is_timer {
            of.behind_ns += ran.ns;
        }
        is_long.then_some(Trouble::Long { name: of.name, ran_ns: ran.ns })
    }
}
