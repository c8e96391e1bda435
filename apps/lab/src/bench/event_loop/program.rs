//! The work of the programs of a repetition: a [process](crate::compete::process) each.

use antiphon_report::schedule::Schedule;
use antiphon_report::stats::Random;
use serde::{Deserialize, Serialize};

use super::clip::Clip;
use super::player::{Player, Seen, Window};
use super::schemes::{self, Seat};
use crate::compete::work::{Pace, sleep_until};
use crate::compete::{order, process};

/// A program.
pub type Order = order::Order<Part>;

/// How a player plays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The scheme.
    pub subject: String,
    /// The seed of its clip.
    pub seed: u64,
    /// How much of a CPU it wants.
    pub demand: f64,
    /// Whether all its frames cost the same.
    pub even: bool,
    /// Whether all players share one utility.
    pub one_group: bool,
    /// The domain of its CPU, if the scheme has one.
    pub domain: Option<String>,
    /// How that is scheduled.
    pub schedule: Schedule,
    /// How often it gives the CPU away too late.
    pub misbehaves: f64,
}

/// The time when all begin, and the window of a player.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Begin {
    /// The start, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// Its frames.
    pub window: Window,
}

/// Is the program.
///
/// # Errors
///
/// One line: it could not begin, or its scheme is not permitted.
pub fn be(order: Order) -> Result<(), String> {
    order.be(|part, _, pace| {
        let begin: Begin = process::is_ready()?;
        sleep_until(begin.at_ns);
        process::tell(&part.play(pace, begin.window)?)
    })
}

impl Part {
    fn play(self, pace: Pace, window: Window) -> Result<Seen, String> {
        let Self { subject, seed, demand, even, one_group, domain, schedule, misbehaves } = self;
        let scheme = schemes::of_name(&subject).ok_or_else(|| format!("no scheme '{subject}'"))?;
        let clip = Clip::new(seed, window.period_ns, demand, even);
        let random = Random(!seed);
        let seat = Seat { pace, one_group, domain, schedule, misbehaves, random };
        (scheme.play)(Player::new(clip, window), seat)
    }
}
