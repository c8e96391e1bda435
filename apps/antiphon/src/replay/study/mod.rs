//! The results of the replays.

mod notes;

use std::sync::Arc;

use antiphon_replay::{
    Confidence, Evidence, GLIBC, Plan, Play, Played, Recommendation, Row, Script, Subject, Verdict,
    Work, recommend,
};
use antiphon_report::words::several;
use antiphon_sim::{Arbitration, Machine};
use antiphon_trace::Trace;
use serde_json::{Value, json};

use crate::verdict;

use super::rehearse::{Job, all};

/// The seeds: each row is the median of these replays.
pub const SEEDS: [u64; 3] = [1, 2, 3];
/// The most call sites that are examined.
const SITES: usize = 5;

/// What to replay, and how.
pub struct Asked {
    pub machine: Machine,
    pub locks: Vec<Subject>,
    /// Numbers of threads, ascending.
    pub threads: Vec<usize>,
    pub work: Work,
    pub data_lines: usize,
    pub evidence: Evidence,
    /// Whether only the middle of the recording is replayed.
    pub is_part: bool,
}

/// All results to report.
pub struct Study {
    pub asked: Asked,
    pub command: Vec<String>,
    /// The recorded time from the first event to the last, in nanoseconds.
    pub recorded_ns: u64,
    pub recorded_threads: usize,
    pub takes: u64,
    /// The time that recording took in all threads, which was left out; `None` if that isn't known.
    pub recorder_ns: Option<u64>,
    pub rows: Vec<Row>,
    pub sites: Vec<SiteRow>,
    pub recommendation: Recommendation,
    pub notes: Vec<String>,
    cleaned: antiphon_replay::Cleaned,
}

/// The figures of a call site, with glibc's lock and the most threads.
pub struct SiteRow {
    pub name: String,
    pub takes: u64,
    /// The site's share of all waiting for locks.
    pub wait_share: f64,
    /// How much faster the whole program would be if locks taken at the site were held half as
    /// long: 0.1 is a tenth.
    pub half_the_hold: Option<f64>,
}

impl Study {
    /// Runs all replays. Takes from a moment to minutes.
    pub fn new(trace: &Trace, plan: &Arc<Plan>, asked: Asked) -> Self {
        let mut notes = Vec::new();
        let rows = rows(plan, &asked, Arbitration::Fifo, &asked.locks, &asked.threads, &mut notes);
        let recommendation = recommended(plan, &asked, &rows, &mut notes);
        let sites = sites(trace, plan, &asked, &rows);
        let mut study = Self {
            command: trace.about.command.clone(),
            recorded_ns: trace.ends_ns() - trace.begins_ns(),
            recorded_threads: plan.peak(),
            takes: plan.takes(),
            recorder_ns: (!trace.costs.is_empty()).then(|| plan.recorder_ns()),
            asked,
            rows,
            sites,
            recommendation,
            notes,
            cleaned: plan.cleaned,
        };
        study.note(plan);
        study
    }

    /// The row of a lock with `threads` threads.
    pub fn row(&self, lock: &str, threads: usize) -> Option<&Row> {
        self.rows.iter().find(|row| row.lock == lock && row.threads == threads)
    }

    /// The speed relative to glibc's lock with as many threads.
    pub fn speedup(&self, row: &Row) -> Option<f64> {
        Some(row.ops_per_s()? / self.row(GLIBC, row.threads)?.ops_per_s()?)
    }

    /// The object for scripts.
    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "model": true, "lock": row.lock, "threads": row.threads,
                "ops_per_s": row.ops_per_s().map(f64::round),
                "speedup": self.speedup(row).map(round), "wait_share": row.wait_share().map(round),
                "wall_s": row.mean(|played| played.end_ns as f64 / 1e9),
                "fallback_share": row.mean(Played::fallback_share).map(round),
            })
        };
        let site = |site: &SiteRow| {
            json!({
                "site": site.name, "acquisitions": site.takes,
                "wait_share": round(site.wait_share),
                "half_the_hold": site.half_the_hold.map(round),
            })
        };
        let work = match self.asked.work {
            Work::Fixed => "fixed",
            Work::PerThread => "per-thread",
        };
        let (said, lock) = in_words(self.recommendation.verdict);
        let kinds = |lock: &Subject| {
            let (mutex, spin, rw) = (lock.mutex.name, lock.spin.name, lock.rwlock.name);
            json!({ "mutex": mutex, "spin": spin, "rwlock": rw })
        };
        json!({
            "simulated": self.asked.machine.name,
            "verdict": verdict::json(&verdict::replay::of(self)),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "recommend": {
                "verdict": said, "lock": lock, "why": self.recommendation.why,
                "confidence": self.recommendation.confidence.map(|it| it.to_string()),
            },
            "sites": self.sites.iter().map(site).collect::<Vec<_>>(),
            "locks": self.asked.locks.iter().map(kinds).collect::<Vec<_>>(),
            "recorded": {
                "command": self.command, "threads": self.recorded_threads,
                "acquisitions": self.takes, "wall_s": self.recorded_ns as f64 / 1e9,
                "recorder_s": self.recorder_ns.map(|ns| ns as f64 / 1e9),
                "events": self.asked.evidence.events, "dropped": self.asked.evidence.dropped,
                "cut_off": self.asked.evidence.cut_off, "left_out": self.cleaned.total(),
            },
            "work": work,
            "seeds": SEEDS, "notes": self.notes,
        })
    }
}

