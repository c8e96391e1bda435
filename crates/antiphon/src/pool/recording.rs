//! What a pool has recorded: of each worker, and what follows for tasks.

use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::flight::{Event, Sample, What};

use super::{Policy, Pool};

/// What the workers of a pool have done of late: see [`Pool::recording`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// By seat.
    pub workers: Vec<Recorded>,
}

/// What one worker has done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// The name of its thread.
    pub name: String,
    /// As they ended. Of a task, others that the worker ran while that waited come first.
    pub events: Vec<Event>,
}

/// How long tasks took to be done, by where the time went: see [`Recording::latency`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// From when a task was made ready until it began.
    pub queued: Times,
    /// From when it began until it ended, with others that its worker ran while it waited.
    pub running: Times,
    /// The part of `queued` in which the worker that had made it ready was kept from its queue; of
    /// a task from outside, all workers.
    pub hogged: Times,
}

/// Times of many tasks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// How many tasks were recorded.
    pub recorded: u64,
    /// For how many they stand.
    pub tasks: u64,
    /// For half of these it was no longer.
    pub p50_ns: u64,
    /// For 99 of 100 it was no longer.
    pub p99_ns: u64,
    /// The longest that was recorded.
    pub max_ns: u64,
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// What its workers have done of late. Does not block them: what they do at the moment, a task
    /// that has not ended, say, is not there yet.
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
        let name = |seat| self.shared.bench.thread_name(seat);
        let of = |(seat, events)| Recorded { name: name(seat), events };
        Recording { workers: self.shared.crew.events().into_iter().enumerate().map(of).collect() }
    }
}

impl Recording {
    /// How long tasks have waited and run, of those that were recorded; and for how long they
    /// waited because a worker was kept from its queue for longer than `kept`, 250 µs at the least
    /// ([`LONG_NS`](super::LONG_NS)).
    #[must_use]
    pub fn latency(&self, kept: Duration) -> Latency {
        let kept_ns = u64::try_from(kept.as_nanos()).unwrap_or(u64::MAX);
        let away: Vec<_> = self.workers.iter().map(|worker| worker.kept(kept_ns)).collect();
        let all = away
            .iter()
            .skip(1)
            .fold(away.first().cloned().unwrap_or_default(), |all, one| both(all, one));
        let [mut queued, mut running, mut hogged] = [const { Vec::new() }; 3];
        for (event, Sample { ready_ns, maker, of }) in self.samples() {
            let spans = maker.map_or(Some(&all), |seat| away.get(seat as usize));
            let wait = Span { from_ns: ready_ns, to_ns: event.began_ns };
            let inside = spans.into_iter().flatten().map(|span| span.and(wait).ns()).sum();
            queued.push((wait.ns(), of));
            running.push((event.ended_ns.saturating_sub(event.began_ns), of));
            hogged.push((inside, of));
        }
        let [queued, running, hogged] = [queued, running, hogged].map(Times::of);
        Latency { queued, running, hogged }
    }

    /// The tasks that were recorded, as events.
    fn samples(&self) -> impl Iterator<Item = (&Event, Sample)> {
        self.workers.iter().flat_map(|worker| &worker.events).filter_map(|event| match event.what {
            What::Task(sample) => Some((event, sample)),
            _ => None,
        })
    }
}

impl Recorded {
    /// When it was kept from its queue for longer than that.
    fn kept(&self, longer_ns: u64) -> Vec<Span> {
        let is_kept = |event: &&Event| matches!(event.what, What::Kept { .. });
        let span = |event: &Event| Span { from_ns: event.began_ns, to_ns: event.ended_ns };
        let spans = self.events.iter().filter(is_kept).map(span);
        spans.filter(|span| span.ns() > longer_ns).collect()
    }
}

/// From one time to another; nothing, if that is not later.
#[derive(Clone, Copy)]
struct Span {
    from_ns: u64,
    to_ns: u64,
}

impl Span {
    fn ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    fn and(self, other: Self) -> Self {
        let (from_ns, to_ns) = (self.from_ns.max(other.from_ns), self.to_ns.min(other.to_ns));
        Self { from_ns, to_ns }
    }
}

/// What is in both, of spans in order that are apart from each other.
fn both(some: Vec<Span>, others: &[Span]) -> Vec<Span> {
    let and = |span: Span| others.iter().map(move |other| span.and(*other));
    some.into_iter().flat_map(and).filter(|span| span.ns() > 0).collect()
}

impl Times {
    /// Of times, each of so many tasks.
    fn of(mut times: Vec<(u64, u32)>) -> Self {
        times.sort_unstable();
        let tasks = times.iter().map(|&(_, tasks)| u64::from(tasks)).sum();
        let at = |share: f64| {
            let mut left = (tasks as f64 * share).ceil() as u64;
            let reached = |&&(_, tasks): &&(u64, u32)| {
                left = left.saturating_sub(tasks.into());
                left == 0
            };
            times.iter().find(reached).map_or(0, |&(ns, _)| ns)
        };
        Self {
            recorded: times.len() as u64,
            tasks,
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            max_ns: times.last().map_or(0, |&(ns, _)| ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(began_ns: u64, ended_ns: u64, what: What) -> Event {
        Event { began_ns, ended_ns, what }
    }

    fn task(ready_ns: u64, began_ns: u64, maker: Option<u32>) -> Event {
        event(began_ns, began_ns + 5, What::Task(Sample { ready_ns, maker, of: 1 }))
    }

    fn recording(workers: [Vec<Event>; 2]) -> Recording {
        let of = |events| Recorded { name: "worker".into(), events };
        Recording { workers: workers.into_iter().map(of).collect() }
    }

    #[test]
    fn times_are_weighed_by_the_tasks_that_they_stand_for() {
        let times = Times::of(vec![(900, 1), (10, 98), (50, 1)]);
        assert_eq!((times.recorded, times.tasks), (3, 100));
        assert_eq!((times.p50_ns, times.p99_ns, times.max_ns), (10, 50, 900));
        assert_eq!(Times::of(Vec::new()), Times::default());
    }

    #[test]
    fn a_task_is_hogged_while_its_makers_worker_is_kept() {
        let kept = |from, to| event(from, to, What::Kept { tasks: 1 });
        let workers = [
            vec![kept(1_000, 3_000), kept(5_000, 5_500), task(2_000, 6_000, Some(0))],
            vec![kept(2_500, 4_000), task(2_000, 6_000, None), task(2_000, 6_000, Some(7))],
        ];
        let recording = recording(workers);
        let hogged = recording.latency(Duration::from_nanos(1_000)).hogged;
        // 2000 to 3000 of the first; of one from outside, what both have: 2500 to 3000.
        assert_eq!((hogged.recorded, hogged.p50_ns, hogged.max_ns), (3, 500, 1_000));
        // The short one, too.
        let hogged = recording.latency(Duration::from_nanos(400)).hogged;
        assert_eq!(hogged.max_ns, 1_500);
        let latency = recording.latency(Duration::from_nanos(1_000));
        assert_eq!((latency.queued.p99_ns, latency.running.p99_ns), (4_000, 5));
        assert_eq!(recording.latency(Duration::MAX).hogged.max_ns, 0);
    }
}
