//! Checks that moving a cache line between two CPUs still costs what the machine's description
//! says.
//!
//! On a virtual machine this may change by a factor of ten from one second to the next: the host
//! moves CPUs between caches and sockets. A run of two threads on a machine that differs from the
//! calibrated one says nothing about the simulator.

use antiphon_report::failure::Failure;
use antiphon_sim::{Description, Kind};

use crate::sim::calibrate;
use crate::ticks::Ticks;

/// Allowed deviation, as a share of the described cost.
const APART: f64 = 0.25;
/// Number of windows of one check, which takes a few milliseconds at most.
const WINDOWS: usize = 20;

/// The line between the first two CPUs.
pub struct Line {
    watch: Ticks,
    places: [usize; 2],
    told_ns: f64,
    /// Number of runs during which the cost deviated.
    pub moved: usize,
}

impl Line {
    /// Returns `None` if no transfer time in `described` was measured, or there is only one CPU.
    ///
    /// # Errors
    ///
    /// If the time-stamp counter can't be used.
    pub fn of(described: &Description, places: &[usize]) -> Result<Option<Self>, Failure> {
        let transfer = |name: &str| name.starts_with("level.") && name.ends_with(".transfer");
        let mut numbers = described.numbers.iter();
        let measured =
            numbers.any(|number| transfer(&number.name) && number.kind == Kind::Measured);
        let &[one, other, ..] = places else { return Ok(None) };
        if !measured || one.max(other) >= described.machine.cores() as usize {
            return Ok(None);
        }
        let told_ns = described.machine.transfer_ns(one as u32, other as u32) as f64;
        let watch = Ticks::calibrate();
        Ok(Some(Self { watch, places: [one, other], told_ns, moved: 0 }))
    }

    /// Returns whether the cost is currently as described.
    ///
    /// # Errors
    ///
    /// If one of the CPUs can't be used.
    pub fn is_as_told(&self) -> Result<bool, Failure> {
        let seen = calibrate::line_ns(self.watch, self.places, WINDOWS)?;
        Ok(seen.is_some_and(|ns| (ns / self.told_ns - 1.0).abs() < APART))
    }
}
