//! Sequential models of locks and of the condition variable.
//!
//! Threads are numbered from 0; an operation names its thread. Waiting is not part of an object:
//! the model says which thread may own the lock, and not which waiter is preferred.

use super::{Call, MOST, Sequential};

/// The largest number of threads.
const THREADS: usize = 8;

/// A lock with at most one owner. Free at first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mutex {
    owner: Option<usize>,
}

/// The operations on a [`Mutex`], by thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutexCall {
    /// Waits for the lock; answers `true`.
    Lock(usize),
    /// Tries, or waits until a deadline; answers whether it got the lock. Fails only on a held
    /// lock.
    Try(usize),
    /// Releases the lock; answers `true`.
    Unlock(usize),
}

impl Sequential for Mutex {
    type Operation = MutexCall;
    type Answer = bool;

    fn step(&mut self, call: &MutexCall, &answer: &bool) -> bool {
        match *call {
            MutexCall::Lock(me) | MutexCall::Try(me) if answer => self.owner.replace(me).is_none(),
            MutexCall::Lock(_) => false,
            MutexCall::Try(_) => self.owner.is_some(),
            MutexCall::Unlock(me) => answer && self.owner.take() == Some(me),
        }
    }
}

/// A lock with many readers or one writer. Free at first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RwLock {
    readers: [u8; THREADS],
    writer: Option<usize>,
    upgradable: Option<usize>,
}

/// The operations on a [`RwLock`], by thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RwLockCall {
    /// Waits for the lock for reading; answers `true`.
    Read(usize),
    /// Tries to read, or waits until a deadline. Fails only while another thread has the lock, not
    /// merely because a writer waits.
    TryRead(usize),
    /// Ends reading; answers `true`, as do the other releases.
    UnlockRead(usize),
    /// Waits for the lock for writing; answers `true`.
    Write(usize),
    /// Tries to write, or waits until a deadline. Fails only while another thread has the lock.
    TryWrite(usize),
    /// Ends writing.
    UnlockWrite(usize),
    /// The writer becomes a reader; answers `true`.
    Downgrade(usize),
    /// Waits for the lock for reading with the right to upgrade; answers `true`.
    Upgradable(usize),
    /// Tries to read with the right to upgrade. Fails only while another thread has the lock.
    TryUpgradable(usize),
    /// Ends reading with the right to upgrade.
    UnlockUpgradable(usize),
    /// Waits until the thread that may upgrade is the writer; answers `true`.
    Upgrade(usize),
    /// Tries to upgrade. Fails only while other threads read.
    TryUpgrade(usize),
    /// An addition of [`with_glimpses`]: for a moment, a thread that will wait is a reader.
    Glimpse(usize),
    /// That moment ends.
    EndGlimpse(usize),
}

/// The history of a lock whose readers may own it for a moment before they wait: adds to each call
/// that waits to read a glimpse, somewhere between the beginning of the call and the reading.
///
/// So a try to write may fail although the only owner is such a reader.
///
/// # Panics
///
/// If the result has more than [`MOST`] calls.
#[must_use]
pub fn with_glimpses(mut calls: Vec<Call<RwLockCall, bool>>) -> Vec<Call<RwLockCall, bool>> {
    for reading in 0..calls.len() {
        let RwLockCall::Read(me) = calls[reading].operation else { continue };
        let (begin, end) = (calls.len(), calls.len() + 1);
        assert!(end < MOST, "a history has at most {MOST} operations");
        for call in &mut calls {
            if call.after & 1 << reading != 0 {
                call.after |= 1 << begin | 1 << end;
            }
        }
        let after = calls[reading].after;
        let mut add = |operation, after| calls.push(Call { operation, answer: true, after });
        add(RwLockCall::Glimpse(me), after);
        add(RwLockCall::EndGlimpse(me), after | 1 << begin);
        calls[reading].after |= 1 << begin | 1 << end;
    }
    calls
}

