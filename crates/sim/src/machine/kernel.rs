//! A machine whose program is the kernel, as in the hybrid runtimes of Hale and Dinda (Nemo): there
//! are no system calls, and the program may send interrupts.

use super::{Interrupt, Machine, Wakes};

/// The cost of threads to a program that is the kernel, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The time of the waker until a thread is on the run queue of its CPU.
    pub wake_ns: u64,
    /// The switch from the background thread of a CPU to a woken thread.
    pub switch_ns: u64,
    /// The time from one yield of a background thread to the next.
    pub background_ns: u64,
    /// See [`Machine::wake_lines`].
    pub lines: u32,
    /// See [`Machine::sleep_cost_ns`].
    pub sleep_cost_ns: Option<u64>,
}

impl Machine {
    /// The same machine under a program that is its kernel; `None` if its file has no such costs.
    /// Each CPU has a background thread, of which only the effects are simulated: no CPU is ever
    /// idle, and a woken thread waits until the background thread yields, after a random part of
    /// its period, or, depending on `wakes`, until an interrupt kicks it (Nemo, section IV.A).
    #[must_use]
    pub fn as_kernel(&self, wakes: Wakes) -> Option<Self> {
        let Kernel { wake_ns, switch_ns, background_ns, lines, sleep_cost_ns } = self.kernel?;
        let kicks = wakes != Wakes::Contained;
        Some(Self {
            interrupt: Interrupt {
                wakes: if kicks { Wakes::All } else { wakes },
                ..self.interrupt
            },
            call_ns: 0,
            park_ns: switch_ns,
            wake_ns,
            wake_latency_ns: switch_ns,
            wake_lines: lines,
            sleep_cost_ns,
            wake_jitter_ns: if kicks { 0 } else { background_ns },
            switch_ns,
            ..self.awake()
        })
    }

    /// The same machine, but no CPU is ever idle: it polls for work, or waits for an interrupt
    /// without halting.
    #[must_use]
    pub fn awake(&self) -> Self {
        Self { idle: Vec::new(), ..self.clone() }
    }
}
