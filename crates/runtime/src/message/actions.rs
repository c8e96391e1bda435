//! The table of actions: the code that messages may run.
//!
//! ```text
//!            register           it is written              unregister
//!   FREE ───────────────► FILLING ───────────► LIVE ─────────────────────► LEAVING
//!    ▲    generation + 1                                                      │
//!    └─────────────── no batch runs it any more, and it is dropped ───────────┘ until the last
//! ```
//!
//! - ACTION-1: the content of an entry is written and dropped by one thread, the one that made it
//!   `FILLING` or `LEAVING`, and read by batches that have seen it `LIVE` with the generation of
//!   their message.
//! - ACTION-2: after `unregister`, no batch runs the action: earlier batches have ended, and later
//!   ones see that it is not live (PULSE-1).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Platform};
use antiphon_sync::lock::ShflMutex;

use super::id::State;
use super::pulse::Pulse;
use super::{ActionId, Payload, SignalId};

/// The number of actions of a table that can be [signalled](super::Sender::signal).
pub const SIGNALS: usize = 63;

type Action = Box<dyn Fn(Payload) + Send + Sync>;

/// A table of actions, shared by all mailboxes that were made with it. A clone is the same table.
pub struct Actions<P: Platform>(Arc<Table<P>>);

struct Table<P: Platform> {
    entries: Box<[Entry<P>]>,
    pulses: Pulses<P>,
}

struct Entry<P: Platform> {
    state: P::U32,
    action: UnsafeCell<Option<Action>>,
}

// SAFETY: ACTION-1; an action may be run, and dropped, by any thread, and by several at a time.
unsafe impl<P: Platform> Send for Entry<P> {}
// SAFETY: ACTION-1; an action may be run, and dropped, by any thread, and by several at a time.
unsafe impl<P: Platform> Sync for Entry<P> {}

/// The pulses of all mailboxes.
struct Pulses<P: Platform> {
    lock: ShflMutex<P>,
    list: UnsafeCell<Vec<Arc<Pulse<P>>>>,
}

// SAFETY: only the holder of the lock accesses the list; pulses are atomics.
unsafe impl<P: Platform> Send for Pulses<P> {}
// SAFETY: only the holder of the lock accesses the list; pulses are atomics.
unsafe impl<P: Platform> Sync for Pulses<P> {}

/// The error for a table without a free entry: make a larger one, or unregister unused actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

/// The reason why an action was not unregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The action is not registered: it never was in this table, or was unregistered already.
    Unknown,
    /// The caller is in an action, and would wait for itself or for another action that does the
    /// same. Unregister it on a thread, or a fiber, that is not running an action.
    FromAction,
}

impl<P: Platform> Actions<P> {
    /// The greatest number of actions for messages in a table.
    pub const MOST: usize = (1 << ActionId::INDEX_BITS) - SIGNALS;

