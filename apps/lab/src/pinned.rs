//! Threads that stay on their CPUs, and the detection of disturbed measurements.

use std::sync::OnceLock;

use antiphon_linux::{ticks, whereabouts};
use antiphon_sim::CPUS;

use antiphon_report::failure::Failure;
use antiphon_report::stats::quartiles;

use crate::ticks::Ticks;

/// Returns the CPUs of this machine, by the kernel's numbers. Their places in this list are the
/// numbers that the simulator gives them.
fn online() -> &'static [u32] {
    // This reads a file of /sys for each possible number, so it is done once.
    static ONLINE: OnceLock<Vec<u32>> = OnceLock::new();
    ONLINE.get_or_init(|| (0..CPUS as u32).filter(|&cpu| whereabouts(cpu).is_some()).collect())
}

/// Returns the online CPUs that this process may use, by their places in the list of online CPUs.
pub fn usable() -> Vec<usize> {
    let mut set = empty();
    // SAFETY: `set` is a local variable of the given size.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0;
    let may = |&(_, cpu): &(usize, u32)| {
        // SAFETY: `set` is a local variable, and the CPU is within its range.
        failed || cpu < libc::CPU_SETSIZE as u32 && unsafe { libc::CPU_ISSET(cpu as usize, &set) }
    };
    let online: Vec<_> = online().iter().copied().enumerate().filter(may).collect();
    online.into_iter().map(|(place, _)| place).collect()
}

/// Returns the kernel's number of the CPU at a place.
pub fn number(place: usize) -> Option<u32> {
    online().get(place).copied()
}

fn empty() -> libc::cpu_set_t {
    // SAFETY: it is an array of bits, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

/// Pins the calling thread to a CPU, by its place in [`online`].
fn pin(place: usize) -> Result<(), Failure> {
    let pinned = number(place).map(antiphon_linux::pin);
    pinned.and_then(Result::ok).ok_or_else(|| {
        let what = format!("CPU {place} can't be used: see taskset -p $$, and the cgroup's cpuset");
        Failure::missing(what)
    })
}

/// The work of one thread.
pub type Task<'a, R> = Box<dyn FnOnce() -> R + Send + 'a>;

/// Runs `body` once on each of `places`, all at the same time; a place may occur twice. `body` gets
/// the index of its place. Returns the results when all are done.
///
/// # Errors
///
/// If a CPU can't be used. Then no body has begun.
pub fn on_each<R: Send>(
    places: &[usize],
    body: impl Fn(usize) -> R + Sync,
) -> Result<Vec<R>, Failure> {
    let body = &body;
    let task = |(number, &place)| (place, Box::new(move || body(number)) as Task<'_, R>);
    all(places.iter().enumerate().map(task).collect())
}

/// Runs each task on its place, all at the same time. Returns the results when all are done.
///
/// # Errors
///
/// As of [`on_each`].
pub fn all<'a, R: Send>(tasks: Vec<(usize, Task<'a, R>)>) -> Result<Vec<R>, Failure> {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    let (pinned, all_pinned) = (Barrier::new(tasks.len()), AtomicBool::new(true));
    std::thread::scope(|scope| {
        let start = |(place, task): (usize, Task<'a, R>)| {
            let (pinned, all_pinned) = (&pinned, &all_pinned);
            scope.spawn(move || {
                let done = pin(place);
                if done.is_err() {
                    // Relaxed: the barrier orders it.
                    all_pinned.store(false, Relaxed);
                }
                pinned.wait();
                match done {
                    Err(failure) => Err(Some(failure)),
                    Ok(()) if !all_pinned.load(Relaxed) => Err(None),
                    Ok(()) => Ok(task()),
                }
            })
        };
        let threads: Vec<_> = tasks.into_iter().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<R, Option<Failure>>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All threads are joined, even if some failed.
        let ends: Vec<_> = threads.into_iter().map(join).collect();
        let (done, failed): (Vec<_>, Vec<_>) = ends.into_iter().partition(Result::is_ok);
        match failed.into_iter().filter_map(Result::err).flatten().next() {
            Some(failure) => Err(failure),
            None => Ok(done.into_iter().filter_map(Result::ok).collect()),
        }
    })
}

