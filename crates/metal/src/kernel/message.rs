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
//! - TABLE-1: after [`unregister`] no CPU runs the action: a CPU counts its batches, and each batch
//!   that may have seen the action has ended by then.
//! - TABLE-2: a broadcast is one addition to a counter, and one to `TOTAL`, which each CPU compares
//!   with the values that it has seen; it runs the action once for each addition that it has not
//!   seen.

use core::mem;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, fence};

use super::cpu::{self, Cpu};
use super::lock::Lock;
use super::state::{BROADCAST_ACTIONS, Broadcasts};
use crate::pending::ACTIONS;
use crate::x86::apic;
use crate::x86::vectors::{MESSAGE, MESSAGE_NOTED};

/// The function of an action. Its argument is the word that was registered with it.
pub type Code = fn(usize);

/// A registered action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(u16);

/// An action that was registered for broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroadcastAction(u16);

/// Error: the table has no free entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

struct Entry {
    code: AtomicPtr<()>,
    word: AtomicUsize,
}

impl Entry {
    const fn new() -> Self {
        Self { code: AtomicPtr::new(ptr::null_mut()), word: AtomicUsize::new(0) }
    }

    #[inline]
    fn run(&self) {
        // Acquire: the word; pairs with the release in `fill`.
        let code = self.code.load(Acquire);
        if code.is_null() {
            return;
        }
        // SAFETY: `fill` has stored a `Code` there.
        let code = unsafe { mem::transmute::<*mut (), Code>(code) };
        code(self.word.load(Relaxed));
    }
}

static TABLE: [Entry; ACTIONS] = [const { Entry::new() }; ACTIONS];
static BROADCAST_TABLE: [Entry; BROADCAST_ACTIONS] = [const { Entry::new() }; BROADCAST_ACTIONS];
static COUNTERS: [AtomicU32; BROADCAST_ACTIONS] = [const { AtomicU32::new(0) }; BROADCAST_ACTIONS];
static TOTAL: AtomicU32 = AtomicU32::new(0);
/// Held by a thread that registers an action.
static CHANGES: Lock<()> = Lock::new(());

impl Broadcasts {
    #[inline]
    fn run(&self) {
        // Acquire: TABLE-2, the counters; pairs with the release in `broadcast`.
        let total = TOTAL.load(Acquire);
        if total != self.total.get() {
            self.total.set(total);
            self.run_new();
        }
    }

    fn run_new(&self) {
        for (index, seen) in self.counters.iter().enumerate() {
            // Acquire: the sender's past; pairs with the release in `broadcast`.
            let now = COUNTERS[index].load(Acquire);
            for _ in 0..now.wrapping_sub(seen.replace(now)) {
                BROADCAST_TABLE[index].run();
            }
        }
    }
}

fn fill(table: &[Entry], code: Code, word: usize) -> Result<u16, TableFull> {
    let _held = CHANGES.lock();
    // Relaxed: entries are changed under the lock.
    let free = table.iter().position(|entry| entry.code.load(Relaxed).is_null());
    let index = free.ok_or(TableFull)?;
    table[index].word.store(word, Relaxed);
    // Release: the word; pairs with the acquire in `run`.
    table[index].code.store(code as *mut (), Release);
    Ok(index as u16)
}

/// Registers an action: `code`, which gets `word` as its argument.
///
/// # Errors
///
/// [`TableFull`]: unregister actions that are no longer used.
pub fn register(code: Code, word: usize) -> Result<Action, TableFull> {
    fill(&TABLE, code, word).map(Action)
}

/// Registers an action for broadcasts.
///
/// # Errors
///
/// [`TableFull`]: unregister actions that are no longer used.
pub fn register_broadcast(code: Code, word: usize) -> Result<BroadcastAction, TableFull> {
    fill(&BROADCAST_TABLE, code, word).map(BroadcastAction)
}

/// Unregisters an action: when this returns, no CPU runs it, and no later post of the name does,
/// until the name is given to another action. A post that its CPU has not seen yet runs nothing.
/// Spins while a CPU is in a batch that may run the action.
pub fn unregister(action: Action) {
    withdraw(&TABLE[usize::from(action.0)]);
}

/// Unregisters an action for broadcasts, like [`unregister`].
pub fn unregister_broadcast(action: BroadcastAction) {
    withdraw(&BROADCAST_TABLE[usize::from(action.0)]);
}

fn withdraw(entry: &Entry) {
    assert!(!cpu::this().in_interrupt.get(), "an action can't unregister one");
    // Relaxed: the fence below orders it.
    entry.code.store(ptr::null_mut(), Relaxed);
    // TABLE-1: pairs with the fence in `batch`.
    fence(SeqCst);
    for number in 0..cpu::count() {
        let batch = &cpu::get(number).batch;
        // Acquire, both: what the batch did; pairs with the release in `batch`.
        let seen = batch.load(Acquire);
        while seen % 2 == 1 && batch.load(Acquire) == seen {
            core::hint::spin_loop();
        }
    }
}

/// Makes CPU `number` run the action. What the caller did before happens before the action.
///
/// # Panics
///
/// If there is no such CPU.
#[inline]
pub fn post(number: u32, action: Action) {
    post_by(cpu::get(number), action, MESSAGE);
}

/// Like [`post`]; the CPU notes when it is about to run actions.
#[inline]
pub fn post_noted(number: u32, action: Action) {
    post_by(cpu::get(number), action, MESSAGE_NOTED);
}

#[inline]
fn post_by(cpu: &Cpu, action: Action, vector: u8) {
    if cpu.pending.post(action.0.into()) {
        apic::send(cpu.apic_id.get(), vector);
    }
}

/// Makes all other CPUs run the action. What the caller did before happens before the action.
#[inline]
pub fn broadcast(action: BroadcastAction) {
    // Release, both: TABLE-2, and the sender's past; they pair with the acquires in `run`.
    COUNTERS[usize::from(action.0)].fetch_add(1, Release);
    TOTAL.fetch_add(1, Release);
    apic::send_to_others(MESSAGE);
}

/// Makes each other CPU run the action, by an interrupt for each.
pub fn post_to_others(action: Action) {
    let me = cpu::number();
    for number in (0..cpu::count()).filter(|&number| number != me) {
        post(number, action);
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
    // Relaxed: only this CPU writes it.
    let begun = cpu.batch.load(Relaxed).wrapping_add(1);
    cpu.batch.store(begun, Relaxed);
    // TABLE-1: pairs with the fence in `withdraw`.
    fence(SeqCst);
    cpu.pending.drain(|action| TABLE[action % ACTIONS].run());
    cpu.broadcasts.run();
    // Release: what the actions did; pairs with the acquires in `withdraw`.
    cpu.batch.store(begun.wrapping_add(1), Release);
    cpu.in_interrupt.set(false);
}
