//! The paths of a kernel whose instructions were counted, as costs of a machine.
//!
//! A path of `n` instructions takes `n` times `instruction` of the machine's `[core]`: a period of
//! its clock divided by the instructions for each cycle that the file states. Lines that move
//! between CPUs come on top, by their distance. Where the simulator also runs the code of a path,
//! with a price for each access that hits, such an access is counted twice: the sum is an upper
//! bound.

use super::{Kernel, Machine};

/// The paths of a wake-up in a kernel, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Of the waker, until the interrupt is sent.
    pub wake: u32,
    /// Of the destination, from the handler's first instruction until the woken thread runs.
    pub run: u32,
    /// The number of lines that the waker takes from the destination for that, and the destination
    /// back: those of a run queue.
    pub lines: u32,
    /// What the kernel tells its threads that a sleep costs, in nanoseconds.
    pub sleep_cost_ns: u64,
}

impl Machine {
    /// The time that instructions of a kernel take, in nanoseconds; `None` if the machine's file
    /// does not say.
    #[must_use]
    pub fn instructions_ns(&self, count: u32) -> Option<u64> {
        Some((u64::from(count) * self.instruction_ps?).div_ceil(1_000))
    }

    /// The same machine with a kernel of these paths, for [`as_kernel`](Self::as_kernel); `None` if
    /// the machine's file does not say how long an instruction takes.
    #[must_use]
    pub fn with_paths(&self, paths: &Paths) -> Option<Self> {
        let kernel = Kernel {
            wake_ns: self.instructions_ns(paths.wake)?,
            switch_ns: self.instructions_ns(paths.run)?,
            background_ns: 0,
            lines: paths.lines,
            sleep_cost_ns: Some(paths.sleep_cost_ns),
        };
        Some(Self { kernel: Some(kernel), ..self.clone() })
    }
}
