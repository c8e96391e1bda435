//! CPU time that other processes used during the measurement: figures of an idle machine need it.

use std::time::Instant;

use antiphon_report::{busy, cpu_time};

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
        let (busy_s, ours_s) = (busy::of_all_cpus_s()?, cpu_time::of_children().all_s());
        Some(Self { at: Instant::now(), busy_s, ours_s })
    }

    /// Returns how many CPUs other processes have used on average since this moment.
    pub fn others_since(&self) -> Option<f64> {
        let now = Self::now()?;
        let others = (now.busy_s - self.busy_s) - (now.ours_s - self.ours_s);
        Some((others / (now.at - self.at).as_secs_f64()).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_uses_less_than_nothing() {
        let others = Moment::now().and_then(|moment| moment.others_since());
        assert!(others.is_none_or(|cpus| cpus >= 0.0));
    }
}
