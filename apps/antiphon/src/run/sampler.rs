//! Samples a program's threads from outside, without stopping them.
//!
//! A thread of this process reads `/proc/PID/task/*` of CMD and of the processes that CMD started.
//! It assumes that what a thread is blocked in now has blocked it since the previous round: an
//! estimate, and the report says so. The time in which threads wanted a CPU and had none is no
//! estimate: the kernel counts it (`schedstat`), up to the last round with each thread.
//!
//! A thread in a recorded wait is left out: what blocks it is known already.
//!
//! The sampler limits its own cost: after each round it sleeps a hundred times as long as the round
//! took, and at least ten milliseconds (one, in the first tenth of a second).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_record::{Lookout, Recording, State};

use super::places::Places;
use super::sleepers::{Sleeper, Sleeps};
use super::waits::{Wait, classify, is_up_to_a_time};

/// The observations of the sampler.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// Seconds in which threads were seen blocked outside of recorded waits, by kind.
    pub blocked_s: BTreeMap<Wait, f64>,
    /// Seconds in which threads wanted a CPU and had none.
    pub run_queue_s: f64,
    /// Number of threads that were seen.
    pub threads: usize,
    /// Number of rounds.
    pub rounds: u64,
    /// Number of samples of a thread that the kernel refused.
    pub refused: u64,
    /// Threads that were seen sleeping for a time.
    pub sleepers: Vec<Sleeper>,
    /// Where threads slept in futexes.
    pub places: Places,
    /// The CPU time of each thread up to the last round with it, by process and thread id.
    pub threads_cpu_s: BTreeMap<(u32, u32), f64>,
    /// Threads that were in a recorded wait when last seen, by process and thread id.
    pub waiting: HashMap<(u32, u32), LastSeen>,
}

/// The times that bound the end of a thread, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastSeen {
    /// The last time when the thread was seen.
    pub there_ns: u64,
    /// The time of the next round, in which it was gone; `None` if there was no further round.
    pub gone_ns: Option<u64>,
}

impl LastSeen {
    fn new(then: Instant, gone: bool) -> Self {
        let now_ns = Linux::now(Clock::Monotonic);
        let there_ns = now_ns.saturating_sub(then.elapsed().as_nanos() as u64);
        Self { there_ns, gone_ns: gone.then_some(now_ns) }
    }
}

/// The sampling thread.
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<Sampled>>,
}

const ROUND: Duration = Duration::from_millis(10);
const FIRST_ROUNDS: Duration = Duration::from_millis(1);
const FIRST: Duration = Duration::from_millis(100);
/// The sampler uses at most one of this many parts of a CPU.
const SHARE: u32 = 100;

impl Sampler {
    /// Starts to sample process `pid` and its descendants, which write to `recording`, if there is
    /// one.
    ///
    /// # Errors
    ///
    /// Those of starting a thread.
    pub fn start(pid: u32, recording: Option<Arc<Recording>>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().spawn(move || {
            let begun = Instant::now();
            let mut watch = Watch::new(pid);
            loop {
                let round = Instant::now();
                let lookout = recording.as_ref().map(|recording| recording.lookout());
                watch.look(round, lookout.transpose()?.as_ref())?;
                let least = if begun.elapsed() < FIRST { FIRST_ROUNDS } else { ROUND };
                match stopped.recv_timeout(least.max(round.elapsed() * SHARE)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return Ok(watch.seen()),
                }
            }
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends the sampling.
    ///
    /// # Errors
    ///
    /// Those of reading the recording.
    pub fn stop(self) -> io::Result<Sampled> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("it ended early")))
    }
}

struct Watch {
    root: u32,
    /// The threads seen in the previous round, by process and thread id.
    threads: HashMap<(u32, u32), Known>,
    /// The run-queue time of threads that have ended.
    run_queue_ns: u64,
    seen: Sampled,
}

/// The state of a thread when it was last seen.
struct Known {
    /// When it was seen first, and last.
    first: Instant,
    seen: Instant,
    /// Its time in a run queue so far, in nanoseconds.
    run_queue_ns: u64,
    /// Whether the thread was in a recorded wait.
    waiting: bool,
    sleeps: Option<Sleeps>,
}

impl Known {
    fn sleeper(self, id: (u32, u32)) -> Option<Sleeper> {
        self.sleeps.map(|sleeps| sleeps.ended(id, self.first, self.seen))
    }
}

impl Watch {
    fn new(root: u32) -> Self {
        Self { root, threads: HashMap::new(), run_queue_ns: 0, seen: Sampled::default() }
    }

