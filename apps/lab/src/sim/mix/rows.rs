//! Rows: figures of a subject, for scripts and for people.
//!
//! | key | what |
//! |---|---|
//! | `case` | `fixed`: a given number of conferences; `most`: as many as are sustained |
//! | `ops_per_s` | frames sent per second of simulated time |
//! | `conferences` | number of conferences; in `most`, as many as are sustained |
//! | `breaches` | the share of frames that were sent 10 ms after they were due, or later |
//! | `published_breaches` | what the dissertation measured, if it is known |
//! | `p50_ns` … `max_ns` | from when a frame was due at the mixer to when it was sent |
//! | `mouth_to_ear_ms`, `mouth_to_ear` | p99.9 plus the delay of the rest of the path; its class |
//! | `busy` | share of the workers' time in which parts compute |
//! | `remote_transfers_per_frame` | cache lines that moved from another node |
//! | `parks`, `wakes` | of workers |

use antiphon_report::failure::Failure;
use antiphon_report::table::{Cell, Table, duration};
use antiphon_sim::Machine;
use serde_json::{Value, json};

use super::bridge::{Figures, Setting, hold};
use super::codecs::Codec;
use super::subjects::Subject;
use crate::bench::mix::ear::{Class, ELSEWHERE_MS, mouth_to_ear_ms};
use crate::sim::report::{joined, row, trace};

/// The figures of a subject under some conditions.
pub struct Row {
    subject: Subject,
    codec: &'static Codec,
    workers: usize,
    /// Whether the most conferences that are sustained were searched for.
    searched: bool,
    /// Whether the legs and the beginning are as published.
    as_published: bool,
    /// Number of conferences and their figures; `None` if not even one conference is sustained.
    held: Option<(usize, Figures)>,
}

/// A number of conferences is sustained if fewer than this share of frames is late.
const SUSTAINED: f64 = 0.01;
/// The search ends when the least number that failed is within this factor of the most that was
/// sustained.
const NEAR: f64 = 1.02;
/// Maximal number of conferences that are tried.
pub const MOST: usize = 1 << 15;

impl Row {
    /// Makes the row of a given number of conferences.
    ///
    /// # Errors
    ///
    /// If the workers deadlock.
    pub fn of(setting: &Setting<'_>, subject: Subject) -> Result<Self, Failure> {
        let figures = held(setting, subject)?;
        Ok(Self::new(setting, subject, false, Some((setting.conferences, figures))))
    }

    /// Makes the row of the most conferences that are sustained. The search begins with the
    /// setting's number.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of).
    pub fn most(setting: &Setting<'_>, subject: Subject) -> Result<Self, Failure> {
        let best = most(setting.conferences, |conferences| {
            let figures = held(&Setting { conferences, ..*setting }, subject)?;
            Ok::<_, Failure>((breaches(&figures) < SUSTAINED).then_some(figures))
        })?;
        Ok(Self::new(setting, subject, true, best))
    }

    fn new(
        setting: &Setting<'_>,
        subject: Subject,
        searched: bool,
        held: Option<(usize, Figures)>,
    ) -> Self {
        let &Setting { codec, workers, legs, together, .. } = setting;
        let as_published = codec.name == "published" && together && legs == 2;
        Self { subject, codec, workers, searched, as_published, held }
    }

    /// Returns the share of frames that were sent too late.
    pub fn breaches(&self) -> Option<f64> {
        self.held.as_ref().map(|(_, figures)| breaches(figures))
    }

    /// Returns the number of conferences.
    pub fn conferences(&self) -> usize {
        self.held.as_ref().map_or(0, |(conferences, _)| *conferences)
    }

    /// Returns the object for scripts.
    pub fn object(&self, machine: &Machine) -> Value {
        let keys = json!({
            "case": case_name(self.searched), "codec": self.codec.name,
            "conferences": self.conferences(), "breaches": self.breaches(),
            "published_breaches": self.published(),
        });
        let held = self.held.as_ref().map_or(Value::Null, |(_, figures)| self.keys(figures));
        row(machine, self.subject.name, self.workers, joined(keys, held))
    }

    fn keys(&self, figures: &Figures) -> Value {
        let Figures { frames, span_ns, latency, counts, .. } = figures;
        let ear_ms = mouth_to_ear_ms(latency.quantile(0.999), ELSEWHERE_MS);
        json!({
            "frames": frames, "ops_per_s": *frames as f64 * 1e9 / *span_ns as f64,
            "p50_ns": latency.quantile(0.5), "p99_ns": latency.quantile(0.99),
            "p999_ns": latency.quantile(0.999), "p9999_ns": latency.quantile(0.9999),
            "max_ns": latency.max(), "mouth_to_ear_ms": ear_ms,
            "mouth_to_ear": Class::of(ear_ms).name(), "busy": self.busy(figures),
            "remote_transfers_per_frame": remote(figures), "parks": counts.parks,
            "wakes": counts.wakes, "trace": trace(figures.trace),
        })
    }

