//! The recording of a pool: the events of each worker, and the latencies of tasks.

use std::fmt;
use std::time::Duration;

use antiphon_runtime::flight::{Event, What};

use super::timed::{Part, Timed};
use crate::deadline::nanos;

/// The recent events of the workers of a pool: see
/// [`Pool::recording`](crate::pool::Pool::recording).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// The events of each worker, by its worker slot.
    pub workers: Vec<Recorded>,
    /// The tasks that were timed, including fibers that have not ended.
    pub tasks: Vec<Timed>,
}

/// The events of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// The name of the worker's thread.
    pub name: String,
    /// The events in the order in which they ended: tasks that a worker ran while another task
    /// waited come before that task.
    pub events: Vec<Event>,
}

/// How long tasks took, split into the parts of their time: see [`Recording::latency`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// Time from when a task was made ready until it began.
    pub queued: Times,
    /// Time that a task ran. For a closure: from its beginning to its end, including other tasks
    /// that its worker ran while it waited.
    pub running: Times,
    /// Time that a fiber was suspended, until it could continue.
    pub waiting: Times,
    /// Time that a fiber could continue while others ran.
    pub runnable: Times,
    /// The part of `queued` in which the worker that had made the task ready was kept from its
    /// queue (for a task from outside: all workers were), and the part of `runnable` that
    /// [`Timed::hogged_ns`] describes.
    pub hogged: Times,
}

/// Times of many tasks, in nanoseconds. Its `Display` is one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// The number of tasks that were recorded.
    pub recorded: u64,
    /// The number of tasks that the recorded tasks stand for.
    pub tasks: u64,
    /// The median: half of the tasks took no longer.
    pub p50_ns: u64,
    /// 9 of 10 tasks took no longer.
    pub p90_ns: u64,
    /// 99 of 100 tasks took no longer.
    pub p99_ns: u64,
    /// 999 of 1000 tasks took no longer.
    pub p999_ns: u64,
    /// The longest time that was recorded.
    pub max_ns: u64,
}

/// The spans in which workers were kept from their queues.
struct Away {
    each: Vec<Vec<Span>>,
    /// The spans in which all workers were kept.
    all: Vec<Span>,
}

impl Recording {
    /// Returns quantiles of how long recorded tasks that have ended waited and ran, and of how long
    /// they waited because a worker was kept from its queue for longer than `kept`, at least 250 µs
    /// ([`LONG_NS`](antiphon_runtime::flight::LONG_NS)). The `Display` of the result is a table.
    #[must_use]
    pub fn latency(&self, kept: Duration) -> Latency {
        let away = Away::of(&self.workers, nanos(kept));
        let times = |spent: &dyn Fn(&Timed) -> u64| {
            let over = self.tasks.iter().filter(|task| task.is_over);
            Times::of(over.map(|task| (spent(task), task.sample.of)).collect())
        };
        Latency {
            queued: times(&|task| task.spent_ns(Part::Queued)),
            running: times(&|task| task.spent_ns(Part::Running)),
            waiting: times(&|task| task.spent_ns(Part::Waiting)),
            runnable: times(&|task| task.spent_ns(Part::Runnable)),
            hogged: times(&|task| away.queued_ns(task) + task.late_ns),
        }
    }

    /// Returns the `most` timed tasks that spent the most time in `part`, the worst first,
    /// including fibers that have not ended.
    ///
    /// ```
    /// use antiphon::{fiber, pool::{Pool, recording::Part}};
    /// use std::time::Duration;
    ///
    /// // SAFETY: no fiber waits while it makes a thread-local.
    /// let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
    /// pool.spawn(|| fiber::sleep(Duration::from_millis(5))).join().unwrap();
    /// let recording = pool.recording();
    /// let worst = recording.worst(Part::Waiting, 1);
    /// assert!(worst[0].waiting_ns > worst[0].running_ns);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn worst(&self, part: Part, most: usize) -> Vec<&Timed> {
        let mut tasks: Vec<_> = self.tasks.iter().collect();
        tasks.sort_by_key(|task| std::cmp::Reverse(task.spent_ns(part)));
        tasks.truncate(most);
        tasks
    }

    /// Makes the recording of a pool from the events of its workers and the tasks of its ledger.
    pub(crate) fn of(workers: Vec<Recorded>, ledger: Vec<Timed>, hog_ns: u64) -> Self {
        let closures = workers.iter().flat_map(|worker| {
            worker.events.iter().filter_map(|event| Timed::closure(&worker.name, event))
        });
        // A pool has either a ledger, whose tasks have numbers, or closures.
        let closures = (0..).zip(closures).map(|(number, task)| Timed { number, ..task });
        let mut tasks: Vec<_> = ledger.into_iter().chain(closures).collect();
        let away = Away::of(&workers, hog_ns);
        for task in &mut tasks {
            task.hogged_ns = task.late_ns + away.queued_ns(task);
        }
        Self { workers, tasks }
    }
}

impl Away {
    /// Finds the spans in which workers were away for longer than `longer_ns` nanoseconds.
    fn of(workers: &[Recorded], longer_ns: u64) -> Self {
        let each: Vec<_> = workers.iter().map(|worker| worker.kept(longer_ns)).collect();
        let first = each.first().cloned().unwrap_or_default();
        let all = each.iter().skip(1).fold(first, |all, one| both(&all, one));
        Self { each, all }
    }

