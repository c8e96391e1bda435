//! A wait for a condition that lasted to the end of a run that was ended from outside.
//!
//! **Threshold**: a signal ended the program (also by `timeout`, which then returns 124), and a
//! thread waited for a condition variable to the end, which threads had waited for a fifth of the
//! run at a time. It is a defect if no wait was ever ended by a notification, and each notification
//! found no waiter (only a profile knows, and only of Antiphon's private condition variables). Else
//! it is a hint, if the program used less than a tenth of a CPU: one that does something else has
//! not hung.
//!
//! **Reason**: a notification wakes threads that wait, and is lost otherwise. A thread that comes
//! later, and does not look at the condition first, waits for ever. There is no deadlock in such a
//! hang: no thread holds what another one waits for.

use antiphon_report::table::duration;
use antiphon_report::words::several;

use super::condition::{self, Condition};
use super::evidence::ratio;
use super::{Evidence, Finding, MAY_STOP};

/// The least length of the wait, as a share of the run.
const LEAST_PART: f64 = 0.2;
/// The most CPUs that a program which hangs keeps busy.
const MOST_BUSY: f64 = 0.1;
/// The weight without notifications: more than that of idle threads.
const WEIGHT: f64 = 0.07;
/// The ends of a program that was ended from outside: by signals that people and other programs
/// send (HUP, INT, QUIT, KILL, ALRM, TERM), or by `timeout`, after its first signal or its last.
const ENDS: [&str; 8] = [
    "killed by signal 1",
    "killed by signal 2",
    "killed by signal 3",
    "killed by signal 9",
    "killed by signal 14",
    "killed by signal 15",
    "exit code 124",
    "exit code 137",
];

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let run = &evidence.report.run;
    if !ENDS.contains(&run.ended.as_str()) {
        return Vec::new();
    }
    let rests = ratio(run.cpu_s, evidence.wall_s) < MOST_BUSY;
    let conditions = condition::all(evidence).into_iter();
    let lost = conditions.filter(|condition| {
        let is_known = is_lost(condition) && condition.in_vain() > 0;
        is_long(condition, evidence.wall_s) && (rests || is_known)
    });
    let most = lost.max_by_key(|condition| {
        let lost = is_lost(condition);
        (lost && condition.in_vain() > 0, lost, condition.wait_ns())
    });
    let Some(lost) = most else { return Vec::new() };
    let (is_lost, vain) = (is_lost(&lost), lost.in_vain());
    // If earlier waits ended, it is not known which of them was the longest.
    let length = match is_lost {
        true => format!(", for {}", duration(longest_ns(&lost) as f64)),
        false => String::new(),
    };
    let mut says = format!(
        "When the program was ended from outside, {} still waited for a condition, at {}{length}.",
        several(lost.still_waiting(), "thread"),
        lost.waited_at(),
    );
    let (advice, weight) = if !is_lost {
        let advice = "If it hung there, a notification is missing, perhaps that of the end; idle \
                      workers wait so, too.";
        (advice, WEIGHT)
    } else if vain > 0 {
        let which = format!("{}, at {},", several(vain, "notification"), lost.notified_at());
        says += &format!(" Its {which} found no waiter.");
        let advice = "If it hung there, the notification came before the wait and was lost: look \
                      at the condition, under the mutex, before each wait (a loop, or wait with a \
                      predicate), and set it under that mutex.";
        (advice, if rests { MAY_STOP } else { WEIGHT })
    } else if run.profile {
        says += " No thread ever notified it.";
        ("If it hung there, the notification is missing; idle workers wait so, too.", WEIGHT)
    } else {
        let advice = "If it hung there, antiphon run --profile says whether a notification came \
                      too early; idle workers wait so, too.";
        (advice, WEIGHT)
    };
    vec![Finding { rule: "lost-wake-up", says, advice: advice.to_owned(), weight }]
}

/// Returns whether threads wait to the end, and a wait was long.
fn is_long(condition: &Condition<'_>, wall_s: f64) -> bool {
    condition.still_waiting() > 0 && ratio(longest_ns(condition) as f64 / 1e9, wall_s) >= LEAST_PART
}

/// Returns whether no wait was ended by a notification, and each notification, if there were any,
/// found no waiter.
fn is_lost(condition: &Condition<'_>) -> bool {
    condition.waited() == condition.expired() + condition.still_waiting()
        && condition.in_vain() == condition.notified()
}

fn longest_ns(condition: &Condition<'_>) -> u64 {
    condition.waits.iter().map(|row| row.wait.max_ns).max().unwrap_or(0)
}
