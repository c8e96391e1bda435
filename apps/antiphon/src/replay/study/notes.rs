//! Notes that a reader needs to judge the figures.

use antiphon_replay::{Cleaned, Evidence, Lock, Plan, Played, Subject};
use antiphon_report::table::duration;
use antiphon_report::words::several;

use super::Study;

/// A share of the recorded time below this is not reported as the recorder's.
const NOTICEABLE: f64 = 0.01;

impl Study {
    /// Adds the facts that a reader needs to judge the figures.
    pub(super) fn note(&mut self, plan: &Plan) {
        let Evidence { dropped, cut_off, .. } = self.asked.evidence;
        let mut notes = Vec::new();
        if self.asked.is_part {
            notes.push(format!(
                "the middle of the recording is replayed, {}; more with --takes",
                several(self.takes, "acquisition")
            ));
        }
        notes.extend(recorder(self.recorder_ns, plan.compute_ns()));
        if dropped > 0 {
            notes.push(format!("{} found no room in the recording", several(dropped, "event")));
        }
        if cut_off {
            notes.push("the recording is incomplete: its recorder was killed".to_owned());
        }
        if self.cleaned.total() > 0 {
            let Cleaned {
                taken_for_ever,
                released_untaken,
                unnamed,
                woken_by_nobody,
                joined_nothing,
            } = self.cleaned;
            notes.push(format!(
                "left out: {} never given back, {} of what was not taken, {} of unnamed locks; {} \
                 and {} by unknown threads",
                several(taken_for_ever, "acquisition"),
                several(released_untaken, "release"),
                several(unnamed, "acquisition"),
                several(woken_by_nobody, "wake"),
                several(joined_nothing, "join")
            ));
        }
        if plan.locks.iter().any(Lock::is_readers_writer) {
            notes.push(readers_writer(&self.asked.locks));
        }
        let fallbacks = self.rows.iter().filter_map(|row| row.mean(Played::fallback_share));
        let fallbacks = fallbacks.fold(0.0, f64::max);
        if fallbacks > 0.0 {
            notes.push(format!(
                "at most {:.2} % of the waits differed from the recording",
                fallbacks * 100.0
            ));
        }
        if self.asked.data_lines == 0 {
            notes.push("what the program's own data costs is not simulated: --data-lines".into());
        }
        self.notes.append(&mut notes);
    }
}

/// The note about the recorder's own time, if that is noticeable.
fn recorder(recorder_ns: Option<u64>, program_ns: u64) -> Option<String> {
    let Some(recorder_ns) = recorder_ns else {
        return Some(
            "the cost of recording is not in the trace: it counts as the program's time".into(),
        );
    };
    let share = recorder_ns as f64 / (recorder_ns + program_ns).max(1) as f64;
    (share >= NOTICEABLE).then(|| {
        format!(
            "recording took {}, {:.0} % of the CPU time that was recorded: that is left out",
            duration(recorder_ns as f64),
            share * 100.0
        )
    })
}

/// Names the readers-writer lock that goes with each lock.
fn readers_writer(locks: &[Subject]) -> String {
    let of = |lock: &Subject| format!("{} under {}", lock.rwlock.name, lock.name);
    let all: Vec<_> = locks.iter().map(of).collect();
    format!("readers-writer locks are {}", all.join(", "))
}
