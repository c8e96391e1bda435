//! The parts of a wake-up's cost: the same machine without one of them, so that the difference says
//! what it contributes.

use super::Machine;

/// A part of the cost of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The sender's write of the interrupt controller.
    Source,
    /// The interrupt's way between two CPUs.
    Way,
    /// From the interrupt's arrival to the handler's first instruction.
    Handling,
    /// Lines that move between CPUs.
    Lines,
    /// Read-modify-writes of lines that the CPU holds, and fences.
    Atomics,
    /// System calls.
    Calls,
    /// The scheduler: of Linux, or of a kernel, by the instructions of its paths, with those of its
    /// messages.
    Scheduler,
    /// The end of an idle state.
    Idle,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 8] = [
        Self::Source,
        Self::Way,
        Self::Handling,
        Self::Lines,
        Self::Atomics,
        Self::Calls,
        Self::Scheduler,
        Self::Idle,
    ];

    /// The name of the part, in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Way => "way",
            Self::Handling => "handling",
            Self::Lines => "lines",
            Self::Atomics => "atomics",
            Self::Calls => "calls",
            Self::Scheduler => "scheduler",
            Self::Idle => "idle",
        }
    }
}

impl Machine {
    /// The same machine, on which a part of a wake-up costs nothing, or as little as an access that
    /// hits.
    #[must_use]
    pub fn without(&self, part: Part) -> Self {
        let mut machine = self.clone();
        match part {
            Part::Source => machine.interrupt.send_ns = 0,
            Part::Way => {
                machine.interrupt.deliver_ns = 0;
                machine.topology = machine.topology.with_interrupts(0);
            }
            Part::Handling => machine.interrupt.handle_ns = 0,
            Part::Lines => {
                machine.invalidate_ns = 0;
                machine.shared_write_ns = 0;
                machine.occupancy_ns = 0;
                machine.topology = machine.topology.with_transfers(self.hit_ns);
            }
            Part::Atomics => {
                machine.rmw_ns = 1;
                machine.rmw_rest_ps = 0;
                machine.fence_ns = 1;
            }
            Part::Calls => {
                machine.park_ns = self.park_ns.saturating_sub(self.call_ns);
                machine.wake_ns = self.wake_ns.saturating_sub(self.call_ns);
                machine.call_ns = 0;
            }
            Part::Scheduler => {
                // The time of a system call itself is the part above.
                machine.park_ns = self.call_ns.min(self.park_ns);
                machine.wake_ns = self.call_ns.min(self.wake_ns);
                machine.wake_latency_ns = 0;
                machine.wake_jitter_ns = 0;
                machine.switch_ns = 0;
                machine.instruction_ps = self.instruction_ps.map(|_| 0);
            }
            Part::Idle => machine.idle.clear(),
        }
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_taken_out_of_its_machine() {
        let machine = super::super::presets::machine("nemo-64c");
        for part in Part::ALL {
            assert_ne!(machine.without(part), machine, "{part:?}");
        }
        let without = machine.without(Part::Way);
        assert!((1..64).all(|cpu| without.deliver_ns(0, cpu) == 0));
        let without = machine.without(Part::Lines);
        assert!((1..64).all(|cpu| without.transfer_ns(0, cpu) == machine.hit_ns));
        let (calls, scheduler) = (machine.without(Part::Calls), machine.without(Part::Scheduler));
        assert_eq!(calls.wake_ns + scheduler.wake_ns, machine.wake_ns);
    }
}