    fn look(&mut self, now: Instant, lookout: Option<&Lookout<'_>>) -> io::Result<()> {
        self.seen.rounds += 1;
        let mut processes = vec![self.root];
        while let Some(process) = processes.pop() {
            let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
            for task in tasks.flatten() {
                let Some(thread) = task.file_name().to_str().and_then(|id| id.parse().ok()) else {
                    continue;
                };
                let path = format!("/proc/{process}/task/{thread}");
                self.look_at((process, thread), &path, now, lookout)?;
                let children = fs::read_to_string(format!("{path}/children")).unwrap_or_default();
                processes.extend(children.split_ascii_whitespace().flat_map(str::parse::<u32>));
            }
        }
        for (id, thread) in self.threads.extract_if(|_, thread| thread.seen != now) {
            self.run_queue_ns += thread.run_queue_ns;
            if thread.waiting {
                self.seen.waiting.insert(id, LastSeen::new(thread.seen, true));
            }
            self.seen.sleepers.extend(thread.sleeper(id));
        }
        Ok(())
    }

    fn look_at(
        &mut self,
        id: (u32, u32),
        path: &str,
        now: Instant,
        lookout: Option<&Lookout<'_>>,
    ) -> io::Result<()> {
        let state = || lookout.map_or(Ok(State::default()), |lookout| lookout.state(id.0, id.1));
        let times = fs::read_to_string(format!("{path}/schedstat"));
        let (ran, waited) = times.ok().and_then(|line| run_and_delay(&line)).unwrap_or((0, 0));
        self.seen.threads_cpu_s.insert(id, ran as f64 / 1e9);
        let earlier = state()?;
        let Some(known) = self.threads.get_mut(&id) else {
            let known = Known {
                first: now,
                seen: now,
                run_queue_ns: waited,
                waiting: earlier.waits,
                sleeps: None,
            };
            self.threads.insert(id, known);
            self.seen.threads += 1;
            return Ok(());
        };
        let since = now - known.seen;
        (known.seen, known.run_queue_ns, known.waiting) = (now, waited, earlier.waits);
        // The recording already shows what blocks the thread.
        if earlier.waits {
            return Ok(());
        }
        let line = fs::read_to_string(format!("{path}/syscall"));
        let wait = match &line {
            Ok(line) => classify(line, |other| {
                fs::exists(format!("/proc/{}/task/{other}", id.0)).unwrap_or(false)
            }),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
            Err(_) => {
                self.seen.refused += 1;
                Some(Wait::Other)
            }
        };
        // The state is read before and after: a wait may be shorter than the time between.
        if let Some(wait) = wait
            && !state()?.waited_since(earlier)
        {
            *self.seen.blocked_s.entry(wait).or_default() += since.as_secs_f64();
            match (wait, &line) {
                (Wait::Sleep, Ok(line)) if !is_up_to_a_time(line) => {
                    Sleeps::add(&mut known.sleeps, path, since);
                }
                (Wait::Futex, Ok(line)) => self.seen.places.add(id, line, since),
                _ => {}
            }
        }
        Ok(())
    }

    fn seen(mut self) -> Sampled {
        let alive: u64 = self.threads.values().map(|thread| thread.run_queue_ns).sum();
        let waiting = self.threads.iter().filter(|(_, thread)| thread.waiting);
        let last_seen = waiting.map(|(&id, thread)| (id, LastSeen::new(thread.seen, false)));
        self.seen.waiting.extend(last_seen);
        let sleepers = self.threads.drain().filter_map(|(id, thread)| thread.sleeper(id));
        self.seen.sleepers.extend(sleepers);
        self.seen.run_queue_s = (self.run_queue_ns + alive) as f64 / 1e9;
        self.seen
    }
}

/// The first two numbers of `schedstat`: nanoseconds on a CPU, and in a run queue.
fn run_and_delay(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_on_a_cpu_and_in_a_run_queue_come_first() {
        assert_eq!(run_and_delay("100 200 3\n"), Some((100, 200)));
        assert_eq!(run_and_delay("100"), None);
    }

    /// A recording without a writer, and without a name in any file system.
    fn nothing_recorded() -> Recording {
        let path = std::env::temp_dir().join(format!("antiphon-sampler-{}", std::process::id()));
        let recording = Recording::create(&path, antiphon_record::Scope::Contended);
        std::fs::remove_file(&path).expect("a file");
        recording.expect("a recording")
    }

    #[test]
    fn a_sleeping_thread_of_ours_is_seen_sleeping() {
        let recording = nothing_recorded();
        let mut watch = Watch::new(std::process::id());
        let (stop, stopped) = channel::<()>();
        let sleeper = std::thread::spawn(move || stopped.recv());
        let until = Instant::now() + Duration::from_secs(20);
        while watch.seen.blocked_s.get(&Wait::Futex).is_none_or(|&s| s == 0.0) {
            assert!(Instant::now() < until, "{:?}", watch.seen);
            std::thread::sleep(Duration::from_millis(1));
            let lookout = recording.lookout().expect("a lookout");
            watch.look(Instant::now(), Some(&lookout)).expect("a look");
        }
        drop(stop);
        assert!(sleeper.join().is_ok_and(|ended| ended.is_err()));
        let seen = watch.seen();
        assert!(seen.threads >= 2 && seen.waiting.is_empty(), "{seen:?}");
    }
}
