//! Interrupts alone, up to the first instructions of their handler.

use antiphon_metal::kernel::cpu;
use antiphon_metal::x86::apic;
use antiphon_metal::x86::vectors::RAW;

use super::mechanism::Mechanism;

/// An interrupt whose handler notes the time.
pub struct Raw {
    /// Whether one command tells all other CPUs.
    pub at_once: bool,
}

impl Mechanism for Raw {
    fn unicast(&self, target: u32) {
        apic::send(cpu::get(target).apic_id(), RAW);
    }

    fn broadcast(&self) {
        if self.at_once {
            return apic::send_to_others(RAW);
        }
        (1..cpu::count()).for_each(|target| self.unicast(target));
    }
}
