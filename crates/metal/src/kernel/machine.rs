//! The processors of this kernel, for the protocol by which they wake each other.

use antiphon_wakeup::machine::Machine;

use super::cpu::{self, Cpu};
use crate::metal::Metal;
use crate::x86::apic::{self, Group};
use crate::x86::cpu::{halt_with_interrupts, restore, without_interrupts};
use crate::x86::vectors;

impl Machine for Metal {
    type Words = Self;
    type Cpu = &'static Cpu;
    /// A vector.
    type Signal = u8;

    const KICK: u8 = vectors::KICK;

    #[inline]
    fn is_current(&self, cpu: &'static Cpu) -> bool {
        core::ptr::eq(cpu, cpu::this())
    }

    #[inline]
    fn others(&self) -> usize {
        cpu::count() as usize - 1
    }

    #[inline]
    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R {
        let were_on = without_interrupts();
        let result = body();
        restore(were_on);
        result
    }

    #[inline]
    fn interrupt(&self, cpu: &'static Cpu, vector: u8) {
        apic::send_at_once(cpu.apic_id.get(), vector);
    }

    #[inline]
    fn interrupt_others(&self, vector: u8) {
        apic::send_to_others_at_once(vector);
    }

    /// With an x2APIC, sends a command to each cluster. Firmware usually lists the CPUs of a
    /// cluster one after the other; where it does not, a cluster gets more than one command.
    #[inline]
    fn interrupt_several(&self, cpus: &[&'static Cpu], vector: u8) {
        if !apic::is_x2() {
            cpus.iter().for_each(|cpu| self.interrupt(cpu, vector));
            return;
        }
        let mut group: Option<Group> = None;
        for cpu in cpus {
            let one = Group::of(cpu.apic_id.get());
            group = match group.map(|group| (group, group.with(one))) {
                Some((_, Some(both))) => Some(both),
                Some((group, None)) => {
                    group.send_at_once(vector);
                    Some(one)
                }
                None => Some(one),
            };
        }
        if let Some(group) = group {
            group.send_at_once(vector);
        }
    }

    #[inline]
    fn halt(&self) {
        halt_with_interrupts();
    }
}
