//! The programs of a repetition: each is a [process](crate::compete::process).

use antiphon_report::schedule::Schedule;
use antiphon_report::stats::Random;
use serde::{Deserialize, Serialize};

use super::clip::Clip;
use super::player::{Player, Seen, Window};
use super::schemes::{self, Seat};
use crate::compete::work::{Pace, sleep_until};
use crate::compete::{order, process};

/// The order for one program.
pub type Order = order::Order<Part>;

/// The part of a player.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Name of the scheme.
    pub subject: String,
    /// Seed of its clip.
    pub seed: u64,
    /// Share of a CPU that it wants.
    pub demand: f64,
    /// Whether all its frames cost the same.
    pub even: bool,
    /// Whether all players share one utility.
    pub one_group: bool,
    /// Name of the domain of its CPU, if the scheme has one.
    pub domain: Option<String>,
    /// Scheduling options of the domain.
    pub schedule: Schedule,
    /// Probability that it gives the CPU away too late.
    pub misbehaves: f64,
}

/// The time when all begin, and the window of a player.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Begin {
    /// Start, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// The window of its frames.
    pub window: Window,
}

/// Runs as the program of this order.
///
/// # Errors
///
/// One line, if it could not begin or its scheme is not permitted.
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
