//! Active messages without tables: an action has a vector of its own, whose handler calls it.
//!
//! There are sixteen such vectors. A post is only an interrupt. Posts of one action that its CPU
//! has not seen yet run it once, because the APIC has one bit for each vector.
//!
//! How such an action is unregistered: [`direct`](crate::direct).

use super::{NotRegistered, all, assert_may_wait};
use crate::direct::Vectors;
use crate::kernel::cpu;
use crate::metal::Metal;
use crate::names::Name;
use crate::x86::vectors::{DIRECT, DIRECT_COUNT, PASS};
use crate::x86::{apic, entry, interrupts};

/// The function of an action.
pub trait Direct: 'static {
    /// Runs in the interrupt, under the rules of [`message`](super).
    fn run();
}

/// A registered action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAction(Name);

/// Error: all vectors are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoVector;

static VECTORS: Vectors<Metal, { DIRECT_COUNT as usize }> = Vectors::NEW;

const _: () = assert!(PASS < DIRECT, "a pass is taken after posts");

impl DirectAction {
    #[inline]
    fn vector(self) -> u8 {
        DIRECT + self.0.index() as u8
    }
}

/// Registers an action.
///
/// # Errors
///
/// [`NoVector`]: unregister actions that are no longer used.
pub fn register<D: Direct>() -> Result<DirectAction, NoVector> {
    let action = VECTORS.register().map(DirectAction).ok_or(NoVector)?;
    // SAFETY: the vector was given to this caller, and the function is a handler of interrupts.
    unsafe { interrupts::set(action.vector(), entry::direct::<D> as *const () as usize) };
    Ok(action)
}

/// Unregisters an action: when this returns, no CPU runs it. A post that its CPU has not seen yet
/// runs nothing, and no later post does, until the vector is given to another action.
///
/// # Errors
///
/// [`NotRegistered`]: a copy of the name was unregistered. Another action of the same vector is not
/// touched.
///
/// # Panics
///
/// If an action calls it, or interrupts are off.
pub fn unregister(action: DirectAction) -> Result<(), NotRegistered> {
    assert_may_wait();
    // SAFETY: the vector is still this action's (NAME-1), and `nothing` returns a handler that does
    // nothing.
    let close = || unsafe { interrupts::set(action.vector(), entry::nothing()) };
    let cpus = all().map(|cpu| (&cpu.passes, || apic::send(cpu.apic_id.get(), PASS)));
    VECTORS.unregister(action.0, close, cpus).then_some(()).ok_or(NotRegistered)
}

/// Handles the interrupt of `PASS`.
pub(crate) extern "C" fn passed() {
    apic::end_of_interrupt();
    cpu::this().passes.pass();
}

/// Makes CPU `number` run the action. What the caller did before happens before the action.
///
/// # Panics
///
/// If there is no such CPU.
#[inline]
pub fn post(number: u32, action: DirectAction) {
    apic::send(cpu::get(number).apic_id.get(), action.vector());
}

/// Makes all other CPUs run the action, by one command to the APIC.
#[inline]
pub fn broadcast(action: DirectAction) {
    apic::send_to_others(action.vector());
}

/// Handles the interrupt of an action.
#[inline(always)]
pub(crate) extern "C" fn entered<D: Direct>() {
    apic::end_of_interrupt();
    let cpu = cpu::this();
    cpu.in_interrupt.set(true);
    D::run();
    cpu.in_interrupt.set(false);
}
