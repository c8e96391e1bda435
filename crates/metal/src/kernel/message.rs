//! Active messages by interrupts: a CPU is interrupted and runs actions.
//!
//! An action is a function and a word, in a table that all CPUs share. A [`post`] makes an action
//! pending on one CPU ([`pending`](crate::pending)) and interrupts it, unless an interrupt is on
//! its way already; posts of one action that the CPU has not seen yet run it once. A [`broadcast`]
//! goes to all other CPUs by one command to the APIC, whatever their number; each of them runs the
//! action once for each broadcast.
//!
//! An action runs with interrupts off, on the stack of the thread that it interrupts. It must not
//! wait: neither for a lock, which that thread may hold, nor for anything else; it may post, wake
//! threads ([`unpark`](antiphon_platform::Platform::unpark)) and use atomics.
//!
//! There are two further forms: [`slot`], as in Nemo, and [`direct`], without tables. A CPU that
//! has nothing else to do awaits messages by [`halt_until`](super::schedule::halt_until).
//!
//! The parts that CPUs share and the steps of a sender are those of `antiphon-wakeup`
//! ([`message`](antiphon_wakeup::message)); here are the interrupts.

pub mod direct;
pub mod slot;

use antiphon_wakeup::message as send;

use super::cpu::{self, Cpu};
use super::state::BROADCAST_ACTIONS;
use crate::broadcast::Broadcasts;
use crate::metal::Metal;
use crate::names::Name;
use crate::pending::ACTIONS;
pub use crate::table::Code;
use crate::table::Table;
use crate::x86::apic;
use crate::x86::cpu::are_on;
use crate::x86::vectors::{MESSAGE, MESSAGE_NOTED};

/// A registered action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(Name);

/// An action that was registered for broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroadcastAction(Name);

/// Error: the table has no free entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

/// Error: the action was unregistered before, or another thread is unregistering it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRegistered;

impl Action {
    /// Returns the number of its entry. The remainder changes nothing, but saves a bounds check.
    #[inline]
    fn index(self) -> usize {
        self.0.index() % ACTIONS
    }
}

static ACTION_TABLE: Table<Metal, ACTIONS> = Table::NEW;
static BROADCAST_TABLE: Table<Metal, BROADCAST_ACTIONS> = Table::NEW;
static BROADCASTS: Broadcasts<Metal, BROADCAST_ACTIONS> = Broadcasts::NEW;

/// Registers an action: `code`, which gets `word` as its argument.
///
/// # Errors
///
/// [`TableFull`]: unregister actions that are no longer used.
pub fn register(code: Code, word: usize) -> Result<Action, TableFull> {
    ACTION_TABLE.register(code, word).map(Action).ok_or(TableFull)
}

/// Registers an action for broadcasts.
///
/// # Errors
///
/// [`TableFull`]: unregister actions that are no longer used.
pub fn register_broadcast(code: Code, word: usize) -> Result<BroadcastAction, TableFull> {
    BROADCAST_TABLE.register(code, word).map(BroadcastAction).ok_or(TableFull)
}

/// Unregisters an action: when this returns, no CPU runs it. A post that its CPU has not seen yet
/// runs nothing, and no later post does, until the entry is given to another action.
///
/// # Errors
///
/// [`NotRegistered`]: a copy of the name was unregistered. Another action of the same entry is not
/// touched.
///
/// # Panics
///
/// If an action calls it, or interrupts are off.
pub fn unregister(action: Action) -> Result<(), NotRegistered> {
    assert_may_wait();
    let index = action.index();
    let retract = || {
        all().for_each(|cpu| {
            cpu.pending.retract(index);
            cpu.slot.retract(index as u16);
        })
    };
    let batches = all().map(|cpu| &*cpu.batch);
    ACTION_TABLE.unregister(action.0, retract, batches).then_some(()).ok_or(NotRegistered)
}

/// Unregisters an action for broadcasts, like [`unregister`]; also waits until all CPUs have seen
/// its broadcasts.
///
/// # Errors
///
/// See [`unregister`].
///
/// # Panics
///
/// See [`unregister`].
pub fn unregister_broadcast(action: BroadcastAction) -> Result<(), NotRegistered> {
    assert_may_wait();
    let retract = || BROADCASTS.wait(action.0.index(), all().map(|cpu| &cpu.seen));
    let batches = all().map(|cpu| &*cpu.batch);
    BROADCAST_TABLE.unregister(action.0, retract, batches).then_some(()).ok_or(NotRegistered)
}

fn assert_may_wait() {
    assert!(!cpu::this().in_interrupt.get(), "an action can't unregister one");
    assert!(are_on(), "an action is unregistered with interrupts on: other CPUs may wait for this");
}

/// Returns all CPUs.
fn all() -> impl Iterator<Item = &'static Cpu> {
    (0..cpu::count()).map(cpu::get)
}

/// Makes CPU `number` run the action. What the caller did before happens before the action.
///
/// # Panics
///
/// If there is no such CPU.
#[inline]
pub fn post(number: u32, action: Action) {
    post_by(cpu::get(number), action.index(), MESSAGE);
}

/// Like [`post`]; the CPU notes when it is about to run actions.
#[inline]
pub fn post_noted(number: u32, action: Action) {
    post_by(cpu::get(number), action.index(), MESSAGE_NOTED);
}

#[inline]
fn post_by(cpu: &'static Cpu, action: usize, vector: u8) {
    send::post(&Metal, cpu, &cpu.pending, action, vector);
}

/// Makes all other CPUs run the action. What the caller did before happens before the action.
#[inline]
pub fn broadcast(action: BroadcastAction) {
    send::broadcast(&Metal, &BROADCASTS, || &cpu::this().seen, action.0.index(), MESSAGE);
}

/// Makes each other CPU run the action, and sends each an interrupt of its own.
pub fn post_to_others(action: Action) {
    let (me, action) = (cpu::number(), action.index());
    for number in (0..cpu::count()).filter(|&number| number != me) {
        post_by(cpu::get(number), action, MESSAGE);
    }
}

/// Handles the interrupt of active messages.
pub(crate) extern "C" fn interrupt() {
    batch(cpu::this());
}

#[inline]
fn batch(cpu: &Cpu) {
    apic::end_of_interrupt();
    cpu.in_interrupt.set(true);
    cpu.batch.run(|batch| {
        cpu.pending.drain(|action| ACTION_TABLE.run(batch, action % ACTIONS));
        BROADCASTS.take(&cpu.seen, |action| BROADCAST_TABLE.run(batch, action));
    });
    cpu.in_interrupt.set(false);
}
