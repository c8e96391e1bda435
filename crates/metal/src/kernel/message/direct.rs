//! Active messages without tables: an action has a vector of its own, whose handler calls it.
//!
//! There are sixteen such vectors. A post is only an interrupt. Posts of one action that its CPU
//! has not seen yet run it once, because the APIC has one bit for each vector.
//!
//! - DIRECT-1: after [`unregister`] no CPU runs the action. The vector's gate leads elsewhere by
//!   then, and each CPU has since taken an interrupt of a lower vector: before that, it ended any
//!   handler that it had entered by the old gate, and took the interrupts that were pending.
//! - DIRECT-2: so a post to an earlier action of the same vector does not run a later one, if
//!   interrupts arrive in the order in which they were sent, the last post before the call.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, fence};

use super::assert_may_wait;
use crate::kernel::cpu::{self, MOST_CPUS};
use crate::kernel::schedule;
use crate::x86::vectors::{DIRECT, DIRECT_COUNT, PASS};
use crate::x86::{apic, entry, interrupts};

/// The function of an action.
pub trait Direct: 'static {
    /// Runs in the interrupt, under the rules of [`message`](super).
    fn run();
}

/// A registered action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAction(u8);

/// Error: all vectors are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoVector;

/// The vectors that are in use, a bit for each.
static TAKEN: AtomicU16 = AtomicU16::new(0);
/// Number of interrupts of the vector `PASS` that each CPU has taken.
static PASSES: [AtomicU32; MOST_CPUS] = [const { AtomicU32::new(0) }; MOST_CPUS];
/// Whether a thread is in [`pass_all`].
static PASSING: AtomicBool = AtomicBool::new(false);

const _: () = assert!(DIRECT_COUNT as u32 == u16::BITS && PASS < DIRECT);

/// Registers an action.
///
/// # Errors
///
/// [`NoVector`]: unregister actions that are no longer used.
pub fn register<D: Direct>() -> Result<DirectAction, NoVector> {
    let index = take().ok_or(NoVector)?;
    let vector = DIRECT + index as u8;
    // SAFETY: `take` has given the vector to this caller, and the function is a handler of
    // interrupts.
    unsafe { interrupts::set(vector, entry::direct::<D> as *const () as usize) };
    Ok(DirectAction(vector))
}

/// Takes a free vector; returns its index, or `None` if all are in use.
fn take() -> Option<u32> {
    // Relaxed: the value may be stale, and the exchange checks it again.
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

/// Unregisters an action: when this returns, no CPU runs it. A post that its CPU has not seen yet
/// runs nothing, and no later post does, until the vector is given to another action.
///
/// # Panics
///
/// If an action calls it, or interrupts are off.
pub fn unregister(action: DirectAction) {
    assert_may_wait();
    // SAFETY: the vector was registered, and `nothing` returns a handler that does nothing.
    unsafe { interrupts::set(action.0, entry::nothing()) };
    pass_all();
    // Release: DIRECT-1; pairs with the acquire in `take`.
    TAKEN.fetch_and(!(1 << (action.0 - DIRECT)), Release);
}

/// Sends each CPU an interrupt of `PASS`, and waits until it has taken it.
fn pass_all() {
    // One caller at a time: a pass that another one has asked for may be in its handler already,
    // with a post behind it that has not been taken yet.
    // Acquire: pairs with the release below.
    while PASSING.swap(true, Acquire) {
        schedule::yield_now();
    }
    // The new gate is there before a pass is counted below.
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
    // Release: our passes; pairs with the acquire above.
    PASSING.store(false, Release);
}

/// Handles the interrupt of `PASS`.
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

/// Makes all other CPUs run the action, by one command to the APIC.
#[inline]
pub fn broadcast(action: DirectAction) {
    apic::send_to_others(action.0);
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
