//! Active messages as in Nemo: each CPU has one slot for the action that it is asked to run, and a
//! sender waits until the slot is free.
//!
//! The actions are those of [`post`](super::post). Each post runs its action once: none is merged
//! with another.

use antiphon_wakeup::message::try_post;

use super::{ACTION_TABLE, Action};
use crate::kernel::cpu;
use crate::metal::Metal;
use crate::pending::ACTIONS;
use crate::x86::apic;
use crate::x86::cpu::are_on;
use crate::x86::vectors::SLOT;

/// Makes CPU `number` run the action; waits while an earlier message is in the CPU's slot. What the
/// caller did before happens before the action.
///
/// # Panics
///
/// If there is no such CPU; if an action calls it, or interrupts are off: two CPUs that wait for
/// each other's slots would wait for ever.
#[inline]
pub fn post(number: u32, action: Action) {
    let target = cpu::get(number);
    assert!(are_on() && !cpu::this().in_interrupt.get(), "a sender may have to wait for the slot");
    while !try_post(&Metal, target, &target.slot, action.0.index() as u16, SLOT) {
        target.slot.wait();
    }
}

/// Makes each other CPU run the action; sends to one after the other.
///
/// # Panics
///
/// See [`post`].
pub fn post_to_others(action: Action) {
    let me = cpu::number();
    for number in (0..cpu::count()).filter(|&number| number != me) {
        post(number, action);
    }
}

/// Handles the interrupt of the slot.
pub(crate) extern "C" fn interrupt() {
    apic::end_of_interrupt();
    let cpu = cpu::this();
    cpu.in_interrupt.set(true);
    cpu.batch.run(|batch| {
        if let Some(action) = cpu.slot.empty() {
            ACTION_TABLE.run(batch, usize::from(action) % ACTIONS);
        }
    });
    cpu.in_interrupt.set(false);
}
