//! A watchdog thread that reports the callback in which a loop is stuck.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{EventLoop, Files, Sighting};

/// Watches a loop until dropped.
#[derive(Debug)]
pub struct Watchdog {
    /// Dropped first, which ends the thread.
    alive: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts a thread that calls `tell` for each callback that runs longer than `limit`: once per
    /// call, while it runs. It checks four times in that time.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn new(
        events: &EventLoop<Files>,
        limit: Duration,
        mut tell: impl FnMut(Sighting) + Send + 'static,
    ) -> io::Result<Self> {
        let (alive, gone) = mpsc::channel();
        let lookout = events.lookout();
        let pause = (limit / 4).max(Duration::from_micros(100));
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let watch = move || {
            // Start of the call that was reported last.
            let mut told = None;
            while gone.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                if let Some(seen) = lookout.sight()
                    && seen.for_ns > limit_ns
                    && told.replace(seen.since_ns) != Some(seen.since_ns)
                {
                    tell(seen);
                }
            }
        };
        let thread = thread::Builder::new().name("antiphon-watchdog".into()).spawn(watch)?;
        Ok(Self { alive: Some(alive), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    /// Waits for the thread to end, which takes at most as long as one call of the reporting
    /// closure.
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // If the callback panics, the panic was printed.
            drop(thread.join());
        }
    }
}
