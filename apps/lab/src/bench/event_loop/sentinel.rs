//! Lateness of the machine itself: a thread of the highest priority on a CPU only wakes up on time.
//! Its delays (interrupts, a hypervisor with other guests) are beyond the control of any scheduler.
//!
//! The sentinel influences the run: whenever it sleeps again, the kernel picks the next thread, as
//! at its ticks. Where the sentinel wakes more often than the ticks come, other threads run sooner
//! than without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use antiphon_linux::schedule::set_fifo;

use super::schemes::scheduling::ME;
use crate::compete::work::{now_ns, sleep_until};

/// No user thread has a higher priority.
const PRIORITY: u8 = 99;
const SECOND_NS: u64 = 1_000_000_000;

/// A running sentinel.
pub struct Sentinel {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Noise>,
}

/// What a sentinel observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    from_ns: u64,
    /// Maximal lateness in each second from `from_ns` on.
    worst_ns: Vec<u64>,
    /// Number of wake-ups. Each took the CPU from the thread that had it.
    pub wakes: u64,
}

impl Sentinel {
    /// Starts at this time on this CPU, and wakes every `period_ns`.
    ///
    /// # Errors
    ///
    /// One line, if this is not permitted.
    pub fn start(cpu: u32, period_ns: u64, from_ns: u64) -> Result<Self, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let flag = stop.clone();
        let thread = thread::spawn(move || {
            let mut noise = Noise { from_ns, ..Noise::default() };
            let ready = antiphon_linux::pin(cpu).map_err(|_| format!("CPU {cpu} can't be used"));
            let ready =
                ready.and_then(|()| set_fifo(ME, PRIORITY).map_err(|refused| refused.to_string()));
            let begins = ready.is_ok();
            // The thread that started it waits for this message.
            let _ = tell.send(ready);
            let mut at_ns = from_ns;
            // Relaxed: the flag publishes no other data.
            while begins && !flag.load(Relaxed) {
                sleep_until(at_ns);
                let now_ns = now_ns();
                noise.saw(at_ns, now_ns);
                // The missed wake-ups belong to one delay, which is recorded.
                at_ns += period_ns * ((now_ns - at_ns) / period_ns + 1);
            }
            noise
        });
        let ready = told.recv().unwrap_or_else(|_| Err("the sentinel has ended".to_owned()));
        ready.map(|()| Self { stop, thread })
    }

    /// Stops the thread and returns what it observed.
    pub fn end(self) -> Noise {
        // Relaxed: the flag publishes no other data.
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

impl Noise {
    fn second(&self, at_ns: u64) -> usize {
        (at_ns.saturating_sub(self.from_ns) / SECOND_NS) as usize
    }

    fn saw(&mut self, due_ns: u64, woke_ns: u64) {
        self.wakes += 1;
        let seconds = self.second(due_ns)..=self.second(woke_ns);
        self.worst_ns.resize(self.worst_ns.len().max(seconds.end() + 1), 0);
        for worst_ns in &mut self.worst_ns[seconds] {
            *worst_ns = (woke_ns - due_ns).max(*worst_ns);
        }
    }

    /// Returns the maximal lateness in the seconds from that of `from_ns` to that of `to_ns`.
    pub fn worst_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let first = self.second(from_ns);
        let seconds = self.second(to_ns) - first + 1;
        self.worst_ns.iter().skip(first).take(seconds).copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_worst_is_known_by_the_second() {
        let mut noise = Noise { from_ns: 100, ..Noise::default() };
        for (due, woke) in [(100, 105), (SECOND_NS, SECOND_NS + 30), (2 * SECOND_NS + 200, 0)] {
            noise.saw(due, woke.max(due + 2));
        }
        assert_eq!(noise.worst_ns, [30, 0, 2]);
        noise.saw(SECOND_NS, 2 * SECOND_NS + 300);
        assert_eq!((noise.worst_ns(0, 1), noise.worst_ns[2]), (SECOND_NS + 300, SECOND_NS + 300));
        assert_eq!((noise.worst_ns(9 * SECOND_NS, 9 * SECOND_NS), noise.wakes), (0, 4));
    }

    #[test]
    fn it_wakes_where_it_may() {
        let cpu = antiphon_linux::allowed().last().copied().expect("a CPU");
        let from_ns = now_ns();
        match Sentinel::start(cpu, 1_000_000, from_ns) {
            Err(why) => assert!(why.contains("ulimit -r 99"), "{why}"),
            Ok(sentinel) => {
                sleep_until(from_ns + 20_000_000);
                assert!(sentinel.end().wakes > 0);
            }
        }
    }
}
