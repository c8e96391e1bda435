//! Runs the programs of a plan: starts them, measures their usage, reads their reports, and ends
//! them.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use antiphon_coop::Options;
use antiphon_report::doubt;
use antiphon_report::failure::Failure;

use super::PROGRAM;
use super::kinds::Kind;
use super::live::Live;
use super::plan::Plan;
use super::program::{Begin, Said, Seen, scale};
use crate::compete::process::Program;
use crate::compete::stand_aside;
use crate::compete::usage::Usage;
use crate::compete::work::{now_ns, sleep_until};

/// What was observed of a run.
pub struct Observed {
    /// Results of each program that plays, or how it ended, in words to follow its name.
    pub seen: Vec<Result<Seen, String>>,
    /// Usage of each program up to a time, in nanoseconds from the start of the measurement;
    /// programs that play come first.
    pub used: Vec<(u64, Vec<Usage>)>,
    /// Options by which the CPU was shared; if another run was there first, its options.
    pub options: Options,
}

/// Time from when all programs are ready to their start.
const BEGIN_NS: u64 = 20_000_000;
/// Interval between readings of the programs' CPU usage: `LOOK_S` seconds, or longer, so that there
/// are at most `LOOKS` readings.
const LOOK_S: f64 = 1.0;
const LOOKS: f64 = 400.0;
/// Minimal number of readings of a short run.
const LEAST_LOOKS: f64 = 10.0;
/// Time limit for programs to report their results.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between checks whether a program is stopped, and so will not report.
const GLANCE: Duration = Duration::from_millis(200);

/// Runs the programs and observes them; with `live`, shows them on the terminal. A program that
/// ends or stops while it plays is named beside the results of the others.
///
/// # Errors
///
/// If a program can't be started, or has ended before all began.
pub fn watch(plan: &Plan, live: bool) -> Result<Observed, Failure> {
    stand_aside(&plan.cpus);
    let domains = plan.domains()?;
    let options = domains.first().map_or(plan.schedule.0, antiphon_coop::Domain::options);
    if options != plan.schedule.0 {
        doubt(&format!(
            "another run that shares this CPU has come first, and its options are in force here, \
             too: {options}; end it, or give the same --options"
        ));
    }
    let start = |order| Program::start(PROGRAM, &order);
    let orders = plan.orders(live).map_err(Failure::measured)?;
    let programs: Result<Vec<_>, _> = orders.into_iter().map(start).collect();
    let mut programs = programs.map_err(Failure::measured)?;
    programs.iter_mut().try_for_each(Program::ready).map_err(Failure::measured)?;
    let at_ns = now_ns() + BEGIN_NS;
    let count_ns = at_ns + scale().look_ahead_ns;
    let end_ns = count_ns + (plan.seconds * 1e9) as u64;
    for (number, program) in programs.iter_mut().enumerate() {
        let begin = Begin { at_ns: at_ns + phase_ns(plan, number), end_ns };
        program.begin(&begin).map_err(Failure::measured)?;
    }
    let said = hear(plan, &mut programs)?;
    let live = if live { Some(Live::enter(plan)?) } else { None };
    let mut look = Look { said, live, seen: vec![None; plan.parts.len()], ended: false };
    let mut steps = vec![look.at(count_ns, count_ns, &programs)?];
    let step_ns = step_ns(plan.seconds);
    while let Some(next_ns) = next(&steps, count_ns, end_ns, step_ns).filter(|_| !look.ended) {
        steps.push(look.at(next_ns, count_ns, &programs)?);
    }
    drop(look.live.take());
    if look.ended {
        programs[..plan.parts.len()].iter().for_each(end_early);
    }
    let seen = look.all_seen(&programs);
    if look.ended {
        // The programs have played on until they noticed the end.
        steps.push((now_ns().saturating_sub(count_ns), used(&programs)));
    }
    Ok(Observed { seen, used: steps, options })
}

/// Returns the phase of a program; phases differ, so that not all frames are due at once.
fn phase_ns(plan: &Plan, number: usize) -> u64 {
    match (plan.parts.get(number).map(|part| part.kind), plan.clip(number)) {
        // A game looks ahead only to its next step.
        (Some(Kind::Game), _) => scale().look_ahead_ns,
        (_, Some(ready)) => ready.clip.frame_ns() * number as u64 / plan.parts.len() as u64,
        _ => 0,
    }
}

fn step_ns(seconds: f64) -> u64 {
    (LOOK_S.min(seconds / LEAST_LOOKS).max(seconds / LOOKS) * 1e9) as u64
}

/// Returns the time of the next reading; `None` if the run is over.
fn next(used: &[(u64, Vec<Usage>)], count_ns: u64, end_ns: u64, step_ns: u64) -> Option<u64> {
    let last_ns = count_ns + used.last().map_or(0, |(at_ns, _)| *at_ns);
    let next_ns = count_ns + used.len() as u64 * step_ns;
    // A short remainder is merged into the last interval.
    let next_ns = if next_ns + step_ns / 2 >= end_ns { end_ns } else { next_ns };
    (last_ns < end_ns).then_some(next_ns)
}