    /// Returns the part of a task's time in the queue in which the worker of that queue was away.
    fn queued_ns(&self, task: &Timed) -> u64 {
        let maker = task.sample.maker;
        let spans = maker.map_or(Some(&self.all), |seat| self.each.get(seat as usize));
        let spans = spans.map_or(&[][..], Vec::as_slice);
        let wait = Span { from_ns: task.sample.ready_ns, to_ns: task.began_ns };
        let first = spans.partition_point(|span| span.to_ns <= wait.from_ns);
        let these = spans[first..].iter().take_while(|span| span.from_ns < wait.to_ns);
        these.map(|span| span.and(wait).ns()).sum()
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["p50", "p90", "p99", "p99.9", "max"].map(|head| format!("{head:>10}"));
        write!(f, "{:8}{}", "", heads.concat())?;
        let rows = [self.queued, self.running, self.waiting, self.runnable, self.hogged];
        for (part, times) in Part::ALL.into_iter().zip(rows) {
            write!(f, "\n{:8}{times}", part.name())?;
        }
        Ok(())
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p50_ns, p90_ns, p99_ns, p999_ns, max_ns, .. } = *self;
        [p50_ns, p90_ns, p99_ns, p999_ns, max_ns].into_iter().try_for_each(|ns| {
            let time = format!("{:.1?}", Duration::from_nanos(ns));
            write!(f, "{time:>10}")
        })
    }
}

impl Recorded {
    /// Returns the spans of more than `longer_ns` in which the worker was kept from its queue.
    fn kept(&self, longer_ns: u64) -> Vec<Span> {
        let is_kept = |event: &&Event| matches!(event.what, What::Kept { .. });
        let span = |event: &Event| Span { from_ns: event.began_ns, to_ns: event.ended_ns };
        let spans = self.events.iter().filter(is_kept).map(span);
        spans.filter(|span| span.ns() > longer_ns).collect()
    }
}

/// A span from one time to another; empty if `to_ns` is not later.
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

/// Returns the intersection of two sorted lists of disjoint spans.
fn both(some: &[Span], others: &[Span]) -> Vec<Span> {
    let (mut both, mut at, mut at_others) = (Vec::new(), 0, 0);
    while let (Some(one), Some(other)) = (some.get(at), others.get(at_others)) {
        let span = one.and(*other);
        if span.ns() > 0 {
            both.push(span);
        }
        // The span that ends first does not overlap with later spans.
        if one.to_ns < other.to_ns { at += 1 } else { at_others += 1 }
    }
    both
}

impl Times {
    /// Computes quantiles of times, each with the number of tasks that it stands for.
    pub(crate) fn of(mut times: Vec<(u64, u32)>) -> Self {
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
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: times.last().map_or(0, |&(ns, _)| ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use antiphon_runtime::flight::Sample;

    use super::*;

    fn event(began_ns: u64, ended_ns: u64, what: What) -> Event {
        Event { began_ns, ended_ns, what }
    }

    fn task(ready_ns: u64, began_ns: u64, maker: Option<u32>) -> Event {
        event(began_ns, began_ns + 5, What::Task(Sample { ready_ns, maker, of: 1 }))
    }

    fn recording(workers: [Vec<Event>; 2]) -> Recording {
        let of = |events| Recorded { name: "worker".into(), events };
        Recording::of(workers.into_iter().map(of).collect(), Vec::new(), 1_000)
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
        // First worker: 2000 to 3000. For the task from outside, both workers: 2500 to 3000.
        assert_eq!((hogged.recorded, hogged.p50_ns, hogged.max_ns), (3, 500, 1_000));
        // The short span counts, too.
        let hogged = recording.latency(Duration::from_nanos(400)).hogged;
        assert_eq!(hogged.max_ns, 1_500);
        let latency = recording.latency(Duration::from_nanos(1_000));
        assert_eq!((latency.queued.p99_ns, latency.running.p99_ns), (4_000, 5));
        assert_eq!(recording.latency(Duration::MAX).hogged.max_ns, 0);
        // The result is the same with the pool's own bound.
        let worst = recording.worst(Part::Hogged, 2);
        assert_eq!(worst.iter().map(|task| task.hogged_ns).collect::<Vec<_>>(), [1_000, 500]);
    }

    /// This also holds if a task of a pool of fibers did not run on a fiber.
    #[test]
    fn each_task_has_a_number_of_its_own() {
        let numbers = |recording: &Recording| {
            recording.tasks.iter().map(|task| task.number).collect::<Vec<_>>()
        };
        let closures = recording([vec![task(0, 1, None)], vec![task(0, 1, None)]]);
        assert_eq!(numbers(&closures), [0, 1]);
        let timed = |number, is_fiber| {
            let sample = Sample { ready_ns: 0, maker: None, of: 1 };
            Timed { is_fiber, ..Timed::begin(number, "worker".into(), sample, 1) }
        };
        let ledger = vec![timed(1, true), timed(7, false)];
        assert_eq!(numbers(&Recording::of(Vec::new(), ledger, 1_000)), [1, 7]);
    }
}
