//! Runs many independent replays, on all CPUs.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_replay::{Play, Played, Script, Subject};

use antiphon_report::progress::Progress;
use antiphon_report::words::several;

/// One replay.
pub struct Job {
    pub play: Play,
    pub script: Arc<Script>,
    pub lock: Subject,
}

/// The result of each job, in the order of the jobs, or why its replay did not end.
pub fn all(jobs: &[Job]) -> Vec<Result<Played, String>> {
    let next = AtomicUsize::new(0);
    let progress = Mutex::new(Progress::new(jobs.len()));
    let one = || {
        let mut done = Vec::new();
        // Relaxed: each thread gets another number, and the counter publishes nothing else.
        while let Some((at, job)) = take(jobs, next.fetch_add(1, Relaxed)) {
            let played = job.play.play(&job.script, job.lock).map_err(|stuck| stuck.to_string());
            done.push((at, played));
            let what =
                format!("{}, {}", job.lock.name, several(job.script.threads() as u64, "thread"));
            progress.lock().unwrap_or_else(PoisonError::into_inner).step(&what);
        }
        done
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cpus).map(|_| scope.spawn(one)).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, played)| played).collect()
}

fn take(jobs: &[Job], at: usize) -> Option<(usize, &Job)> {
    Some((at, jobs.get(at)?))
}
