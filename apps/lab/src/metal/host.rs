//! The times of the same notifications on this machine under Linux: sleeps and wakes of threads,
//! with the mechanisms and the code of `bench events`. The figures are nanoseconds, and those of an
//! image are not: only ratios within one table can be compared.

use std::time::Instant;

use antiphon_report::stats::{median, quantile};
use serde_json::{Value, json};

use crate::bench::events::{Figures, once};

/// The mechanisms; the others are compared with the first. With `+nospin`, the receiver sleeps at
/// once.
const SUBJECTS: [&str; 7] =
    ["futex", "pthread-cond", "eventfd", "signal", "event+nospin", "condvar+nospin", POLLS];
/// The one without a system call.
const POLLS: &str = "spin";

/// The figures of this machine.
pub struct Host {
    /// Number of threads that a broadcast tells.
    pub waiters: usize,
    /// Number of CPUs.
    pub cpus: usize,
    /// The figures `MECHANISM.PART.STATISTIC`, in nanoseconds.
    pub figures: Vec<(String, u64)>,
    /// The mechanisms that could not tell one thread, or several, and why.
    pub missing: Vec<String>,
}

impl Host {
    /// Measures all mechanisms, `trials` times each. A broadcast tells as many threads as a machine
    /// with `cpus` CPUs has other CPUs.
    pub fn measure(cpus: u32, trials: usize) -> Self {
        let waiters = cpus.max(2) as usize - 1;
        let cpus = crate::pinned::usable().len();
        let mut host = Self { waiters, cpus, figures: Vec::new(), missing: Vec::new() };
        let call_ns = empty_call_ns();
        for subject in SUBJECTS {
            if subject != POLLS {
                host.figures.push((format!("{subject}.syscall.min"), call_ns));
            }
            host.add(subject, once(subject, None, trials), "unicast", "source");
            let several = once(subject, Some(waiters), trials);
            host.add(subject, several, "broadcast", "broadcast_source");
        }
        host
    }

    fn add(&mut self, subject: &str, of: Result<Figures, String>, time: &str, source: &str) {
        match of {
            Ok(figures) => {
                self.note(subject, time, figures.latency_ns);
                self.note(subject, source, figures.sender_ns);
                if time == "broadcast" {
                    self.note(subject, "sigma", figures.sigma_ns);
                }
            }
            Err(reason) => self.missing.push(format!("{subject}, {time}: {reason}")),
        }
    }

    fn note(&mut self, subject: &str, part: &str, mut ns: Vec<f64>) {
        ns.sort_by(f64::total_cmp);
        let least = ns.first().copied();
        for (name, value) in
            [("min", least), ("median", median(ns.clone())), ("p99", quantile(&ns, 0.99))]
        {
            // Whole nanoseconds, because the counters are not more precise.
            let value = value.map(|ns| ns.round() as u64);
            self.figures.extend(value.map(|value| (format!("{subject}.{part}.{name}"), value)));
        }
    }

    /// Returns the figures as JSON.
    pub fn json(&self) -> Value {
        let figures: serde_json::Map<_, _> =
            self.figures.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({
            "unit": "nanoseconds",
            "cpus": self.cpus,
            "waiters": self.waiters,
            "figures": figures,
            "missing": self.missing,
        })
    }
}

/// Returns the least time of a system call that does nothing, in nanoseconds.
fn empty_call_ns() -> u64 {
    const CALLS: u32 = 1_000;
    let batch = |_| {
        let began = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: it takes no arguments, and can't fail.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        began.elapsed().as_nanos() as u64 / u64::from(CALLS)
    };
    (0..50).map(batch).min().unwrap_or_default()
}
