//! Active messages without tables: an action has a vector of its own, whose handler calls it.
//!
//! There are sixteen such vectors. A post is an interrupt and nothing else; posts of one action
//! that its CPU has not seen yet are one, as the APIC has a bit for each vector.
//!
//! - DIRECT-1: after [`unregister`] no CPU runs the action. The vector's gate leads elsewhere by
//!   then, and each CPU has since taken an interrupt of a lower vector: by which it had ended a
//!   handler that it had entered by the old gate, and had taken what was pending.
//! - DIRECT-2: so an action is not run for a post of an earlier one of its vector, if interrupts
//!   arrive in the order in which they were sent, the last post before the call.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU16, AtomicU32, fence};

use super::assert_may_wait;
use crate::kernel::cpu::{self, MOST_CPUS};
use crate::kernel::schedule;
use crate::x86::vectors::{DIRECT, DIRECT_COUNT, PASS};
use crate::x86::{apic, entry, interrupts};

/// The code of an action.
pub trait Direct: 'static {
    /// Runs in the interrupt, under the rules of [`message`](super).
    fn run();
}

/// An action that was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAction(u8);

/// All vectors are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoVector;

/// The vectors in use, a bit for each.
static TAKEN: AtomicU16 = AtomicU16::new(0);
/// How often each CPU has passed: taken an interrupt of the vector `PASS`.
static PASSES: [AtomicU32; MOST_CPUS] = [const { AtomicU32::new(0) }; MOST_CPUS];

const _: () = assert!(DIRECT_COUNT as u32 == u16::BITS && PASS < DIRECT);

/// Registers an action.
///
/// # Errors
///
/// [`NoVector`]: unregister actions that are not used.
pub fn register<D: Direct>() -> Result<DirectAction, NoVector> {
    let index = take().ok_or(NoVector)?;
    let vector = DIRECT + index as u8;
    // SAFETY: the vector is ours, and the handler is one of interrupts.
    unsafe { interrupts::set(vector, entry::direct::<D> as *const () as usize) };
    Ok(DirectAction(vector))
}

/// Takes a vector that is free.
fn take() -> Option<u32> {
    // Relaxed: it may be stale, and the exchange looks again.
    let mut seen = TAKEN.load(Relaxed);
    loop {
        let index = (!seen).trailing_zeros();
        let bit = 1_u16.checked_shl(index)?;
        // Acquire: the end of an earlier action; pairs with the release in `unregister`.
        match TAKEN.compare_exchange(seen, seen | bit, Acquire, Relaxed) {
            Ok(_) => return Some(index),
            Err(now) => seen = now,
        }
    }
}

/// Unregisters an action: when this returns no CPU runs it, and none will. A post that no CPU has
/// seen yet runs nothing, nor does a later one, until the vector is given to another action.
///
/// # Panics
///
/// If an action calls it, or interrupts are off.
pub fn unregister(action: DirectAction) {
    assert_may_wait();
    // SAFETY: the vector was registered, and that handler does nothing.
    unsafe { interrupts::set(action.0, entry::nothing()) };
    pass_all();
    // Release: DIRECT-1; pairs with the acquire in `take`.
    TAKEN.fetch_and(!(1 << (action.0 - DIRECT)), Release);
}

/// Waits until each CPU has taken an interrupt that is sent now.
fn pass_all() {
    // The new gate is there before a pass is counted below: the pass that ends a wait may be one
    // that another thread has asked for.
    fence(SeqCst);
    for number in 0..cpu::count() {
        let passes = &PASSES[number as usize];
        // Acquire, both: what that CPU ran; pairs with the release in `passed`.
        let seen = passes.load(Acquire);
        apic::send(cpu::get(number).apic_id.get(), PASS);
        while passes.load(Acquire) == seen {
            core::hint::spin_loop();
            schedule::yield_now();
        }
    }
}

/// This CPU takes the interrupt of `PASS`.
pub(crate) extern "C" fn passed() {
    apic::end_of_interrupt();
    // Release: DIRECT-1, what this CPU ran; pairs with the acquires in `pass_all`.
    PASSES[cpu::number() as usize].fetch_add(1, Release);
}

/// Makes CPU `number` run the action. What the caller did before happens before the action.
///
/// # Panics
///
/// If there is no such CPU.
#[inline]
pub fn post(number: u32, action: DirectAction) {
    apic::send(cpu::get(number).apic_id.get(), action.0);
}

/// Makes all other CPUs run the action, by one command.
#[inline]
pub fn broadcast(action: DirectAction) {
    apic::send_to_others(action.0);
}

/// The interrupt of an action has come.
#[inline(always)]
pub(crate) extern "C" fn entered<D: Direct>() {
    apic::end_of_interrupt();
    let cpu = cpu::this();
    cpu.in_interrupt.set(true);
    D::run();
    cpu.in_interrupt.set(false);
}