    fn busy(&self, figures: &Figures) -> f64 {
        let worked_ns = figures.worked_ns - figures.ahead_ns;
        worked_ns as f64 / (figures.span_ns as f64 * self.workers as f64)
    }

    /// Returns the dissertation's published figure for 1400 conferences on 100 domains, in
    /// multiples of half a percent.
    fn published(&self) -> Option<f64> {
        let known = self.as_published && (self.workers, self.conferences()) == AT;
        PUBLISHED.iter().find(|(name, _)| known && *name == self.subject.name).map(|it| it.1)
    }
}

/// Workers and conferences of the published figures.
const AT: (usize, usize) = (100, 1400);
const PUBLISHED: [(&str, f64); 5] = [
    ("lifo", 0.01),
    ("lifo+silos", 0.005),
    ("fifo", 0.03),
    ("fifo+silos", 0.04),
    // Three pools; their policy is not published.
    ("fifo+stages", 0.065),
];

/// Returns the name of the case in reports.
pub fn case_name(searched: bool) -> &'static str {
    if searched { "most" } else { "fixed" }
}

fn held(setting: &Setting<'_>, subject: Subject) -> Result<Figures, Failure> {
    hold(setting, subject).map_err(|stuck| Failure::measured(format!("{}: {stuck}", subject.name)))
}

fn breaches(figures: &Figures) -> f64 {
    figures.late as f64 / figures.frames as f64
}

fn remote(figures: &Figures) -> f64 {
    figures.counts.remote_transfers as f64 / figures.frames as f64
}

/// Returns the largest number for which `hold` returns a value, and the value: doubles the number,
/// then bisects.
fn most<T, E>(
    first: usize,
    mut hold: impl FnMut(usize) -> Result<Option<T>, E>,
) -> Result<Option<(usize, T)>, E> {
    let (mut best, mut bad) = (None, MOST + 1);
    let mut next = first.min(MOST);
    loop {
        match hold(next)? {
            Some(held) => best = Some((next, held)),
            None => bad = next,
        }
        let good = best.as_ref().map_or(0, |(good, _)| *good);
        if bad <= good + 1 || bad as f64 <= good as f64 * NEAR {
            return Ok(best);
        }
        next = match good {
            0 => bad / 2,
            _ if bad > MOST => (good * 2).min(MOST),
            _ => good.midpoint(bad),
        };
    }
}

/// Returns the table of these rows.
pub fn table(rows: &[Row], colour: bool) -> String {
    let percent = |share| Cell::known(share, |share: f64| format!("{:.2} %", share * 100.0));
    let held = |row: &Row, show: &dyn Fn(&Figures) -> String| match &row.held {
        Some((_, figures)) => Cell::number(show(figures)),
        None => Cell::text(""),
    };
    let late = |row: &Row, share| held(row, &|of| duration(of.latency.quantile(share)));
    let table = Table::of(
        rows,
        &[
            ("", &|row| Cell::text(row.subject.name)),
            (">workers", &|row| Cell::number(row.workers.to_string())),
            (">conferences", &|row| Cell::number(row.conferences().to_string())),
            (">breaches", &|row| percent(row.breaches())),
            (">published", &|row| percent(row.published())),
            (">p50", &|row| late(row, 0.5)),
            (">p99", &|row| late(row, 0.99)),
            (">p99.9", &|row| late(row, 0.999)),
            (">max", &|row| held(row, &|of| duration(of.latency.max() as f64))),
            (">busy", &|row| held(row, &|of| format!("{:.2}", row.busy(of)))),
            (">far", &|row| held(row, &|of| format!("{:.1}", remote(of)))),
        ],
    );
    table.render(colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_found_within_two_percent() {
        for first in [1, 10, 700, MOST, 2 * MOST] {
            for can in [0, 1, 2, 3, 99, 1000, MOST - 1, MOST] {
                let mut tries = 0;
                let found = most(first, |count| {
                    tries += 1;
                    Ok::<_, ()>((count <= can).then_some(count))
                });
                let (found, same) = found.expect("no error").unwrap_or_default();
                assert_eq!(found, same);
                assert!(found <= can && found as f64 * NEAR + 1.0 >= can as f64, "{first} {can}");
                assert!(tries < 40, "{tries}");
            }
        }
        assert_eq!(most(4, |_| Err::<Option<()>, _>("lost")), Err("lost"));
    }
}