fn used(programs: &[Program]) -> Vec<Usage> {
    programs.iter().map(|program| Usage::of(program.id())).collect()
}

/// A message of the program of this number; `None` if the program has ended.
type Heard = (usize, Option<Result<Said, String>>);

/// Receives the messages of each program that plays, with a thread for each.
fn hear(plan: &Plan, programs: &mut [Program]) -> Result<Receiver<Heard>, Failure> {
    let (tell, told) = channel();
    for (number, program) in programs.iter_mut().take(plan.parts.len()).enumerate() {
        let none = || Failure::measured("a program has no lines");
        let (lines, tell) = (program.lines().ok_or_else(none)?, tell.clone());
        std::thread::spawn(move || {
            for line in lines {
                let said = line.map_err(|error| error.to_string());
                let said = said.and_then(|line| {
                    serde_json::from_str(&line).map_err(|error| format!("said no figures: {error}"))
                });
                if tell.send((number, Some(said))).is_err() {
                    return;
                }
            }
            // The receiver is gone once the run is over.
            let _ = tell.send((number, None));
        });
    }
    Ok(told)
}

/// Observes the programs while they play.
struct Look {
    said: Receiver<Heard>,
    live: Option<Live>,
    seen: Vec<Option<Result<Seen, String>>>,
    /// Whether the user has asked to end the run.
    ended: bool,
}

impl Look {
    /// Waits until `at_ns`, and returns the time since `count_ns`, when the measurement begins, and
    /// the usage of the programs so far.
    fn at(
        &mut self,
        at_ns: u64,
        count_ns: u64,
        programs: &[Program],
    ) -> Result<(u64, Vec<Usage>), Failure> {
        while now_ns() < at_ns && !self.ended {
            if let Some(live) = &mut self.live {
                self.ended = live.show_until(at_ns)?;
                while let Ok(heard) = self.said.try_recv() {
                    self.note(heard, programs);
                }
            } else {
                let left = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
                match self.said.recv_timeout(left) {
                    Ok(heard) => self.note(heard, programs),
                    // No message came in time, or no program will send any.
                    Err(_) => sleep_until(at_ns),
                }
            }
        }
        let used = used(programs);
        if let Some(live) = &mut self.live {
            live.see(now_ns(), &used);
        }
        Ok((now_ns().saturating_sub(count_ns), used))
    }

    /// Handles a message of a program, or its end.
    fn note(&mut self, (number, said): Heard, programs: &[Program]) {
        match said {
            Some(Ok(Said::Seen(seen))) => self.seen[number] = Some(Ok(*seen)),
            Some(Ok(Said::Progress(played))) => {
                if let Some(live) = &mut self.live {
                    live.hear(number, played);
                }
            }
            // The program has reported its results, and was killed.
            None if self.seen[number].is_some() => {}
            None => self.gone(number, programs[number].end()),
            Some(Err(why)) => self.gone(number, why),
        }
    }

    fn gone(&mut self, number: usize, what: String) {
        self.seen[number].get_or_insert(Err(what));
    }

    /// Waits for the results of all programs.
    fn all_seen(&mut self, programs: &[Program]) -> Vec<Result<Seen, String>> {
        let end = Instant::now() + PATIENCE;
        while self.seen.iter().any(Option::is_none) {
            if let Ok(heard) = self.said.recv_timeout(GLANCE) {
                self.note(heard, programs);
                continue;
            }
            for (number, program) in programs.iter().enumerate().take(self.seen.len()) {
                if program.is_stopped() {
                    self.gone(number, "is stopped, and says nothing any more".to_owned());
                } else if Instant::now() >= end {
                    self.gone(number, "says nothing any more".to_owned());
                }
            }
        }
        std::mem::take(&mut self.seen).into_iter().flatten().collect()
    }
}

fn end_early(program: &Program) {
    // SAFETY: takes numbers. The process is a child that was not waited for, so its id is not
    // reused.
    unsafe { libc::kill(program.id() as i32, libc::SIGTERM) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_looked_at_to_its_end() {
        for (seconds, most) in [(0.001, 11), (1.0, 11), (10.0, 11), (300.4, 301), (3600.0, 401)] {
            let end_ns = 5 + (seconds * 1e9) as u64;
            let mut used = vec![(0, Vec::new())];
            while let Some(next_ns) = next(&used, 5, end_ns, step_ns(seconds)) {
                assert!(next_ns <= end_ns && next_ns > 5 + used.last().expect("one").0);
                used.push((next_ns - 5, Vec::new()));
                assert!(used.len() <= most, "{seconds}");
            }
            assert_eq!(used.last().expect("one").0, end_ns - 5);
        }
    }
}
