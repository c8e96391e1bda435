//! Looks on: starts the programs, sees what they use, hears what they say, and ends them.

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

/// The observations of a run.
pub struct Observed {
    /// The observations of each program that plays; or how it ended, as words behind its name.
    pub seen: Vec<Result<Seen, String>>,
    /// The usage of each program by then, in nanoseconds from the start of the measurement; those
    /// that play come first.
    pub used: Vec<(u64, Vec<Usage>)>,
    /// The options by which the CPU was shared: those of the run that came first, where that was
    /// another one.
    pub options: Options,
}

/// The time from when all programs are ready to their start.
const BEGIN_NS: u64 = 20_000_000;
/// How often the programs' use of CPUs is looked at: every `LOOK_S` seconds, or `LOOKS` times if
/// that is less often.
const LOOK_S: f64 = 1.0;
const LOOKS: f64 = 400.0;
/// How many looks a short run has.
const LEAST_LOOKS: f64 = 10.0;
/// How long programs may take to say what they saw.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it takes to see that a program is stopped, and will not say it.
const GLANCE: Duration = Duration::from_millis(200);

/// Runs the programs, and looks on; on the terminal, if it is `live`. A program that ends or stops
/// while it plays is named beside what the others saw.
///
/// # Errors
///
/// A program can't be started, or has ended before all began.
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
        // The programs have played on until they saw that.
        steps.push((now_ns().saturating_sub(count_ns), used(&programs)));
    }
    Ok(Observed { seen, used: steps, options })
}

/// Players begin one after the other, so that not all frames are due at once.
fn phase_ns(plan: &Plan, number: usize) -> u64 {
    match (plan.parts.get(number).map(|part| part.kind), plan.clip(number)) {
        // It looks no further ahead than to its next step.
        (Some(Kind::Game), _) => scale().look_ahead_ns,
        (_, Some(ready)) => ready.clip.frame_ns() * number as u64 / plan.parts.len() as u64,
        _ => 0,
    }
}

fn step_ns(seconds: f64) -> u64 {
    (LOOK_S.min(seconds / LEAST_LOOKS).max(seconds / LOOKS) * 1e9) as u64
}

/// The time of the next look; `None` if the run is over.
fn next(used: &[(u64, Vec<Usage>)], count_ns: u64, end_ns: u64, step_ns: u64) -> Option<u64> {
    let last_ns = count_ns + used.last().map_or(0, |(at_ns, _)| *at_ns);
    let next_ns = count_ns + used.len() as u64 * step_ns;
    // A rest that is short is part of the last one.
    let next_ns = if next_ns + step_ns / 2 >= end_ns { end_ns } else { next_ns };
    (last_ns < end_ns).then_some(next_ns)
}

fn used(programs: &[Program]) -> Vec<Usage> {
    programs.iter().map(|program| Usage::of(program.id())).collect()
}

/// A message of the program of that number; without one, the program has ended.
type Heard = (usize, Option<Result<Said, String>>);

/// Hears what each program that plays says, in a thread each.
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
            // The receiver is gone where the run is over.
            let _ = tell.send((number, None));
        });
    }
    Ok(told)
}

/// Looks on while programs play.
struct Look {
    said: Receiver<Heard>,
    live: Option<Live>,
    seen: Vec<Option<Result<Seen, String>>>,
    /// The user wants no more.
    ended: bool,
}

impl Look {
    /// Waits until `at_ns`, and returns what programs have used from `count_ns` on, when the
    /// measurement begins.
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
                    // No program has anything to say any more, or not yet.
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

    /// A program has said something, or ended.
    fn note(&mut self, (number, said): Heard, programs: &[Program]) {
        match said {
            Some(Ok(Said::Seen(seen))) => self.seen[number] = Some(Ok(*seen)),
            Some(Ok(Said::Progress(played))) => {
                if let Some(live) = &mut self.live {
                    live.hear(number, played);
                }
            }
            // It has said all that it had to say, and was killed.
            None if self.seen[number].is_some() => {}
            None => self.gone(number, programs[number].end()),
            Some(Err(why)) => self.gone(number, why),
        }
    }

    fn gone(&mut self, number: usize, what: String) {
        self.seen[number].get_or_insert(Err(what));
    }

    /// Waits for what programs saw.
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
    // SAFETY: takes numbers. It is a child of ours that was not waited for, so its number is its.
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
