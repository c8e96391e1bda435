//! The order that a program gets when it is started, and the work of hogs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::level::Level;
use super::process::is_ready;
use super::terms::Competitor;
use super::work::{Pace, sleep_until};
use super::{cgroup, hogs};

/// The order for a program; `P` describes how it plays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order<P> {
    /// The CPU that it runs on, by the kernel's number.
    pub cpu: u32,
    /// Calibrated speed of its work.
    pub pace: Pace,
    /// The run-queue level of its own, if it should have one.
    pub own_level: Option<OwnLevel>,
    /// The role of the program.
    pub role: Role<P>,
}

/// A run-queue level that a program has for itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnLevel {
    /// A session.
    Session {
        /// Whether it should weigh more than others.
        first: bool,
    },
    /// The control group with this folder.
    Group(PathBuf),
}

/// The role of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role<P> {
    /// The program plays.
    Play(P),
    /// The program computes nothing.
    Spin,
    /// The program compiles with this compiler.
    Compile(PathBuf),
}

/// The part of the begin message that a hog reads.
#[derive(Deserialize)]
struct Begin {
    at_ns: u64,
}

impl<P> Role<P> {
    /// The role of a hog.
    ///
    /// # Errors
    ///
    /// If it should compile, but no compiler was searched for.
    pub fn hog(competitor: Competitor, compiler: Option<&PathBuf>) -> Result<Self, String> {
        match (competitor, compiler) {
            (Competitor::Spin, _) => Ok(Self::Spin),
            (Competitor::Cc, Some(compiler)) => Ok(Self::Compile(compiler.clone())),
            (Competitor::Cc, None) => Err("no compiler was looked for".to_owned()),
        }
    }
}

impl<P> Order<P> {
    /// The main function of the program: `play` prepares, waits for the begin command, and plays.
    ///
    /// # Errors
    ///
    /// One line, if it could not begin.
    pub fn be(self, play: impl FnOnce(P, u32, Pace) -> Result<(), String>) -> Result<(), String> {
        let Self { cpu, pace, own_level, role } = self;
        match own_level {
            None => {}
            Some(OwnLevel::Session { first }) => drop(Level::take(first)),
            Some(OwnLevel::Group(folder)) => cgroup::enter(&folder)?,
        }
        antiphon_linux::pin(cpu).map_err(|_| format!("CPU {cpu} can't be used"))?;
        match role {
            Role::Play(part) => play(part, cpu, pace),
            Role::Spin => {
                let begin: Begin = is_ready()?;
                sleep_until(begin.at_ns);
                hogs::spin_for_good(pace)
            }
            Role::Compile(compiler) => {
                let compiler = hogs::Compiler::new(&compiler)?;
                let begin: Begin = is_ready()?;
                sleep_until(begin.at_ns);
                compiler.compile_for_good()
            }
        }
    }
}
