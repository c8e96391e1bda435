//! Recommends a lock for the program, if another one than glibc's is better.

use std::fmt;

use crate::locks::IDEAL;
use crate::outcome::Played;
use crate::subject::{GLIBC, Subject};

/// The replays of one lock with one number of threads, one for each seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The lock.
    pub lock: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// The results by seed; empty if a replay did not end.
    pub played: Vec<Played>,
}

impl Row {
    /// Acquisitions per second: the median over the seeds; `None` if a replay did not end.
    #[must_use]
    pub fn ops_per_s(&self) -> Option<f64> {
        let mut all = self.all_ops_per_s();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// The mean share of all threads' time that went into waiting for locks.
    #[must_use]
    pub fn wait_share(&self) -> Option<f64> {
        self.mean(Played::wait_share)
    }

    /// The mean of a figure over the seeds; `None` if a replay did not end.
    #[must_use]
    pub fn mean(&self, of: impl Fn(&Played) -> f64) -> Option<f64> {
        let all = self.played.len();
        (all > 0).then(|| self.played.iter().map(of).sum::<f64>() / all as f64)
    }

    fn all_ops_per_s(&self) -> Vec<f64> {
        self.played.iter().map(Played::takes_per_s).collect()
    }
}

/// The confidence in a recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// The gain is large in all seeds.
    High,
    /// All seeds agree.
    Medium,
    /// The seeds agree on the lock, but not on the gain.
    Low,
}

impl fmt::Display for Confidence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        })
    }
}

/// The change to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run the program with this lock, or leave it unchanged if this is glibc's.
    Use(&'static str),
    /// No lock makes a significant difference.
    NoDifference,
    /// The recording, or its replay, is not good enough for a recommendation.
    CannotKnow,
}

/// The change to make, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recommendation {
    /// The change to make.
    pub verdict: Verdict,
    /// The confidence; `None` where nothing is known.
    pub confidence: Option<Confidence>,
    /// The reason, in one sentence.
    pub why: String,
}

/// The quality of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Number of events in the recording.
    pub events: u64,
    /// Number of events that are missing because they found no room.
    pub dropped: u64,
    /// Whether the end of the recording is missing.
    pub cut_off: bool,
}

/// Ratio below which two locks don't differ.
const DIFFERENCE: f64 = 1.03;
/// Ratio above which no detail of the model explains the difference.
const LARGE: f64 = 1.25;
/// Fewest acquisitions for a statement about locks.
const ENOUGH: u64 = 1000;
/// Largest tolerable share of deviations from the recording.
const TOLERABLE: f64 = 0.01;

/// The recommendation for the largest number of threads of `rows`. Only locks that
/// [deploy](Subject::deploys) are recommended.
#[must_use]
pub fn recommend(rows: &[Row], evidence: Evidence) -> Recommendation {
    let threads = rows.iter().map(|row| row.threads).max().unwrap_or(0);
    let rows: Vec<&Row> = rows.iter().filter(|row| row.threads == threads).collect();
    let cannot = |why| Recommendation { verdict: Verdict::CannotKnow, confidence: None, why };
    if let Some(why) = doubt(evidence) {
        return cannot(why);
    }
    let Some(glibc) = rows.iter().find(|row| row.lock == GLIBC && !row.played.is_empty()) else {
        return cannot("there is no replay with glibc's lock to compare with".to_owned());
    };
    if let Some(why) = doubt_in(glibc) {
        return cannot(why);
    }
    let deploys = |row: &&&Row| Subject::named(row.lock).is_some_and(|lock| lock.deploys());
    let rivals = rows.iter().filter(deploys).filter(|row| row.lock != GLIBC);
    let rate = |row: &Row| row.ops_per_s().unwrap_or(0.0);
    let best = rivals.max_by(|one, other| rate(one).total_cmp(&rate(other)));
    let Some(best) = best.filter(|best| rate(best) > 0.0) else {
        return cannot("no lock that could be put under the program was replayed".to_owned());
    };
    if let Some(why) = doubt_in(best) {
        return cannot(why);
    }
    let ideal = rows.iter().find(|row| row.lock == IDEAL).map(|row| rate(row) / rate(glibc));
    compared(glibc, best, ideal)
}

