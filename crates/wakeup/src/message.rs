//! Sending active messages: an action becomes pending, and an interrupt goes out if none is on its
//! way.
//!
//! Interrupts are off from the first store to the command, because other senders rely on this
//! sender's interrupt (PENDING-1, SLOT-1), and because the sender's CPU must not run its own
//! broadcast in between (REACH-2).

use antiphon_platform::Atomics;

use crate::broadcast::{Broadcasts, Seen};
use crate::machine::Machine;
use crate::pending::Pending;
use crate::slot::Slot;

/// Makes a CPU run an action, and sends `signal` if its handler is not on its way. What the caller
/// did before happens before the action.
#[inline]
pub fn post<M: Machine>(
    machine: &M,
    cpu: M::Cpu,
    pending: &Pending<M::Words>,
    action: usize,
    signal: M::Signal,
) {
    machine.without_interrupts(|| {
        if pending.post(action) {
            machine.interrupt(cpu, signal);
        }
    });
}

/// Makes a CPU run the action of its slot, if the slot is free. Returns whether it was.
#[inline]
#[must_use]
pub fn try_post<M: Machine>(
    machine: &M,
    cpu: M::Cpu,
    slot: &Slot<M::Words>,
    action: u16,
    signal: M::Signal,
) -> bool {
    machine.without_interrupts(|| {
        let filled = slot.fill(action);
        if filled {
            machine.interrupt(cpu, signal);
        }
        filled
    })
}

/// Makes all CPUs but the caller's run an action. `own` are what the caller's CPU has seen.
///
/// What the caller did before happens before the action.
#[inline]
pub fn broadcast<'a, M: Machine, const N: usize>(
    machine: &M,
    broadcasts: &Broadcasts<M::Words, N>,
    own: impl FnOnce() -> &'a Seen<M::Words, N>,
    action: usize,
    signal: M::Signal,
) where
    M::Words: Atomics + 'a,
{
    machine.without_interrupts(|| {
        broadcasts.send(action, own());
        machine.interrupt_others(signal);
    });
}
