//! What the programs of a repetition do: a [process](crate::compete::process) each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::clip::Clip;
use super::player::{Player, Seen, Window};
use super::schemes::{self, Seat};
use crate::compete::work::{Pace, sleep_until};
use crate::compete::{hogs, process};
use crate::stats::Random;

/// A program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Where it runs, as the kernel numbers CPUs.
    pub cpu: u32,
    /// How fast it works.
    pub pace: Pace,
    /// What it does.
    pub role: Role,
}

/// What a program does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It plays a clip.
    Play(Part),
    /// It computes nothing.
    Spin,
    /// It compiles, by that compiler.
    Compile(PathBuf),
}

/// How a player plays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The scheme.
    pub subject: String,
    /// Of its clip.
    pub seed: u64,
    /// How much of a CPU it wants.
    pub demand: f64,
    /// Whether all its frames cost the same.
    pub even: bool,
    /// Whether all players share one utility.
    pub one_group: bool,
    /// How often it gives the CPU away too late.
    pub misbehaves: f64,
}

/// When all begin, and when a player plays.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Begin {
    /// In nanoseconds of the monotonic clock.
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
    let Order { cpu, pace, role } = order;
    antiphon_linux::pin(cpu).map_err(|_| format!("CPU {cpu} can't be used"))?;
    let prepared = match &role {
        Role::Compile(compiler) => Some(hogs::Compiler::new(compiler)?),
        Role::Play(_) | Role::Spin => None,
    };
    let begin: Begin = process::is_ready()?;
    sleep_until(begin.at_ns);
    match (role, prepared) {
        (Role::Play(part), _) => {
            process::tell(&part.play(pace, begin.window)?)
        }
        (Role::Compile(_), Some(compiler)) => compiler.compile_for_good(),
        (Role::Spin | Role::Compile(_), _) => hogs::spin_for_good(pace),
    }
}

impl Part {
    fn play(self, pace: Pace, window: Window) -> Result<Seen, String> {
        let Self { subject, seed, demand, even, one_group, misbehaves } = self;
        let scheme = schemes::of_name(&subject).ok_or_else(|| format!("no scheme '{subject}'"))?;
        let clip = Clip::new(seed, window.period_ns, demand, even);
        let seat = Seat { pace, one_group, misbehaves, random: Random(!seed) };
        (scheme.play)(Player::new(clip, window), seat)
    }
}
