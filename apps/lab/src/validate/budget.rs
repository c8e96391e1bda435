//! The time budget of a validation, and the user's request to end early.
//!
//! The first signal that asks the command to end lets it write what it has; it then ends as it
//! would have ended at once. The second signal ends it at once.

use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The signals that ask a process to end.
const ENDS: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// The signal that came; 0 before.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// A time budget.
#[derive(Clone, Copy)]
pub struct Budget {
    begun: Instant,
    whole: Duration,
}

impl Budget {
    /// Makes a budget of this many minutes, which begins now.
    pub fn begin(minutes: f64) -> Self {
        Self { begun: Instant::now(), whole: Duration::from_secs_f64(minutes * 60.0) }
    }

    /// Returns whether this part of the time is over, or the user wants to end.
    pub fn is_spent(self, part: f64) -> bool {
        asked().is_some() || self.begun.elapsed() >= self.whole.mul_f64(part)
    }

    /// Returns whether `more` still fits into this part of the time.
    pub fn has_room(self, part: f64, more: Duration) -> bool {
        asked().is_none() && self.begun.elapsed() + more <= self.whole.mul_f64(part)
    }
}

/// Installs handlers that record the signals by which a process is asked to end.
pub fn note_signals() {
    for signal in ENDS {
        // SAFETY: all fields are numbers or a pointer that may be null.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: `action` is a local variable. An ignored signal stays ignored, as `nohup`
        // requires.
        unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
        if action.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        let note: extern "C" fn(libc::c_int) = note;
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
        // SAFETY: the handler only stores a number, which is async-signal-safe.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

extern "C" fn note(signal: libc::c_int) {
    // Relaxed: the number publishes no other data.
    ASKED.store(signal, Relaxed);
}

/// Returns the signal that asked for an end, if any.
pub fn asked() -> Option<libc::c_int> {
    // Relaxed: the number publishes no other data.
    Some(ASKED.load(Relaxed)).filter(|&signal| signal != 0)
}

/// Ends as the recorded signal would have ended this process. Does nothing if no signal came.
pub fn end_as_asked() {
    if let Some(signal) = asked() {
        // SAFETY: the signal's action is the default one again.
        unsafe { libc::raise(signal) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_time_is_spent_before_the_whole() {
        let budget = Budget { begun: Instant::now(), whole: Duration::from_secs(3600) };
        assert!(budget.is_spent(0.0) && !budget.is_spent(1.0));
        assert!(budget.has_room(0.5, Duration::from_secs(60)));
        assert!(!budget.has_room(0.5, Duration::from_secs(1900)));
    }
}
