//! A program like a game: a step at each tick, on time, and as many details of the next picture as
//! there is time for.
//!
//! Nothing can be drawn before the step that decides what is seen, so each picture is drawn between
//! two ticks: the base first, then the details, each with its own rank. Among programs that share a
//! scale, a game thus has the same quality as a player.

use crate::importance::{Rank, Scale, spread};
use crate::program::{Act, Job, Program, Timeline};
use crate::{Error, Tardiness};

/// The pictures that a [`Game`] has drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Number of ticks.
    pub ticks: u64,
    /// Pictures of which not even the base was drawn in time.
    pub empty: u64,
    /// Details that were drawn in time, not counting bases.
    pub details: u64,
    /// Tardiness of the ticks.
    pub tardiness: Tardiness,
}

/// The parameters of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Ticks per second, such as 100.
    pub rate: u32,
    /// Details per picture, besides its base.
    pub details: u64,
    /// Number of ticks; `None` for no limit.
    pub ticks: Option<u64>,
    /// The scale that it shares with its group.
    pub scale: Scale,
}

/// A game.
pub struct Game<W> {
    rules: Rules,
    tick_ns: u64,
    work: W,
    start_ns: u64,
    /// Parts drawn so far of the current picture.
    parts: u64,
    drawn: Drawn,
}

impl<W: FnMut(u64)> Game<W> {
    /// A game that calls `work` to draw part 0, the base, and the details.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the rate is not 1 to 10 000 per second.
    pub fn new(rules: Rules, work: W) -> Result<Self, Error> {
        if !(1..=10_000).contains(&rules.rate) {
            return Err(Error::Parameter("a game has 1 to 10000 ticks a second"));
        }
        let tick_ns = 1_000_000_000 / u64::from(rules.rate);
        Ok(Self { rules, tick_ns, work, start_ns: 0, parts: 0, drawn: Drawn::default() })
    }

    /// The pictures drawn so far.
    pub fn drawn(&self) -> &Drawn {
        &self.drawn
    }

    /// The share of details that were drawn in time, 0 to 1.
    pub fn quality(&self) -> f64 {
        let due = self.drawn.ticks * self.rules.details;
        if due == 0 { 1.0 } else { self.drawn.details as f64 / due as f64 }
    }

    fn parts(&self) -> u64 {
        self.rules.details + 1
    }

    fn due_ns(&self, tick: u64) -> u64 {
        self.start_ns + (tick + 1) * self.tick_ns
    }

    /// Submits the work on the picture of a tick, and the tick.
    fn begin(&mut self, tick: u64, timeline: &mut dyn Timeline) {
        if self.rules.ticks.is_some_and(|ticks| tick >= ticks) {
            return;
        }
        self.parts = 0;
        let due_ns = self.due_ns(tick);
        for part in 0..self.parts() {
            let rank = match part.checked_sub(1) {
                None => Rank::Main(0),
                Some(detail) => Rank::Fine(spread(tick * self.rules.details + detail)),
            };
            let job = Job { act: Act::Prepare, number: tick * self.parts() + part };
            timeline.best_effort(self.rules.scale.importance(due_ns, rank), job);
        }
        timeline.timer(due_ns, Job { act: Act::Present, number: tick });
    }

    fn tick(&mut self, tick: u64, timeline: &mut dyn Timeline) {
        self.drawn.tardiness.note(self.due_ns(tick), timeline.now_ns());
        self.drawn.ticks += 1;
        match self.parts.checked_sub(1) {
            Some(details) => self.drawn.details += details,
            None => self.drawn.empty += 1,
        }
        for part in 0..self.parts() {
            timeline.cancel(Job { act: Act::Prepare, number: tick * self.parts() + part });
        }
        self.begin(tick + 1, timeline);
    }
}

impl<W: FnMut(u64)> Program for Game<W> {
    fn start(&mut self, timeline: &mut dyn Timeline) {
        self.start_ns = timeline.now_ns();
        self.begin(0, timeline);
    }

    fn run(&mut self, job: Job, timeline: &mut dyn Timeline) {
        match job.act {
            Act::Prepare => {
                let part = job.number % self.parts();
                (self.work)(part);
                self.parts += 1;
            }
            Act::Present => self.tick(job.number, timeline),
            Act::Receive | Act::Expire => {}
        }
    }
}
