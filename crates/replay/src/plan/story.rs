//! Converts one thread's events, and the time between them, to steps.

use antiphon_trace::{Event, What};

use super::{Cleaned, Links, Locks, Program, pairs};
use crate::step::{Step, Timed};

/// The steps of a thread so far.
#[derive(Default)]
struct Steps {
    steps: Vec<Timed>,
    /// The time up to which the recording has been read.
    last_ns: u64,
    /// After that time: how long the thread was blocked, and how long it was queued for a CPU.
    off: (u64, u64),
    /// The part of its time that recording took and that must still be subtracted.
    recorder_ps: u64,
    /// The time that was subtracted.
    left_out_ns: u64,
}

impl Steps {
    fn push(&mut self, at_ns: u64, step: Step) {
        self.steps.push(Timed { at_ns, step });
    }

    /// Adds the work of a span of that length, without the time off the CPU and the time of
    /// recording.
    fn works(&mut self, span_ns: u64) {
        let (blocked_ns, queued_ns) = std::mem::take(&mut self.off);
        let ran_ns = span_ns.saturating_sub(blocked_ns.saturating_add(queued_ns));
        let left_out_ns = (self.recorder_ps / 1000).min(ran_ns);
        self.recorder_ps -= left_out_ns * 1000;
        self.left_out_ns += left_out_ns;
        self.computes(ran_ns - left_out_ns);
        self.is_away(blocked_ns.min(span_ns));
    }

    fn is_recorded(&mut self, ps: u64) {
        self.recorder_ps = self.recorder_ps.saturating_add(ps);
    }

    /// Adds work of that length, after the last event that was read.
    fn computes(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        if let Some(Timed { step: Step::Compute { ns: before }, .. }) = self.steps.last_mut() {
            *before = before.saturating_add(ns);
        } else {
            self.push(self.last_ns, Step::Compute { ns });
        }
    }

    fn is_away(&mut self, ns: u64) {
        if ns > 0 {
            self.push(self.last_ns, Step::Block { ns });
        }
    }
}

impl Links {
    /// The steps of a thread, from `begun_ns` on, the beginning of the first thread.
    pub(super) fn program(
        &self,
        thread: usize,
        begun_ns: u64,
        locks: &mut Locks<'_>,
        cleaned: &mut Cleaned,
    ) -> Program {
        let story = &locks.trace.threads[thread];
        let events = &story.events;
        let kept = pairs::pairs(locks.trace, events, cleaned);
        let mut steps = Steps { steps: Vec::new(), last_ns: begun_ns, ..Steps::default() };
        // The previous event, and whether it began a wait: the span after that is not work.
        let mut before = None;
        let mut waits = false;
        for (index, event) in events.iter().enumerate() {
            let Event { at_ns, what } = *event;
            match what {
                What::Off { .. } | What::Asked { .. } if waits => continue,
                What::Off { blocked_ns, queued_ns } => {
                    steps.off.0 = steps.off.0.saturating_add(blocked_ns);
                    steps.off.1 = steps.off.1.saturating_add(queued_ns);
                    continue;
                }
                What::Asked { ns } => {
                    steps.is_recorded(ns.saturating_mul(1000));
                    continue;
                }
                _ => {}
            }
            let gap_ns = at_ns - steps.last_ns;
            match what {
                What::Begins if index == 0 => self.begins(thread, at_ns, &mut steps),
                What::Takes { .. } if waits => {}
                What::GivesUp { .. } if waits => steps.is_away(gap_ns),
                What::Wakes { .. } | What::Joined { .. } => {
                    self.goes_on((thread, index), what, gap_ns, at_ns, &mut steps, cleaned);
                }
                _ => {
                    steps.is_recorded(self.recorder.between(before, what));
                    steps.works(gap_ns);
                }
            }
            before = Some(what);
            steps.last_ns = at_ns;
            match what {
                What::Takes { lock, site, shared, .. } if kept[index] => {
                    let lock = locks.number(lock);
                    steps.push(at_ns, Step::Lock { lock, site, shared });
                }
                What::Releases { lock } if kept[index] => {
                    steps.push(at_ns, Step::Unlock { lock: locks.number(lock) });
                }
                _ => {}
            }
            for &token in self.signals.get(&(thread, index)).into_iter().flatten() {
                steps.push(at_ns, Step::Signal { token });
            }
            waits = matches!(what, What::Waits { .. } | What::Sleeps { .. } | What::Joins { .. });
        }
        let end = self.ends.get(&thread).copied();
        if let Some(token) = end {
            steps.push(steps.last_ns, Step::Signal { token });
        }
        Program {
            traced: thread as u32,
            role: (story.process, story.role),
            made: self.begins.contains_key(&thread),
            lived_ns: (events[0].at_ns, steps.last_ns),
            end,
            steps: steps.steps,
            left_out_ns: steps.left_out_ns,
        }
    }

    fn begins(&self, thread: usize, at_ns: u64, steps: &mut Steps) {
        match self.begins.get(&thread) {
            Some(&(token, made_ns)) => {
                steps.push(at_ns.max(made_ns), Step::Await { token, took_ns: 0 });
            }
            // The first of its process: a fork is not recorded, so it begins at the recorded time.
            None => steps.is_away(at_ns - steps.last_ns),
        }
    }

    /// Adds the end of a wait on a condition, or for the end of a thread.
    fn goes_on(
        &self,
        at: super::conditions::Place,
        what: What,
        took_ns: u64,
        at_ns: u64,
        steps: &mut Steps,
        cleaned: &mut Cleaned,
    ) {
        let token = match what {
            What::Joined { thread } => self.ends.get(&(thread as usize)).copied(),
            _ => self.wakes.get(&at).copied(),
        };
        if let Some(token) = token {
            steps.push(at_ns, Step::Await { token, took_ns });
            return;
        }
        match what {
            What::Joined { .. } => cleaned.joined_nothing += 1,
            What::Wakes { notified: true, .. } => cleaned.woken_by_nobody += 1,
            _ => {}
        }
        steps.is_away(took_ns);
    }
}
