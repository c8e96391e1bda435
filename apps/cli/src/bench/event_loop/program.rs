//! Programs that compete: a process each, which begins when it is told, and tells what it saw.
//!
//! ```text
//!   repetition                        program
//!       │ ──── its role (argument) ────► │ takes its CPU
//!       │ ◄────────── "ready" ────────── │
//!       │ ────── when: a `Begin` ──────► │ sleeps until then, and plays or computes
//!       │ ◄───── a player: `Seen` ────── │
//!       │ ─────────── SIGKILL ─────────► │
//! ```

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

use super::clip::Clip;
use super::hogs;
use super::player::{Player, Seen, Window};
use super::schemes::{self, Seat};
use super::work::{Pace, sleep_until};
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

const READY: &str = "ready";

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
    println!("{READY}");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| error.to_string())?;
    let begin: Begin = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    sleep_until(begin.at_ns);
    match (role, prepared) {
        (Role::Play(part), _) => {
            let seen = part.play(pace, begin.window)?;
            println!("{}", serde_json::to_string(&seen).map_err(|error| error.to_string())?);
            Ok(())
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

/// A program that was started. It ends with this.
pub struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// One line: there can't be one process more.
    pub fn start(order: Order) -> Result<Self, String> {
        let order = crate::bench::Order::Program(order);
        let order = serde_json::to_string(&order).map_err(|error| error.to_string())?;
        let mut child = Command::new("/proc/self/exe")
            .args([crate::bench::REPETITION, &order])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("can't start a program: {error}"))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                Ok(Self { child, stdin, stdout: BufReader::new(stdout) })
            }
            _ => Err("a program without pipes".to_owned()),
        }
    }

    /// Waits until it is ready to begin.
    ///
    /// # Errors
    ///
    /// One line: it has ended before.
    pub fn ready(&mut self) -> Result<(), String> {
        let line = self.line()?;
        if line.trim() == READY { Ok(()) } else { Err(format!("a program said '{}'", line.trim())) }
    }

    /// Tells it when to begin.
    ///
    /// # Errors
    ///
    /// One line: it has ended before.
    pub fn begin(&mut self, begin: Begin) -> Result<(), String> {
        let line = serde_json::to_string(&begin).map_err(|error| error.to_string())?;
        writeln!(self.stdin, "{line}").map_err(|error| format!("a program has ended: {error}"))
    }

    /// Waits for what a player saw.
    ///
    /// # Errors
    ///
    /// One line: it has ended without.
    pub fn seen(&mut self) -> Result<Seen, String> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| format!("a player said no figures: {error}"))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(1..) => Ok(line),
            Ok(0) => Err("a program has ended; what it said is above".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails only if it has ended already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