    /// Creates a table for `capacity` actions that messages run, at most [`MOST`](Self::MOST), in
    /// addition to [`SIGNALS`] actions that signals run.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let entry = |_| Entry { state: P::U32::ZERO, action: UnsafeCell::new(None) };
        let pulses = Pulses { lock: ShflMutex::NEW, list: UnsafeCell::default() };
        let entries = (0..SIGNALS + capacity.min(Self::MOST)).map(entry).collect();
        Self(Arc::new(Table { entries, pulses }))
    }

    /// Registers `action` for messages: it runs on the thread that owns the mailbox to which they
    /// are posted. Does not block.
    ///
    /// Names are never reused within a table, so an entry is used up after 4 194 303 actions.
    ///
    /// # Errors
    ///
    /// [`TableFull`].
    pub fn register(
        &self,
        action: impl Fn(Payload) + Send + Sync + 'static,
    ) -> Result<ActionId, TableFull> {
        self.fill(SIGNALS..self.0.entries.len(), Box::new(action))
    }

    /// Registers `action` for signals. It must tolerate spurious runs: a signal of an action that
    /// was unregistered may still be pending when another takes its place.
    ///
    /// # Errors
    ///
    /// [`TableFull`].
    pub fn register_signal(
        &self,
        action: impl Fn() + Send + Sync + 'static,
    ) -> Result<SignalId, TableFull> {
        self.fill(0..SIGNALS, Box::new(move |_| action())).map(SignalId)
    }

    fn fill(&self, range: core::ops::Range<usize>, action: Action) -> Result<ActionId, TableFull> {
        for index in range {
            let entry = &self.0.entries[index];
            // Relaxed: the exchange decides.
            let seen = State(entry.state.load(Relaxed));
            if seen.phase() != State::FREE {
                continue;
            }
            let generation = seen.generation() + 1;
            let filling = State::new(generation, State::FILLING);
            // Acquire: ACTION-1, the previous accesses to the entry; pairs with the release in
            // `unregister`.
            if entry.state.compare_exchange(seen.0, filling.0, Acquire, Relaxed).is_err() {
                continue;
            }
            // SAFETY: ACTION-1: this thread made it `FILLING`.
            unsafe { *entry.action.get() = Some(action) };
            let id = ActionId::new(index, generation);
            // Release: ACTION-1; pairs with the acquire in `run`, and the fence in `unregister`.
            entry.state.store(id.live().0, Release);
            return Ok(id);
        }
        Err(TableFull)
    }

    /// Unregisters the action `id` for messages: when this returns, no thread is running it or will
    /// run it, and it was dropped. Messages for it that are still in flight are delivered as
    /// [strays](super::Delivered::strays).
    ///
    /// Blocks until all batches have ended that owners were running when it was called, whatever
    /// actions those run: spins for a moment, and then sleeps and checks periodically. So the
    /// caller must not hold anything that an action waits for. Nor may it be an action of another
    /// table while an action of this table unregisters one from that table: neither call can detect
    /// this, and both wait for ever.
    ///
    /// # Errors
    ///
    /// [`Refused::FromAction`] if the caller is an action of this table, and [`Refused::Unknown`].
    /// Nothing has changed then.
    pub fn unregister(&self, id: ActionId) -> Result<(), Refused> {
        let caller = P::task();
        if self.0.pulses.with(|list| list.iter().any(|pulse| pulse.is_of(caller))) {
            return Err(Refused::FromAction);
        }
        let entry = self.0.entries.get(id.index()).ok_or(Refused::Unknown)?;
        let generation = id.live().generation();
        let leaving = State::new(generation, State::LEAVING);
        // Relaxed: the fence acquires the action, which is dropped below. A second caller finds it
        // leaving.
        let exchanged = entry.state.compare_exchange(id.live().0, leaving.0, Relaxed, Relaxed);
        exchanged.map_err(|_| Refused::Unknown)?;
        // PULSE-1: pairs with the fence in `Pulse::begin`.
        // And ACTION-1: with the release in `fill`.
        P::fence(SeqCst);
        // Mailboxes that are made later see the new state by the list's lock.
        for pulse in self.0.pulses.with(|list| list.clone()) {
            pulse.wait();
        }
        let emptied = Emptied { entry, left: State::left(generation) };
        // SAFETY: ACTION-1: this thread made it `LEAVING`; and ACTION-2.
        drop(unsafe { (*entry.action.get()).take() });
        drop(emptied);
        Ok(())
    }

    /// Returns whether the action is registered; may be stale at once.
    pub(super) fn knows(&self, id: ActionId) -> bool {
        // Relaxed: the content of the entry is not used.
        let entry = self.0.entries.get(id.index());
        entry.is_some_and(|entry| entry.state.load(Relaxed) == id.live().0)
    }

    /// Runs the action of a message; returns `false` if there is none of that name.
    ///
    /// # Safety
    ///
    /// The caller is in a batch of a mailbox of this table.
    pub(super) unsafe fn run(&self, id: ActionId, payload: Payload) -> bool {
        let Some(entry) = self.0.entries.get(id.index()) else { return false };
        // Acquire: ACTION-1; pairs with the release in `fill`.
        if entry.state.load(Acquire) != id.live().0 {
            return false;
        }
        // SAFETY: ACTION-1; ACTION-2 keeps it until the caller's batch ends.
        let Some(action) = (unsafe { &*entry.action.get() }) else { return false };
        action(payload);
        true
    }

    /// Like [`run`](Self::run), for the action that signals of this index run.
    ///
    /// # Safety
    ///
    /// See `run`.
    pub(super) unsafe fn run_signal(&self, index: usize) -> bool {
        // Relaxed: it only names the action; `run` checks again.
        let state = State(self.0.entries[index].state.load(Relaxed));
        // SAFETY: the caller's contract.
        unsafe { self.run(ActionId::new(index, state.generation()), [0; 3]) }
    }

    /// Adds a mailbox.
    pub(super) fn join(&self) -> Arc<Pulse<P>> {
        let pulse = Arc::new(Pulse::NEW);
        self.0.pulses.with(|list| list.push(pulse.clone()));
        pulse
    }

    /// Removes a mailbox.
    pub(super) fn leave(&self, pulse: &Arc<Pulse<P>>) {
        self.0.pulses.with(|list| list.retain(|other| !Arc::ptr_eq(other, pulse)));
    }
}

/// An entry that is `LEAVING`; it is freed when this is dropped, even if the drop of its action
/// panics.
struct Emptied<'a, P: Platform> {
    entry: &'a Entry<P>,
    left: State,
}

impl<P: Platform> Drop for Emptied<'_, P> {
    fn drop(&mut self) {
        // Release: ACTION-1; pairs with the acquire in `fill`.
        self.entry.state.store(self.left.0, Release);
    }
}

impl<P: Platform> Pulses<P> {
    fn with<R>(&self, f: impl FnOnce(&mut Vec<Arc<Pulse<P>>>) -> R) -> R {
        self.lock.lock();
        // SAFETY: locked, and `f` can't re-enter.
        let result = f(unsafe { &mut *self.list.get() });
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        result
    }
}

impl<P: Platform> Clone for Actions<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Platform> fmt::Debug for Actions<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Actions").field("capacity", &self.0.entries.len()).finish_non_exhaustive()
    }
}

impl fmt::Display for TableFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table of actions is full: make a larger one, or unregister some")
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no such action is registered",
            Self::FromAction => "an action can't unregister one: have another thread do it",
        })
    }
}

impl core::error::Error for TableFull {}
impl core::error::Error for Refused {}
