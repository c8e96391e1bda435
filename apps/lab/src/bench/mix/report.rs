//! From repetitions to rows, for scripts and for people.

use antiphon_report::stats::{Quartiles, median, quartiles};
use antiphon_report::table::{Cell as Field, Table, Tone, duration, si};
use serde_json::{Map, Value, json};

use super::cases::Cell;
use super::ear::{Class, mouth_to_ear_ms};
use super::hosts;
use super::measure::Figures;
use crate::bench::pools::figures::Latencies;
use crate::bench::ratio::Ratio;
use crate::bench::rounds::{Measured as Of, Rounds, Trouble, mean};
use crate::bench::tables::trouble;

/// The measurements of one subject in one cell.
pub type Measured = Of<Cell, Figures>;

/// The results of one subject in one cell.
pub struct Row {
    subject: &'static str,
    ours: bool,
    cell: Cell,
    repetitions: usize,
    conferences: Option<Quartiles>,
    breaches: Option<Quartiles>,
    latency: Latencies,
    /// All of the way from mouth to ear at p99.9, in milliseconds.
    mouth_to_ear_ms: f64,
    frames_per_s: Option<f64>,
    cpus: Option<f64>,
    /// The ratio to the first peer: of conferences where most are looked for, else of p99.
    ratio: Option<Ratio>,
    others_cpus: Option<f64>,
    trouble: Option<Trouble>,
}

/// Everything that is printed.
pub struct Report {
    reference: Option<&'static str>,
    rows: Vec<Row>,
    seed: u64,
}

/// Makes rows of the measurements.
pub fn put_together(rounds: &Rounds, measured: &[Measured], elsewhere_ms: u16) -> Report {
    let reference = rounds.peers.first().copied();
    let peer = |one: &Measured| {
        measured.iter().find(|other| other.cell == one.cell && Some(other.subject) == reference)
    };
    let rows = measured.iter().map(|one| {
        let ours = rounds.subjects.contains(&one.subject);
        let row = row(one, peer(one));
        let mouth_to_ear_ms = mouth_to_ear_ms(row.latency.p999, elsewhere_ms);
        Row { ours, mouth_to_ear_ms, ..row }
    });
    Report { reference, rows: rows.collect(), seed: rounds.seed }
}

fn row(one: &Measured, peer: Option<&Measured>) -> Row {
    let values = |of: fn(&Figures) -> f64| one.figures.iter().map(of).collect::<Vec<_>>();
    let lead: fn(&Figures) -> f64 =
        if one.cell.search { |figures| figures.conferences } else { |figures| figures.latency.p99 };
    let ratio = peer.and_then(|peer| {
        Ratio::of(one.figures.iter().zip(&peer.figures).map(|(a, b)| (lead(a), lead(b))))
    });
    Row {
        subject: one.subject,
        ours: false,
        cell: one.cell,
        repetitions: one.figures.len(),
        conferences: quartiles(values(|figures| figures.conferences)),
        breaches: quartiles(values(|figures| figures.breaches)),
        latency: Latencies::medians(one.figures.iter().map(|figures| &figures.latency)),
        mouth_to_ear_ms: 0.0,
        frames_per_s: median(values(|figures| figures.frames_per_s)),
        cpus: median(values(|figures| figures.cpus)),
        ratio,
        others_cpus: one.others_cpus(),
        trouble: one.trouble.clone(),
    }
}

impl Report {
    /// The failures, in one line.
    pub fn trouble(&self) -> Option<String> {
        Trouble::failures(self.rows.iter().filter_map(|row| row.trouble.as_ref()))
    }

    /// CPUs that others used on average while the machine was meant to be idle.
    pub fn others_cpus(&self) -> Option<f64> {
        mean(self.rows.iter().filter_map(|row| row.others_cpus))
    }

    /// The object for scripts.
    pub fn json(&self) -> Value {
        let rows: Vec<_> = self.rows.iter().map(|row| row.object(self.reference)).collect();
        json!({ "rows": rows, "seed": self.seed })
    }

    /// The tables for people.
    pub fn text(&self, colour: bool) -> String {
        let mut text = String::new();
        for rows in self.rows.chunk_by(|a, b| a.cell == b.cell) {
            text += &format!("{}\n{}\n", rows[0].cell, self.table(rows).render(colour));
        }
        text + RULE
    }

