//! CPUs that other programs had, while threads of this one were ready.
//!
//! **Threshold**: threads were ready without a CPU for a fifth of the working time or more, half a
//! thread or more wanted to run on average, other programs used a fifth or more of the CPUs that
//! this one may use, and it had less than three quarters of those that it could have used: as many
//! as there are, or as threads wanted to run. The run took a tenth of a second or more: the kernel
//! counts the time of all programs in hundredths.
//!
//! **Reason**: a machine that others use makes each wait and each hold longer. That is no fault of
//! the program, and its figures are not those of a quiet machine.

use antiphon_report::words::several;

use super::evidence::ratio;
use super::{Evidence, Finding, crowding, percent};

/// The least number of threads that wanted to run, on average.
const LEAST_WANTED: f64 = 0.5;
/// The most CPUs that the program had, as a share of those that it could have used.
const MOST_HAD: f64 = 0.75;
/// The least share of the CPUs that others used.
const LEAST_TAKEN: f64 = 0.2;
/// The shortest run, in seconds.
const SHORTEST_S: f64 = 0.1;
/// No fault of the program: findings about its locks come first, and `calm` goes with it.
const WEIGHT: f64 = 0.09;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let share = crowding::share(evidence);
    let (wanted, had) = (crowding::wanted(evidence), had(evidence));
    if share < crowding::LEAST_SHARE || wanted < LEAST_WANTED || !are_taken(evidence) {
        return Vec::new();
    }
    let says = format!(
        "Other programs used {:.1} of {}: this one had {had:.1}, and its threads were ready \
         without one for {} of their working time.",
        taken(evidence),
        several(evidence.report.run.cpus as u64, "CPU"),
        percent(share),
    );
    let advice = "Waits and holds are longer for that. Repeat the run on a quiet machine.";
    vec![Finding { rule: "busy-machine", says, advice: advice.to_owned(), weight: WEIGHT }]
}

/// Returns whether the program had clearly fewer CPUs than it could have used, because of others.
pub fn are_taken(evidence: &Evidence<'_>) -> bool {
    let usable = evidence.cpus.min(crowding::wanted(evidence));
    evidence.wall_s >= SHORTEST_S
        && taken(evidence) >= LEAST_TAKEN * evidence.cpus
        && had(evidence) < MOST_HAD * usable
}

/// The number of CPUs that other programs had, on average; none if that is not known.
fn taken(evidence: &Evidence<'_>) -> f64 {
    ratio(evidence.report.run.others_s.unwrap_or(0.0), evidence.wall_s)
}

/// The number of CPUs that the program had, on average.
fn had(evidence: &Evidence<'_>) -> f64 {
    ratio(evidence.report.run.cpu_s, evidence.wall_s)
}
