//! The values of a row of conferences, and its columns.

use antiphon_report::stats::{Quartiles, medians};
use antiphon_report::table::{Cell as Field, si};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Plan;
use super::cases::Cell;
use super::ear::{Class, mouth_to_ear_ms};
use super::hosts;
use super::measure::Figures;
use crate::bench::benchmark::{Benchmark, ColumnsOf, RowOf};
use crate::bench::columns::Columns;
use crate::bench::pools::figures::Latencies;
use crate::bench::ratio::{Better, Ratio};
use crate::bench::report::Beside;

type Row = RowOf<Plan>;

/// The values of a row.
#[derive(Serialize)]
pub struct Summary {
    /// Number of threads; if none of its conferences were sustained, those of one conference.
    threads: usize,
    /// Number of conferences.
    #[serde(flatten)]
    conferences: Spread,
    /// Share of frames that were sent too late.
    #[serde(flatten)]
    breaches: Spread,
    /// Medians of the latencies of each repetition.
    #[serde(serialize_with = "Latencies::report")]
    latency_ns: Latencies,
    /// Mouth-to-ear latency at p99.9, in milliseconds.
    mouth_to_ear_ms: f64,
    /// Class of `mouth_to_ear_ms`.
    mouth_to_ear: &'static str,
    /// Frames sent per second.
    tasks_per_s: Option<f64>,
    /// CPU time used, in CPUs.
    cpus: Option<f64>,
    /// Ratio to the first peer: of the number of conferences with `--most`, otherwise of p99.
    #[serde(flatten)]
    ratio: Ratio,
}

/// The quartiles of a figure, with its key as a prefix.
struct Spread {
    key: &'static str,
    of: Option<Quartiles>,
}

/// `key`, `key_p25` and `key_p75`.
impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { key, of } = self;
        to.collect_map([
            ((*key).to_owned(), of.map(|of| of.median)),
            (format!("{key}_p25"), of.map(|of| of.p25)),
            (format!("{key}_p75"), of.map(|of| of.p75)),
        ])
    }
}

impl Benchmark for Plan {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        let cell = one.cell();
        let lead = |figures: &Figures| match cell.search {
            true => figures.conferences,
            false => figures.latency.p99,
        };
        let conferences = one.quartiles(|figures| figures.conferences);
        let parts = cell.parts(conferences.map_or(1.0, |of| of.median.max(1.0)) as u32);
        let latency: Latencies =
            medians(one.figures().iter().map(|figures| &figures.latency)).unwrap_or_default();
        let mouth_to_ear_ms = mouth_to_ear_ms(latency.p999, self.elsewhere_ms);
        let breaches = one.quartiles(|figures| figures.breaches);
        vec![Summary {
            threads: hosts::threads(one.subject(), cell.size(), parts),
            conferences: Spread { key: "conferences", of: conferences },
            breaches: Spread { key: "breaches", of: breaches },
            latency_ns: latency,
            mouth_to_ear_ms,
            mouth_to_ear: Class::of(mouth_to_ear_ms).name(),
            tasks_per_s: one.median(|figures| figures.frames_per_s),
            cpus: one.median(|figures| figures.cpus),
            ratio: one.ratio("ratio", lead),
        }]
    }

    fn conditions(&self, row: &Row) -> Value {
        let Cell { codec, wait, phase, search, legs, frame, frames, workers, silos, load, .. } =
            row.cell;
        json!({
            "policy": row.ours.then_some(row.subject),
            "case": if search { "most" } else { "fixed" }, "codec": codec.to_string(),
            "wait": wait, "phase": phase, "legs": legs, "frame_bytes": frame, "frames": frames,
            "load": load, "workers": workers, "silos": silos,
        })
    }

    fn columns(&self, rows: &[Row]) -> ColumnsOf<Self> {
        let whole = |count: f64| format!("{count:.0}");
        let percent = |share: f64| format!("{:.3} %", share * 100.0);
        Columns::of(rows)
            .subject("subject")
            .field(">threads", |row| Field::number(row.summary.threads.to_string()))
            .quartiles(">conferences", whole, |of| of.conferences.of)
            .ratio(Better::Neither, |of| of.ratio)
            .quartiles(">breaches", percent, |of| of.breaches.of)
            .time(">p50", |of| of.latency_ns.p50)
            .time(">p99", |of| of.latency_ns.p99)
            .time(">p99.9", |of| of.latency_ns.p999)
            .time(">max", |of| of.latency_ns.max)
            .field("mouth to ear", |row| Field::text(row.summary.mouth_to_ear))
            .number(">frames/s", si, |of| of.tasks_per_s)
            .number(">CPUs", |cpus| format!("{cpus:.2}"), |of| of.cpus)
    }

    fn about(&self, _rows: &[Row]) -> String {
        ABOUT.to_owned()
    }
}

const ABOUT: &str = "\
Medians of repetitions. Threads are those that were started: each pool has one at least. A breach is
a frame that was sent 10 ms after it was due, or later; of most conferences, fewer than 1 % of
frames are. Latencies are from when a frame was due at the mixer to when it was sent. A ratio is the
median of paired ones: of conferences where most are looked for, else of p99. Mouth to ear is p99.9
and what the rest of the way takes (--elsewhere-ms): below 150 ms excellent, to 300 ms good.
";
