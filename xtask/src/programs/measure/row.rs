//! The figures of one program.

use std::fmt;

use serde_json::{Value, json};

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    low95: f64,
    median: f64,
    high95: f64,
}

impl Ratio {
    fn read(value: &Value) -> Option<Self> {
        let of = |key: &str| value.get(key)?.as_f64();
        Some(Self { low95: of("low95")?, median: of("median")?, high95: of("high95")? })
    }

    /// The ratio of the inverse quantity: for a ratio of times, that of throughputs.
    fn inverse(self) -> Self {
        Self { low95: 1.0 / self.high95, median: 1.0 / self.median, high95: 1.0 / self.low95 }
    }

    fn json(self) -> Value {
        json!({ "median": self.median, "low95": self.low95, "high95": self.high95 })
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.median, self.low95, self.high95)
    }
}

/// The ratios of one program, ours over glibc's.
#[derive(Debug)]
pub struct Row {
    program: String,
    threads: u32,
    /// Operations per second.
    throughput: Ratio,
    /// CPU seconds per operation.
    cpu: Ratio,
    /// Times, by name.
    latencies: Vec<(String, Ratio)>,
}

impl Row {
    /// The names of the columns.
    pub const HEAD: &'static str = "program       threads  throughput               \
                                    CPU an operation         latencies";

    /// The row from the output of `antiphon try --json`. A metric in operations per second is the
    /// throughput; without one, the work is the same each time, and the throughput follows from the
    /// time.
    pub fn of(program: &str, threads: u32, metrics: &[String], trial: &Value) -> Option<Self> {
        let metric = |name: &str| Ratio::read(trial.get("metrics")?.get(name)?.get("ratio")?);
        let (rate, times): (Vec<_>, Vec<_>) =
            metrics.iter().partition(|name| name.ends_with("_per_s"));
        let throughput = match rate.first() {
            Some(name) => metric(name)?,
            None => Ratio::read(trial.get("ratio")?)?.inverse(),
        };
        let latencies = times.into_iter().map(|name| Some((name.clone(), metric(name)?)));
        Some(Self {
            program: program.to_owned(),
            threads,
            throughput,
            cpu: Ratio::read(trial.get("cpu_ratio")?)?,
            latencies: latencies.collect::<Option<_>>()?,
        })
    }

    /// The object for the record.
    pub fn json(&self) -> Value {
        let latencies: serde_json::Map<_, _> =
            self.latencies.iter().map(|(name, ratio)| (name.clone(), ratio.json())).collect();
        json!({
            "program": self.program, "threads": self.threads,
            "throughput": self.throughput.json(), "cpu": self.cpu.json(),
            "latencies": latencies,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (throughput, cpu) = (self.throughput.to_string(), self.cpu.to_string());
        write!(f, "{:<13} {:>7}  {throughput:<23}  {cpu:<23}", self.program, self.threads)?;
        for (name, ratio) in &self.latencies {
            write!(f, "  {name} {ratio}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_the_metric_or_else_the_inverse_of_time() {
        let ratio = |median: f64| json!({ "median": median, "low95": 0.5, "high95": 2.5 });
        let trial = json!({
            "ratio": ratio(0.8), "cpu_ratio": ratio(1.0),
            "metrics": { "ops_per_s": { "ratio": ratio(1.5) }, "p99_ms": { "ratio": ratio(0.7) } },
        });
        let row = Row::of("x", 4, &[], &trial).unwrap();
        assert_eq!(row.throughput, Ratio { low95: 0.4, median: 1.25, high95: 2.0 });
        let metrics = ["ops_per_s".to_owned(), "p99_ms".to_owned()];
        let row = Row::of("x", 4, &metrics, &trial).unwrap();
        assert_eq!(row.throughput.median, 1.5);
        assert_eq!(row.latencies[0].1.median, 0.7);
        assert!(row.to_string().contains("p99_ms 0.700"));
        assert!(Row::of("x", 4, &["missing".to_owned()], &trial).is_none());
    }
}
