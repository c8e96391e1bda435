//! Finds out whether another thread of this process sleeps.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A thread whose state is read from `/proc`.
pub struct Sleeper(File);

/// Time limit: a thread that does not sleep by then has lost its CPU, or never sleeps.
const PATIENCE: Duration = Duration::from_millis(20);

impl Sleeper {
    /// Finds the thread that called [`introduce`] with `tid` before it synchronised with the
    /// caller.
    ///
    /// # Errors
    ///
    /// One line, if the thread's state can't be read.
    pub fn of(tid: &AtomicI32) -> Result<Self, String> {
        // Relaxed: the caller has synchronised with the thread since the store.
        let path = format!("/proc/self/task/{}/stat", tid.load(Relaxed));
        let missing =
            |error| format!("can't read from /proc whether a thread sleeps: {path}: {error}");
        File::open(&path).map(Self).map_err(missing)
    }

    /// Waits until all of them sleep, or until the time limit has passed.
    pub fn wait_for(all: &[Self]) {
        let end = Instant::now() + PATIENCE;
        for one in all {
            while !one.sleeps() && Instant::now() < end {}
        }
    }

    fn sleeps(&self) -> bool {
        let mut text = [0; 128];
        let read = self.0.read_at(&mut text, 0).unwrap_or(0);
        state(&text[..read]) == Some(b'S')
    }
}

/// Publishes the id of the calling thread.
pub fn introduce(tid: &AtomicI32) {
    // SAFETY: `gettid` takes no arguments.
    tid.store(unsafe { libc::gettid() }, Relaxed);
}

/// Returns the state letter behind the name. The name may contain any letter, so it ends at the
/// last bracket.
fn state(stat: &[u8]) -> Option<u8> {
    let bracket = stat.iter().rposition(|&letter| letter == b')')?;
    stat.get(bracket + 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_behind_the_name() {
        assert_eq!(state(b"12 (a) R b) S 1 2"), Some(b'S'));
        assert_eq!(state(b"12 (a) R"), Some(b'R'));
        assert_eq!(state(b"12 (a"), None);
    }

    #[test]
    fn a_thread_that_waits_sleeps_and_one_that_looks_does_not() {
        let tids = [const { AtomicI32::new(0) }; 2];
        let (tell, told) = std::sync::mpsc::channel::<()>();
        introduce(&tids[0]);
        std::thread::scope(|scope| {
            let other = &tids[1];
            scope.spawn(move || {
                introduce(other);
                told.recv()
            });
            while tids[1].load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            let [me, other] = [0, 1].map(|index| Sleeper::of(&tids[index]));
            let (Ok(me), Ok(other)) = (me, other) else { panic!("no /proc") };
            while !other.sleeps() {
                std::thread::yield_now();
            }
            assert!(!me.sleeps());
            drop(tell);
        });
    }
}