/// The reason why a recording allows no recommendation, if there is one.
fn doubt(evidence: Evidence) -> Option<String> {
    let Evidence { events, dropped, cut_off } = evidence;
    if cut_off {
        return Some("the recording was cut off: which threads do the same is not in it".into());
    }
    let share = dropped as f64 / (events + dropped).max(1) as f64;
    (share > TOLERABLE)
        .then(|| format!("{:.1} % of the events found no room in the recording", share * 100.0))
}

/// The reason why a replay allows no recommendation, if there is one.
fn doubt_in(row: &Row) -> Option<String> {
    let takes = row.played.iter().map(|played| played.takes).min().unwrap_or(0);
    if takes < ENOUGH {
        return Some(format!("too few acquisitions to tell locks apart: {takes}"));
    }
    let share = |of: fn(&Played) -> f64| row.mean(of).unwrap_or(0.0);
    let fallbacks = share(Played::fallback_share);
    if fallbacks > TOLERABLE {
        return Some(format!(
            "{:.1} % of the waits went otherwise than recorded: threads depend on each other in \
             ways that the recording does not tell",
            fallbacks * 100.0
        ));
    }
    let lost = share(Played::lost_share);
    if lost > TOLERABLE {
        return Some(format!(
            "with {} threads wait {:.1} % of the time for what does not come in that order: the \
             recording does not tell why they waited",
            row.lock,
            lost * 100.0
        ));
    }
    let readers =
        row.mean(|played| played.readers_writer_wait_ns as f64 / played.wait_ns.max(1) as f64);
    let waits = row.wait_share().unwrap_or(0.0);
    (readers.unwrap_or(0.0) > 0.5 && waits > TOLERABLE).then(|| {
        "threads wait at readers-writer locks most, and glibc's is not simulated".to_owned()
    })
}

/// Compares two locks.
fn compared(glibc: &Row, best: &Row, ideal: Option<f64>) -> Recommendation {
    let (ours, theirs) = (best.all_ops_per_s(), glibc.all_ops_per_s());
    let least = |all: &[f64]| all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    let ratio = best.ops_per_s().unwrap_or(0.0) / glibc.ops_per_s().unwrap_or(f64::INFINITY);
    let (apart, lock) = if ratio >= 1.0 {
        (least(&ours) / most(&theirs), best.lock)
    } else {
        (least(&theirs) / most(&ours), GLIBC)
    };
    let threads = best.threads;
    let noun = if threads == 1 { "thread" } else { "threads" };
    let factor = ratio.max(1.0 / ratio);
    if factor < DIFFERENCE || apart <= 1.0 {
        let waits = glibc.wait_share().unwrap_or(0.0) * 100.0;
        let left = match ideal {
            Some(ideal) if ideal < DIFFERENCE => {
                ", and a lock that costs nothing would change nothing either".to_owned()
            }
            Some(ideal) => format!("; a lock that costs nothing would be {ideal:.2} times as fast"),
            None => String::new(),
        };
        let why = format!(
            "with {threads} {noun}, {waits:.1} % of whose time is waiting for locks, {} is {:+.1} \
             % from glibc's{left}",
            best.lock,
            (ratio - 1.0) * 100.0,
        );
        let confidence = if factor < DIFFERENCE { Confidence::Medium } else { Confidence::Low };
        return Recommendation {
            verdict: Verdict::NoDifference,
            confidence: Some(confidence),
            why,
        };
    }
    let confidence = match apart {
        apart if apart >= LARGE => Confidence::High,
        apart if apart >= DIFFERENCE => Confidence::Medium,
        _ => Confidence::Low,
    };
    let than = if lock == GLIBC { best.lock } else { "glibc's" };
    let left = ideal.map_or(String::new(), |ideal| {
        format!("; a lock that costs nothing would be {ideal:.2} times as fast as glibc's")
    });
    let name = if lock == GLIBC { "glibc's" } else { lock };
    let why = format!(
        "with {threads} {noun} the program is {factor:.2} times as fast with {name} as with \
         {than}, {apart:.2} times in the worst seed{left}"
    );
    Recommendation { verdict: Verdict::Use(lock), confidence: Some(confidence), why }
}
