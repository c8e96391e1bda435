//! Waits for locks of the C library itself.
//!
//! **Threshold**: threads slept for a twentieth of their time or more in `__lll_lock_wait_private`.
//! Their sleeps are seen from outside, so this needs no profile.
//!
//! **Reason**: `malloc` has a lock for each arena, and each stream of `stdio` has one. A program
//! does not see them, and no library can replace them; but it can use them less.

use super::evidence::ratio;
use super::{Evidence, Finding, percent};
use crate::run::places::PRIVATE;

/// The least share of all threads' time in such waits.
const LEAST_SHARE: f64 = 0.05;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let slept = evidence.report.slept.iter().filter(|slept| slept.function == PRIVATE);
    let slept_s = slept.map(|slept| slept.slept_s).sum::<f64>();
    let share = ratio(slept_s, evidence.threads_s).min(1.0);
    if share < LEAST_SHARE {
        return Vec::new();
    }
    let says = format!(
        "Threads slept for {} of the time in locks of the C library itself: those of malloc, or of \
         a stdio stream.",
        percent(share),
    );
    let advice = "If threads allocate and free much: keep memory for reuse, take another allocator \
                  (jemalloc, tcmalloc), or allow more arenas (MALLOC_ARENA_MAX). If they print to \
                  one stream: collect the text of several lines for each call.";
    // Of the working time it is more; how much more, sampling does not tell.
    let weight = ratio(slept_s, slept_s + evidence.working_s);
    vec![Finding { rule: "c-library", says, advice: advice.to_owned(), weight }]
}