impl RwLock {
    fn is_read(&self) -> bool {
        self.readers.iter().any(|&times| times > 0)
    }

    fn is_free(&self) -> bool {
        !self.is_read() && self.writer.is_none() && self.upgradable.is_none()
    }

    fn read(&mut self, me: usize) -> bool {
        self.readers[me] += 1;
        self.writer.is_none()
    }

    fn write(&mut self, me: usize) -> bool {
        let was_free = self.is_free();
        self.writer = Some(me);
        was_free
    }

    fn upgradable(&mut self, me: usize) -> bool {
        self.upgradable.replace(me).is_none() && self.writer.is_none()
    }

    fn upgrade(&mut self, me: usize) -> bool {
        let alone = !self.is_read() && self.writer.is_none();
        self.writer = Some(me);
        self.upgradable.take() == Some(me) && alone
    }
}

impl Sequential for RwLock {
    type Operation = RwLockCall;
    type Answer = bool;

    fn step(&mut self, call: &RwLockCall, &answer: &bool) -> bool {
        match *call {
            RwLockCall::TryRead(_) | RwLockCall::TryWrite(_) | RwLockCall::TryUpgradable(_)
                if !answer =>
            {
                !self.is_free()
            }
            RwLockCall::TryUpgrade(me) if !answer => self.upgradable == Some(me) && self.is_read(),
            _ if !answer => false,
            RwLockCall::Read(me) | RwLockCall::TryRead(me) | RwLockCall::Glimpse(me) => {
                self.read(me)
            }
            RwLockCall::Write(me) | RwLockCall::TryWrite(me) => self.write(me),
            RwLockCall::Upgradable(me) | RwLockCall::TryUpgradable(me) => self.upgradable(me),
            RwLockCall::Upgrade(me) | RwLockCall::TryUpgrade(me) => self.upgrade(me),
            RwLockCall::UnlockRead(me) | RwLockCall::EndGlimpse(me) => {
                match self.readers[me].checked_sub(1) {
                    Some(times) => {
                        self.readers[me] = times;
                        true
                    }
                    None => false,
                }
            }
            RwLockCall::UnlockWrite(me) => self.writer.take() == Some(me),
            RwLockCall::Downgrade(me) => self.writer.take() == Some(me) && self.read(me),
            RwLockCall::UnlockUpgradable(me) => self.upgradable.take() == Some(me),
        }
    }
}

/// Waiters that are notified one by one, in the order of arrival, or all at once. No thread waits
/// at first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Condvar {
    waiting: Vec<usize>,
    notified: [bool; THREADS],
}

/// The operations on a [`Condvar`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CondvarCall {
    /// A thread begins to wait; answers `true`.
    Begin(usize),
    /// A thread ends its wait; answers whether it was notified.
    End(usize),
    /// Notifies the thread that has waited longest; answers whether any thread waited.
    NotifyOne,
    /// Notifies all waiters; answers `true`.
    NotifyAll,
}

impl Sequential for Condvar {
    type Operation = CondvarCall;
    type Answer = bool;

    fn step(&mut self, call: &CondvarCall, &answer: &bool) -> bool {
        match *call {
            CondvarCall::Begin(me) => {
                let fresh = answer && !self.notified[me] && !self.waiting.contains(&me);
                self.waiting.push(me);
                fresh
            }
            CondvarCall::End(me) if answer => std::mem::take(&mut self.notified[me]),
            CondvarCall::End(me) => {
                let place = self.waiting.iter().position(|&waiter| waiter == me);
                place.map(|place| self.waiting.remove(place)).is_some()
            }
            CondvarCall::NotifyOne if self.waiting.is_empty() => !answer,
            CondvarCall::NotifyOne => {
                let first = self.waiting.remove(0);
                self.notified[first] = true;
                answer
            }
            CondvarCall::NotifyAll => {
                for waiter in self.waiting.drain(..) {
                    self.notified[waiter] = true;
                }
                answer
            }
        }
    }
}
