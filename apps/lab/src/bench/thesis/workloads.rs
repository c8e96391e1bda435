//! The workloads, and the figures by which each is judged.

use std::fmt;

use antiphon_report::table::{duration, si};

use super::mixed;
use crate::bench::mix::{self, hosts};
use crate::bench::neighbours::Load;
use crate::bench::pools::figures;
use crate::bench::repeat::repeat;
use crate::bench::rounds::{self, Outcome};
use crate::bench::{Order, options, packets};
use crate::ticks::Ticks;

/// The workload of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// `bench packets --case general`.
    Packets,
    /// `bench packets --case bimodal`.
    Bimodal,
    /// `bench options`.
    Options,
    /// `bench mix`.
    Mix,
    /// All of the above at once.
    Mixed,
}

/// All workloads, in the order of the report.
pub const WORKLOADS: [Workload; 5] =
    [Workload::Packets, Workload::Bimodal, Workload::Options, Workload::Mix, Workload::Mixed];

/// A column of the report, with one figure.
#[derive(Debug)]
pub struct Column {
    /// The workload of the column.
    pub workload: Workload,
    /// Name of the column.
    pub name: &'static str,
    /// Whether more is better.
    pub more: bool,
    /// Whether it is a time, in nanoseconds.
    pub is_time: bool,
}

/// All columns; those of a workload are in the order of its figures.
pub static COLUMNS: [Column; 16] = [
    Column { more: true, is_time: false, ..time(Workload::Packets, "tasks/s") },
    time(Workload::Packets, "p50"),
    time(Workload::Packets, "p99.9"),
    Column { more: true, is_time: false, ..time(Workload::Bimodal, "tasks/s") },
    time(Workload::Bimodal, "p99"),
    Column { more: true, is_time: false, ..time(Workload::Options, "tasks/s") },
    time(Workload::Options, "p50"),
    time(Workload::Options, "p99"),
    time(Workload::Mix, "p50"),
    time(Workload::Mix, "p99.9"),
    time(Workload::Mixed, "packets p50"),
    time(Workload::Mixed, "packets p99.9"),
    time(Workload::Mixed, "options p50"),
    time(Workload::Mixed, "options p99.9"),
    time(Workload::Mixed, "frames p50"),
    time(Workload::Mixed, "frames p99.9"),
];

const fn time(workload: Workload, name: &'static str) -> Column {
    Column { workload, name, more: false, is_time: true }
}

/// A workload, and its conditions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The workload.
    pub workload: Workload,
    /// Number of threads.
    pub workers: usize,
    /// Number of frames of each leg.
    pub frames: u32,
    /// Size of the load of packets, options and conferences, as a multiple of the usual one.
    pub part: f64,
}

/// Number of conferences when nothing else runs.
const CONFERENCES: f64 = 300.0;

impl Workload {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Bimodal => "bimodal",
            Self::Options => "options",
            Self::Mix => "mix",
            Self::Mixed => "mixed",
        }
    }
}

/// Returns the policies that all workloads support.
pub fn policies() -> [&'static str; 10] {
    hosts::POLICIES
}

impl Cell {
    /// Runs the workload once with a subject. Returns the figures of its columns.
    ///
    /// # Errors
    ///
    /// One line that says why the repetition failed.
    pub fn repeat(
        self,
        subject: &str,
        seed: u64,
        ticks: Ticks,
    ) -> Result<Outcome<Vec<f64>>, String> {
        let Self { workload, workers, frames, part } = self;
        let draw = (seed, ticks);
        match workload {
            Workload::Packets | Workload::Bimodal => {
                let bimodal = workload == Workload::Bimodal;
                let (order, seconds) = packets::usual(bimodal, subject, workers, part, draw);
                let seen = repeat(&Order::Packets(order), seconds)?;
                Ok(seen.map(|seen| if bimodal { of_bimodal(&seen) } else { of_packets(&seen) }))
            }
            Workload::Options => {
                let (order, seconds) = options::usual(subject, workers, part, draw);
                Ok(repeat(&Order::Options(order), seconds)?.map(|seen| of_options(&seen)))
            }
            Workload::Mix => {
                let cell = mix::usual((CONFERENCES * part).ceil() as u32, frames, workers);
                let (order, seconds) = mix::order(subject, cell, seed);
                let seen = repeat(&Order::Mix(order), seconds)?;
                Ok(seen.map(|seen: mix::Figures| vec![seen.latency.p50, seen.latency.p999]))
            }
            Workload::Mixed => {
                let subject = subject.to_owned();
                let order = mixed::Order { subject, workers, frames, part, seed };
                let seconds = mixed::seconds(&order);
                Ok(repeat(&Order::Mixed(order), seconds)?.map(|seen: mixed::Figures| {
                    seen.latency.iter().flat_map(|seen| [seen.p50, seen.p999]).collect()
                }))
            }
        }
    }
}

fn of_packets(seen: &figures::Figures) -> Vec<f64> {
    let latency = seen.latency();
    vec![seen.tasks_per_s, latency.p50, latency.p999]
}

fn of_bimodal(seen: &figures::Figures) -> Vec<f64> {
    vec![seen.tasks_per_s, seen.latency().p99]
}

fn of_options(seen: &figures::Figures) -> Vec<f64> {
    let latency = seen.latency();
    vec![seen.tasks_per_s, latency.p50, latency.p99]
}

impl Column {
    /// Formats a figure for people.
    pub fn show(&self, figure: f64) -> String {
        if self.is_time { duration(figure) } else { si(figure) }
    }

    /// Returns how many times as good one figure is as another.
    pub fn times(&self, one: f64, other: f64) -> f64 {
        if self.more { one / other } else { other / one }
    }
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        Load::Idle
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} workers", self.workload.name(), self.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_workload_stand_together() {
        let order = COLUMNS.each_ref().map(|column| column.workload);
        let firsts: Vec<_> = order.chunk_by(|a, b| a == b).map(|chunk| chunk[0]).collect();
        assert_eq!(firsts, WORKLOADS);
        let seen = figures::Figures::default();
        let count = |workload| order.iter().filter(|&&it| it == workload).count();
        assert_eq!(of_packets(&seen).len(), count(Workload::Packets));
        assert_eq!(of_bimodal(&seen).len(), count(Workload::Bimodal));
        assert_eq!(of_options(&seen).len(), count(Workload::Options));
    }

    #[test]
    fn better_is_more_of_some_and_less_of_others() {
        assert_eq!(COLUMNS[0].times(3.0, 2.0), 1.5);
        assert_eq!(COLUMNS[1].times(3.0, 2.0), 2.0 / 3.0);
    }
}
