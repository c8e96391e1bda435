//! Looking at a program's threads from outside, without stopping them.
//!
//! A thread of ours goes through `/proc/PID/task/*` of CMD and of the processes that it started.
//! What it sees a thread blocked in, it takes for what the thread did since it looked last: an
//! estimate, and the report says so. The time that threads wanted a CPU and had none is no
//! estimate: the kernel counts it (`schedstat`), up to the last look at each thread.
//!
//! The sampler bounds its own cost: after each round it sleeps a hundred times as long as the round
//! took, and ten milliseconds at least (one, in the first tenth of a second).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::waits::{Wait, classify};

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// Seconds that threads were seen blocked, by kind.
    pub blocked_s: BTreeMap<Wait, f64>,
    /// Seconds that threads wanted a CPU and had none.
    pub run_queue_s: f64,
    /// Threads that were seen at all.
    pub threads: usize,
    /// Rounds.
    pub rounds: u64,
    /// Looks at a thread that the kernel refused.
    pub refused: u64,
}

/// The sampling thread.
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Sampled>,
}

const ROUND: Duration = Duration::from_millis(10);
const FIRST_ROUNDS: Duration = Duration::from_millis(1);
const FIRST: Duration = Duration::from_millis(100);
/// Our share of one CPU is one of so many, at most.
const SHARE: u32 = 100;

impl Sampler {
    /// Begins to look at process `pid` and its descendants.
    pub fn start(pid: u32) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut watch = Watch::new(pid);
            loop {
                let round = Instant::now();
                watch.look(round);
                let least = if begun.elapsed() < FIRST { FIRST_ROUNDS } else { ROUND };
                match stopped.recv_timeout(least.max(round.elapsed() * SHARE)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return watch.seen(),
                }
            }
        });
        Self { stop, thread }
    }

    /// Ends it.
    pub fn stop(self) -> Sampled {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

struct Watch {
    root: u32,
    /// By thread id: when it was last seen, and its waiting for a CPU by then, in nanoseconds.
    threads: HashMap<u32, (Instant, u64)>,
    /// Of threads that are gone.
    run_queue_ns: u64,
    seen: Sampled,
}

impl Watch {
    fn new(root: u32) -> Self {
        Self { root, threads: HashMap::new(), run_queue_ns: 0, seen: Sampled::default() }
    }

    fn look(&mut self, now: Instant) {
        self.seen.rounds += 1;
        let mut processes = vec![self.root];
        while let Some(process) = processes.pop() {
            let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
            for task in tasks.flatten() {
                let Some(thread) = task.file_name().to_str().and_then(|id| id.parse().ok()) else {
                    continue;
                };
                let path = format!("/proc/{process}/task/{thread}");
                self.look_at(thread, &path, now);
                let children = fs::read_to_string(format!("{path}/children")).unwrap_or_default();
                processes.extend(children.split_ascii_whitespace().flat_map(str::parse::<u32>));
            }
        }
        let gone = |(seen, waited): (Instant, u64)| (seen != now).then_some(waited);
        let gone: u64 = self.threads.values().copied().filter_map(gone).sum();
        self.run_queue_ns += gone;
        self.threads.retain(|_, (seen, _)| *seen == now);
    }

    fn look_at(&mut self, thread: u32, path: &str, now: Instant) {
        let waited = fs::read_to_string(format!("{path}/schedstat"));
        let waited = waited.ok().and_then(|line| run_delay(&line)).unwrap_or(0);
        let before = self.threads.insert(thread, (now, waited));
        let Some((before, _)) = before else {
            self.seen.threads += 1;
            return;
        };
        let wait = match fs::read_to_string(format!("{path}/syscall")) {
            Ok(line) => classify(&line),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
            Err(_) => {
                self.seen.refused += 1;
                Some(Wait::Other)
            }
        };
        if let Some(wait) = wait {
            *self.seen.blocked_s.entry(wait).or_default() += (now - before).as_secs_f64();
        }
    }

    fn seen(mut self) -> Sampled {
        let alive: u64 = self.threads.values().map(|&(_, waited)| waited).sum();
        self.seen.run_queue_s = (self.run_queue_ns + alive) as f64 / 1e9;
        self.seen
    }
}

/// The second number of `schedstat`: nanoseconds in a run queue.
fn run_delay(line: &str) -> Option<u64> {
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_delay_is_the_second_number() {
        assert_eq!(run_delay("100 200 3\n"), Some(200));
        assert_eq!(run_delay("100"), None);
    }

    #[test]
    fn a_sleeping_thread_of_ours_is_seen_sleeping() {
        let mut watch = Watch::new(std::process::id());
        let (stop, stopped) = channel::<()>();
        let sleeper = std::thread::spawn(move || stopped.recv());
        let until = Instant::now() + Duration::from_secs(20);
        while watch.seen.blocked_s.get(&Wait::Futex).is_none_or(|&s| s == 0.0) {
            assert!(Instant::now() < until, "{:?}", watch.seen);
            std::thread::sleep(Duration::from_millis(1));
            watch.look(Instant::now());
        }
        drop(stop);
        assert!(sleeper.join().is_ok_and(|ended| ended.is_err()));
        assert!(watch.seen().threads >= 2);
    }
}