/// Number of times that the calling thread was switched away from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Switches because the thread slept.
    pub voluntary: u64,
    /// Switches because the thread lost its CPU.
    pub preempted: u64,
}

impl Switches {
    /// Returns the counts up to now, by a system call.
    pub fn now() -> Self {
        // SAFETY: all fields are numbers, for which zero is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a local variable; the call can't fail with these arguments.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        Self { voluntary: usage.ru_nvcsw as u64, preempted: usage.ru_nivcsw as u64 }
    }
}

impl Ticks {
    /// Returns the time of `body`, in nanoseconds; `None` if the thread was switched away during
    /// it.
    pub fn undisturbed(self, body: impl FnOnce()) -> Option<f64> {
        let before = Switches::now();
        let begin = ticks();
        body();
        let end = ticks();
        (Switches::now() == before).then(|| self.ns(begin, end))
    }
}

/// The figure of many short windows: the median, and how far the windows agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The median.
    pub median: f64,
    /// 25th percentile.
    pub p25: f64,
    /// 75th percentile.
    pub p75: f64,
    /// Number of windows that count.
    pub windows: usize,
    /// Number of windows that were dropped, because a thread lost its CPU in them.
    pub dropped: usize,
}

/// Minimal number of windows for a figure.
const FEWEST: usize = 8;
/// Interquartile range, as a share of the median, above which a figure is noisy.
const NOISY: f64 = 0.15;

impl Figure {
    /// Computes the figure of windows, each of which has a value or was disturbed. `None` if too
    /// few have a value.
    pub fn of(windows: &[Option<f64>]) -> Option<Self> {
        let values: Vec<f64> = windows.iter().copied().flatten().collect();
        let (count, dropped) = (values.len(), windows.len() - values.len());
        let quartiles = quartiles(values).filter(|_| count >= FEWEST)?;
        let (p25, p75) = (quartiles.p25, quartiles.p75);
        Some(Self { median: quartiles.median, p25, p75, windows: count, dropped })
    }

    /// Returns whether the windows disagree, or most were disturbed.
    pub fn is_noisy(&self) -> bool {
        self.p75 - self.p25 > NOISY * self.median || self.dropped > self.windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_thread_is_on_its_cpu() {
        let places = usable();
        let online = online();
        let twice: Vec<_> = places.iter().chain(&places).copied().collect();
        let seen = Mutex::new(Vec::new());
        let numbers = on_each(&twice, |number| {
            // SAFETY: `sched_getcpu` takes no arguments.
            let cpu = unsafe { libc::sched_getcpu() };
            seen.lock().expect("nobody panics").push((number, cpu as u32));
            number
        });
        let Ok(numbers) = numbers else { panic!("these CPUs may be used") };
        assert_eq!(numbers, (0..twice.len()).collect::<Vec<_>>());
        for (number, cpu) in seen.into_inner().expect("nobody panicked") {
            assert_eq!(cpu, online[twice[number]]);
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_before_anybody_begins() {
        let ran = Mutex::new(0);
        let places = [usable()[0], CPUS];
        assert!(on_each(&places, |_| *ran.lock().expect("nobody panics") += 1).is_err());
        assert_eq!(*ran.lock().expect("nobody panicked"), 0);
    }

    #[test]
    fn a_window_in_which_the_thread_slept_does_not_count() {
        let watch = Ticks::calibrate();
        let slept = watch.undisturbed(|| std::thread::sleep(std::time::Duration::from_millis(1)));
        assert_eq!(slept, None);
    }

    #[test]
    fn a_figure_is_the_median_of_what_was_not_disturbed() {
        let mut windows: Vec<_> = (0..20).map(|value| Some(f64::from(value) + 100.0)).collect();
        windows.extend([None; 5]);
        let figure = Figure::of(&windows).expect("enough windows");
        assert_eq!((figure.median, figure.windows, figure.dropped), (109.5, 20, 5));
        assert!(!figure.is_noisy());
        windows.extend([None; 20]);
        assert!(Figure::of(&windows).is_some_and(|figure| figure.is_noisy()), "most were dropped");
        let apart = [[Some(1.0); 10], [Some(2.0); 10]].concat();
        assert!(Figure::of(&apart).is_some_and(|figure| figure.is_noisy()), "they disagree");
        assert_eq!(Figure::of(&[Some(1.0); FEWEST - 1]), None);
    }
}
