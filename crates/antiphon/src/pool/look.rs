//! The introspection data of a pool, for its own program and for programs that [look](crate::look)
//! at a live one.

use std::time::Instant;

use antiphon_linux::Linux;
use antiphon_runtime::sched::Look;

use super::shared::Shared;
use super::{Policy, Pool, hogs};
use crate::fiber::census::Census;
use crate::look::{Looked, Seen};
use crate::observe::{Recorded, Recording, Spans};

/// Number of the latest hogs that are reported.
const HOGS: usize = 32;

impl<Y: Policy<Linux>> Shared<Y> {
    /// Returns the answers of the threads about their fibers. For a thread that does not answer in
    /// time, reports where it is.
    pub(super) fn census(&self, most: usize, until: Instant) -> Census {
        self.desks.ask(most, until, |thread| self.hogs.trace(thread))
    }
}

impl<Y: Policy<Linux> + 'static> Looked for Shared<Y> {
    fn workers(&self) -> Look {
        self.crew.look()
    }

    fn since_ns(&self) -> Vec<Option<u64>> {
        self.crew.latest_ns()
    }

    fn seen(&self, most: usize, until: Instant) -> Seen {
        let threads = self.crew.workers();
        Seen {
            name: self.bench.name().to_owned(),
            threads,
            spares: self.bench.most() - threads,
            stats: self.stats(),
            census: self.stacks.is_some().then(|| self.census(most, until)),
            hogs: self.hogs.read(HOGS, |long| self.crew.lasts(long)),
            recording: self.crew.is_recorded().then(|| self.recording(Spans::Left)),
        }
    }
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// Returns the latest tasks that exceeded the pool's [patience](super::Builder::patience), at
    /// most 64, oldest first. Empty without patience. Their traces are known only if the pool names
    /// hogs (`Builder::name_hogs`, with the feature of that name).
    ///
    /// The first call may take half a second, because tables of the program are read.
    #[must_use]
    pub fn hogs(&self) -> Vec<hogs::Hog> {
        self.shared.hogs.read(hogs::MOST, |long| self.shared.crew.lasts(long))
    }
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// Reads what the workers have done recently. Does not block them. What they are doing now,
    /// such as a task that has not ended, is not included.
    ///
    /// ```
    /// use antiphon::pool::Pool;
    /// use std::time::Duration;
    ///
    /// let pool = Pool::new(2)?;
    /// pool.scope(|scope| (0..10_000).for_each(|_| scope.spawn(|| ())));
    /// let recording = pool.recording();
    /// let latency = recording.latency(Duration::from_millis(1));
    /// println!("99 of 100 tasks began within {} ns", latency.queued.p99_ns);
    /// // A file for ui.perfetto.dev:
    /// recording.write_trace(std::io::sink())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn recording(&self) -> Recording {
        self.shared.recording(Spans::Kept)
    }
}

impl<Y: Policy<Linux>> Shared<Y> {
    pub(super) fn recording(&self, spans: Spans) -> Recording {
        let of = |(seat, events)| Recorded { name: self.bench.thread_name(seat), events };
        let workers = self.crew.events().into_iter().enumerate().map(of).collect();
        let ledger = self.ledger.as_ref().map_or_else(Vec::new, |ledger| ledger.read(spans));
        Recording::of(workers, ledger, self.hog_ns)
    }
}
