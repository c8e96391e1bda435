//! The CPU time that others used while we measured: figures of an idle machine need it.

use std::time::Instant;

use antiphon_report::cpu_time;

/// The kernel's counts up to some moment.
pub struct Moment {
    at: Instant,
    /// CPU seconds of all processes.
    busy_s: f64,
    /// CPU seconds of the repetitions that have ended.
    ours_s: f64,
}

impl Moment {
    /// This moment. `None` where `/proc/stat` can't be read.
    pub fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        Some(Self { at: Instant::now(), busy_s: busy(&stat)?, ours_s: cpu_time::of_children() })
    }

    /// How many CPUs others have used on average after this moment.
    pub fn others_since(&self) -> Option<f64> {
        let now = Self::now()?;
        let others = (now.busy_s - self.busy_s) - (now.ours_s - self.ours_s);
        Some((others / (now.at - self.at).as_secs_f64()).max(0.0))
    }
}

/// The busy time in seconds, from the first line, `cpu user nice system idle iowait irq softirq
/// steal …`, which is in hundredths of a second: all but `idle` and `iowait`.
fn busy(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line.split_whitespace().take(8).flat_map(str::parse).collect();
    let idle = times.get(3)? + times.get(4)?;
    Some((times.iter().sum::<u64>() - idle) as f64 / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_busy_when_it_is_not_idle() {
        assert_eq!(busy("cpu  40 0 20 130 10 0 0 0 0 0\ncpu0 1"), Some(0.6));
        assert_eq!(busy("cpu  40 0"), None);
        assert_eq!(busy(""), None);
    }

    #[test]
    fn nobody_uses_less_than_nothing() {
        let others = Moment::now().and_then(|moment| moment.others_since());
        assert!(others.is_none_or(|cpus| cpus >= 0.0));
    }
}