    fn table(&self, rows: &[Row]) -> Table {
        let to = format!(">to {}", self.reference.unwrap_or("nothing"));
        let mut table = Table::new(&[
            "subject",
            ">threads",
            ">conferences",
            ">quartiles",
            &to,
            ">breaches",
            ">quartiles",
            ">p50",
            ">p99",
            ">p99.9",
            ">max",
            "mouth to ear",
            ">frames/s",
            ">CPUs",
        ]);
        rows.iter().for_each(|row| table.row(row.line()));
        table
    }
}

const RULE: &str = "\
Medians of repetitions. Threads are those that were started: each pool has one at least. A breach is
a frame that was sent 10 ms after it was due, or later; of most conferences, fewer than 1 % of
frames are. Latencies are from when a frame was due at the mixer to when it was sent. A ratio is the
median of paired ones: of conferences where most are looked for, else of p99. Mouth to ear is p99.9
and what the rest of the way takes (--elsewhere-ms): below 150 ms excellent, to 300 ms good.
";

impl Row {
    /// How many it has; where none of its conferences could be had, those of one.
    fn threads(&self) -> usize {
        let conferences = self.conferences.map_or(1.0, |of| of.median.max(1.0)) as u32;
        hosts::threads(self.subject, self.cell.size(), self.cell.parts(conferences))
    }

    fn object(&self, reference: Option<&str>) -> Map<String, Value> {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
        let Cell { codec, wait, phase, search, legs, frame, frames, workers, silos, load, .. } =
            self.cell;
        put("subject", json!(self.subject));
        put("policy", json!(self.ours.then_some(self.subject)));
        put("peer", json!(reference));
        put("ours", json!(self.ours));
        put("case", json!(if search { "most" } else { "fixed" }));
        put("codec", json!(codec.to_string()));
        put("wait", json!(wait.name()));
        put("phase", json!(phase.name()));
        put("legs", json!(legs));
        put("frame_bytes", json!(frame));
        put("frames", json!(frames));
        put("load", json!(load.name()));
        put("workers", json!(workers));
        put("silos", json!(silos));
        put("repetitions", json!(self.repetitions));
        if let Some(trouble) = &self.trouble {
            let (key, what) = trouble.json();
            put(key, json!(what));
            return object;
        }
        put("threads", json!(self.threads()));
        let mut quartiles = |name: &str, of: Option<Quartiles>| {
            put(name, json!(of.map(|of| of.median)));
            put(&format!("{name}_p25"), json!(of.map(|of| of.p25)));
            put(&format!("{name}_p75"), json!(of.map(|of| of.p75)));
        };
        quartiles("conferences", self.conferences);
        quartiles("breaches", self.breaches);
        put("latency_ns", self.latency.json());
        put("mouth_to_ear_ms", json!(self.mouth_to_ear_ms));
        put("mouth_to_ear", json!(Class::of(self.mouth_to_ear_ms).name()));
        put("tasks_per_s", json!(self.frames_per_s));
        put("cpus", json!(self.cpus));
        put("others_cpus", json!(self.others_cpus));
        Ratio::put(self.ratio, "ratio", &mut object);
        object
    }

    fn line(&self) -> Vec<Field> {
        let name = Field::text(self.subject);
        let name = name.tone(if self.ours { Tone::Plain } else { Tone::Faint });
        if self.trouble.is_some() {
            return vec![name, trouble(self.trouble.as_ref())];
        }
        let number = |value: Option<f64>| value.map_or("-".to_owned(), si);
        let percent = |share: f64| format!("{:.3} %", share * 100.0);
        let of = |quartiles: Option<Quartiles>, show: &dyn Fn(f64) -> String| {
            let middle = quartiles.map_or("-".to_owned(), |of| show(of.median));
            let ends = quartiles.map(|of| format!("{} – {}", show(of.p25), show(of.p75)));
            [Field::number(middle), Field::number(ends.unwrap_or_default()).tone(Tone::Faint)]
        };
        let ratio = self.ratio.map_or("-".to_owned(), |ratio| format!("{:.2}×", ratio.of.median));
        let seen = &self.latency;
        let mut fields = vec![name, Field::number(self.threads().to_string())];
        fields.extend(of(self.conferences, &|count| format!("{count:.0}")));
        fields.push(Field::number(ratio));
        fields.extend(of(self.breaches, &percent));
        let times = [seen.p50, seen.p99, seen.p999, seen.max];
        fields.extend(times.map(|ns| Field::number(duration(ns))));
        fields.push(Field::text(Class::of(self.mouth_to_ear_ms).name()));
        fields.push(Field::number(number(self.frames_per_s)));
        fields.push(Field::number(self.cpus.map_or("-".to_owned(), |cpus| format!("{cpus:.2}"))));
        fields
    }
}
