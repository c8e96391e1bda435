//! CPU time that other processes used during the measurement: figures of an idle machine need it.

use std::time::Instant;

use antiphon_report::cpu_time;

/// The kernel's counts up to a moment.
pub struct Moment {
    at: Instant,
    /// CPU seconds of all processes.
    busy_s: f64,
    /// CPU seconds of the repetitions that have ended.
    ours_s: f64,
}

impl Moment {
    /// Takes the counts now. Returns `None` if `/proc/stat` can't be read.
    pub fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        Some(Self { at: Instant::now(), busy_s: busy(&stat)?, ours_s: cpu_time::of_children() })
    }

    /// Returns how many CPUs other processes have used on average since this moment.
    pub fn others_since(&self) -> Option<f64> {
        let now = Self::now()?;
        let others = (now.busy_s - self.busy_s) - (now.ours_s - self.ours_s);
        Some((others / (now.at - self.at).as_secs_f64()).max(0.0))
    }
}

/// Returns the busy time in seconds, from the first line, `cpu user nice system idle iowait irq
/// softirq steal …`, in hundredths of a second: all columns but `idle` and `iowait`.
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
