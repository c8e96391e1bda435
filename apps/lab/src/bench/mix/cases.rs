//! The conditions under which mixes are measured.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::codec::Codec;
use super::hosts::Size;
use crate::bench::neighbours::Load;
use crate::bench::rounds;
use crate::named::Named as _;

/// How a leg or a mixer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// They are suspended until their time
    Sleep,
    /// They yield in a loop, as in the published program
    Yield,
}

/// When conferences begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Each at another moment of the first period
    Spread,
    /// All at once
    Together,
}

/// A case with its conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// The codecs of the legs.
    pub codec: Codec,
    /// How legs and mixers wait.
    pub wait: Wait,
    /// When conferences begin.
    pub phase: Phase,
    /// Number of conferences; in a search for the most that are sustained, the number that it
    /// begins with.
    pub conferences: u32,
    /// Whether to search for the most conferences that are sustained.
    pub search: bool,
    /// Number of legs of a conference.
    pub legs: usize,
    /// Bytes of a frame.
    pub frame: usize,
    /// Number of frames of each leg.
    pub frames: u32,
    /// Number of workers; several pools may have more threads in total.
    pub workers: usize,
    /// Number of pools that silos have.
    pub silos: usize,
}

impl Cell {
    /// Returns the size of hosts.
    pub fn size(&self) -> Size {
        Size { workers: self.workers, silos: self.silos }
    }

    /// Returns how many receivers and mixers `conferences` conferences have.
    pub fn parts(&self, conferences: u32) -> usize {
        conferences as usize * (self.legs + 1)
    }
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            load,
            codec,
            wait,
            phase,
            conferences,
            search,
            legs,
            frame,
            frames,
            workers,
            ..
        } = self;
        let (wait, load) = (wait.name(), load.name());
        if *search {
            write!(f, "as many conferences as can be had of {legs} legs, ")?;
        } else {
            write!(f, "{conferences} conferences of {legs} legs, ")?;
        }
        write!(f, "{frames} frames of {frame} bytes, {codec}, {wait}, ")?;
        if *phase == Phase::Together {
            write!(f, "together, ")?;
        }
        write!(f, "{workers} workers, load {load}")
    }
}