/// A verdict in words, and the lock that it names; glibc's lock as `glibc`.
pub fn in_words(verdict: Verdict) -> (&'static str, Option<&'static str>) {
    match verdict {
        Verdict::Use(GLIBC) => ("use", Some("glibc")),
        Verdict::Use(lock) => ("use", Some(lock)),
        Verdict::NoDifference => ("no difference", None),
        Verdict::CannotKnow => ("cannot know", None),
    }
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn rows(
    plan: &Arc<Plan>,
    asked: &Asked,
    arbitration: Arbitration,
    locks: &[Subject],
    threads: &[usize],
    notes: &mut Vec<String>,
) -> Vec<Row> {
    let mut jobs = Vec::new();
    for &threads in threads {
        let scripts = SEEDS.map(|seed| {
            // Only random choices differ by the seed.
            Arc::new(Script::scaled(plan, threads, asked.work, seed))
        });
        for &lock in locks {
            for (seed, script) in SEEDS.into_iter().zip(&scripts) {
                let script = Arc::clone(script);
                jobs.push(Job { play: play(asked, arbitration, seed), script, lock });
            }
        }
    }
    let mut played = all(&jobs).into_iter();
    let mut rows = Vec::new();
    for &threads in threads {
        for lock in locks {
            // All replays of this row are taken first: a failure must not leave some to the next
            // row.
            let seeds: Vec<_> = played.by_ref().take(SEEDS.len()).collect();
            let seeds: Result<Vec<Played>, String> = seeds.into_iter().collect();
            let played = seeds.unwrap_or_else(|stuck| {
                let what = stuck.lines().next().unwrap_or_default();
                notes.push(format!(
                    "{} with {} does not end: {what}",
                    lock.name,
                    several(threads as u64, "thread")
                ));
                Vec::new()
            });
            rows.push(Row { lock: lock.name, threads, played });
        }
    }
    rows
}

fn play(asked: &Asked, arbitration: Arbitration, seed: u64) -> Play {
    Play { machine: asked.machine.clone(), arbitration, seed, data_lines: asked.data_lines }
}

/// The recommendation. Where machines serve the requests for a line in another order, it may
/// differ, and then its confidence is low.
fn recommended(
    plan: &Arc<Plan>,
    asked: &Asked,
    rows: &[Row],
    notes: &mut Vec<String>,
) -> Recommendation {
    let mut said = recommend(rows, asked.evidence);
    let (Verdict::Use(_), Some(&threads)) = (said.verdict, asked.threads.last()) else {
        return said;
    };
    let deployed = asked.locks.iter().copied().filter(|lock| lock.deploys());
    let deployed: Vec<_> = deployed.collect();
    let nearest = self::rows(plan, asked, Arbitration::NEAREST, &deployed, &[threads], notes);
    let other = recommend(&nearest, asked.evidence);
    if other.verdict != said.verdict {
        said.confidence = Some(Confidence::Low);
        let (verdict, lock) = in_words(other.verdict);
        said.why += &format!(
            "; but where the nearest request for a cache line is served first, it is: {verdict}{}",
            lock.map_or(String::new(), |lock| format!(" {lock}"))
        );
    }
    said
}

/// The call sites where threads wait most.
fn sites(trace: &Trace, plan: &Arc<Plan>, asked: &Asked, rows: &[Row]) -> Vec<SiteRow> {
    let threads = asked.threads.last().copied().unwrap_or(0);
    let glibc = rows.iter().find(|row| row.lock == GLIBC && row.threads == threads);
    let Some(glibc) = glibc.and_then(|row| row.played.first()) else { return Vec::new() };
    let mut order: Vec<usize> = (0..glibc.sites.len()).collect();
    order.sort_by_key(|&site| (std::cmp::Reverse(glibc.sites[site].wait_ns), site));
    order.retain(|&site| glibc.sites[site].wait_ns > 0);
    order.truncate(SITES);
    let Some(lock) = Subject::named(GLIBC) else { return Vec::new() };
    let job = |&site: &usize| {
        let halved = Arc::new(plan.with_half_the_hold(site as u32));
        let script = Arc::new(Script::scaled(&halved, threads, asked.work, SEEDS[0]));
        Job { play: play(asked, Arbitration::Fifo, SEEDS[0]), script, lock }
    };
    let jobs: Vec<Job> = order.iter().map(job).collect();
    let row = |(&site, halved): (&usize, Result<Played, String>)| {
        let told = glibc.sites[site];
        let gain = |halved: Played| glibc.end_ns as f64 / halved.end_ns.max(1) as f64 - 1.0;
        SiteRow {
            name: trace.sites.get(site).map_or(String::new(), |site| site.name.clone()),
            takes: told.takes,
            wait_share: told.wait_ns as f64 / glibc.wait_ns.max(1) as f64,
            half_the_hold: halved.ok().map(gain),
        }
    };
    order.iter().zip(all(&jobs)).map(row).collect()
}
