//! The parts of the time of tasks, by the line that spawned them.

use std::collections::HashMap;
use std::panic::Location;

use super::recording::{Latency, Recording, Times};
use super::timed::{Part, Timed};

/// The parts of the time of tasks that were spawned at one line: see [`Recording::by_place`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spawned {
    /// The line. `None` if the tasks are from several lines, or closures, whose records have no
    /// room for it.
    pub at: Option<&'static Location<'static>>,
    /// The number of lines.
    pub places: usize,
    /// The number of recorded tasks that have not ended.
    pub live: usize,
    /// Total time in which the tasks, and those that they stand for, could run and did not, in
    /// nanoseconds.
    pub delayed_ns: u64,
    /// The parts of their time; for tasks that have not ended, so far. `hogged` uses the bound of
    /// [`Timed::hogged_ns`].
    pub latency: Latency,
}

impl Recording {
    /// Returns the parts of the time of tasks, by the line that
    /// [spawned](crate::pool::Pool::spawn) them: at most `most` lines, sorted by the total time in
    /// which their tasks could run and did not, and one more entry for all other lines. So 0
    /// returns all tasks in one entry. Tasks that have not ended count too, unlike in
    /// [`latency`](Self::latency).
    ///
    /// ```
    /// use antiphon::{Event, fiber, pool::Pool};
    ///
    /// static NEVER_SET: Event = Event::new();
    ///
    /// // SAFETY: no fiber waits while it makes a thread-local.
    /// let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
    /// let waits = pool.spawn(|| NEVER_SET.wait());
    /// while pool.recording().tasks.is_empty() {}
    /// let places = pool.recording().by_place(8);
    /// println!("spawned at {}: {} live", places[0].at.unwrap(), places[0].live);
    /// assert_eq!((places.len(), places[0].live), (1, 1));
    /// # NEVER_SET.set();
    /// # waits.join().unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn by_place(&self, most: usize) -> Vec<Spawned> {
        let mut places: HashMap<_, Vec<&Timed>> = HashMap::new();
        for task in &self.tasks {
            places.entry(task.spawned_at).or_default().push(task);
        }
        let delayed = |(at, tasks): (_, Vec<_>)| (delayed_ns(&tasks), at, tasks);
        let mut places: Vec<_> = places.into_iter().map(delayed).collect();
        // The order of equal times does not depend on the hash table.
        places.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        let rest = places.split_off(most.min(places.len()));
        let each = places.into_iter().map(|(_, at, tasks)| Spawned::of(at, 1, &tasks));
        let count = rest.len();
        let only = rest.first().filter(|_| count == 1).and_then(|(_, at, _)| *at);
        let others: Vec<_> = rest.into_iter().flat_map(|(_, _, tasks)| tasks).collect();
        each.chain((count > 0).then(|| Spawned::of(only, count, &others))).collect()
    }
}

/// Returns the total time in which these tasks, and those that they stand for, could run and did
/// not.
fn delayed_ns(tasks: &[&Timed]) -> u64 {
    let of = |task: &&Timed| task.delayed_ns().saturating_mul(task.sample.of.into());
    tasks.iter().map(of).fold(0, u64::saturating_add)
}

impl Spawned {
    fn of(at: Option<&'static Location<'static>>, places: usize, tasks: &[&Timed]) -> Self {
        let times = |part| {
            Times::of(tasks.iter().map(|task| (task.spent_ns(part), task.sample.of)).collect())
        };
        let [queued, running, waiting, runnable, hogged] = Part::ALL.map(times);
        Self {
            at,
            places,
            live: tasks.iter().filter(|task| !task.is_over).count(),
            delayed_ns: delayed_ns(tasks),
            latency: Latency { queued, running, waiting, runnable, hogged },
        }
    }
}

#[cfg(test)]
mod tests {
    use antiphon_runtime::flight::Sample;

    use super::*;

    /// Returns a task spawned at `at` that stands for `of`, with these times in the queue, runnable
    /// and waiting.
    fn timed(at: Option<&'static Location<'static>>, of: u32, times: [u64; 3]) -> Timed {
        let sample = Sample { ready_ns: 1_000, maker: None, of };
        let [queued_ns, runnable_ns, waiting_ns] = times;
        let begun = Timed::begin(0, "worker".into(), sample, 1_000 + queued_ns);
        Timed { runnable_ns, waiting_ns, spawned_at: at, ..begun }
    }

    fn here() -> [&'static Location<'static>; 3] {
        #[track_caller]
        fn line() -> &'static Location<'static> {
            Location::caller()
        }
        [line(), line(), line()]
    }

    #[test]
    fn places_are_in_the_order_of_what_their_tasks_suffered() {
        let [one, two, three] = here();
        let tasks = vec![
            timed(Some(one), 1, [10, 20, 900]),
            // A task that stands for many.
            timed(Some(two), 100, [1, 2, 0]),
            Timed { is_over: true, ..timed(Some(one), 1, [30, 0, 5]) },
            timed(Some(three), 1, [1, 0, 70]),
            timed(None, 1, [0, 2, 0]),
        ];
        let recording = Recording { workers: Vec::new(), tasks };
        let places = recording.by_place(9);
        let seen: Vec<_> = places.iter().map(|it| (it.at, it.delayed_ns, it.live)).collect();
        let all = [(Some(two), 300, 1), (Some(one), 60, 1), (None, 2, 1), (Some(three), 1, 1)];
        assert_eq!(seen, all);
        assert!(places.iter().all(|it| it.places == 1));
        let Latency { queued, waiting, .. } = places[1].latency;
        assert_eq!((queued.recorded, queued.p50_ns, queued.max_ns), (2, 10, 30));
        assert_eq!((waiting.p50_ns, waiting.p99_ns), (5, 900));
        assert_eq!(places[0].latency.queued.tasks, 100);
    }

    #[test]
    fn the_rest_is_summed_up() {
        let [one, two, three] = here();
        let tasks = [one, two, three].map(|at| timed(Some(at), 2, [u64::from(at.column()), 0, 7]));
        let recording = Recording { workers: Vec::new(), tasks: tasks.into() };
        let places = recording.by_place(1);
        assert_eq!((places[0].at, places[0].places), (Some(three), 1));
        assert_eq!((places[1].at, places[1].places, places[1].live), (None, 2, 2));
        assert_eq!(places[1].latency.waiting.tasks, 4);
        assert_eq!(places.len(), 2);
        // A single line that remains is reported with its place.
        assert_eq!(recording.by_place(2), recording.by_place(3));
        let all = recording.by_place(0);
        assert_eq!((all.len(), all[0].places, all[0].latency.queued.recorded), (1, 3, 3));
        let nothing = Recording { workers: Vec::new(), tasks: Vec::new() };
        assert_eq!(nothing.by_place(5), []);
    }
}
