//! Models of linearizability: the answers of a lock or a condition variable to threads can be
//! explained by one thread that makes all calls one after the other
//! (`antiphon_check::linearizability`), with happens-before in place of time.
//!
//! Other models show that no thread is in beside a writer; these show that each answer is also
//! right: they find a try that fails on a free lock, and a notification that no waiter or two
//! waiters received.

use antiphon_check::linearizability::explain;
use antiphon_check::linearizability::objects::{
    Condvar as SeenCondvar, CondvarCall, Mutex as SeenMutex, MutexCall, RwLock as SeenRwLock,
    RwLockCall, with_glimpses,
};
use antiphon_check::{Check, History};
use antiphon_sync::wait;

use crate::bounds::{PLAIN, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Mutex, Sleepy};
use crate::program::{Program, soon, unlock};
use crate::rw::{Lock as RwLock, unlock_read};

pub fn entries() -> Vec<Entry> {
    all_of([
        Subject("shfl-mutex").models([
            model("linearizable-1+1", mutex(&[MutexCall::Lock, MutexCall::Try]), TIMED),
            model(
                "linearizable-2+1",
                mutex(&[MutexCall::Lock, MutexCall::Try, MutexCall::Lock]),
                TIMED.spurious(1),
            )
            .by_lot(5_000),
        ]),
        Subject("shfl-rw").models([
            model("linearizable-tries-1+1", rw(&[TRIES, WRITES]), PLAIN),
            model("linearizable-changes-1+1", rw(&[CHANGES, TRIES]), PLAIN),
            model("linearizable-gives-up-1+1", rw_giving_up(), TIMED),
            model("linearizable-1+1+1+1", rw(&[TRIES, READS, WRITES, CHANGES]), TIMED)
                .by_lot(10_000),
        ]),
        Subject("condvar").models([
            model("linearizable-1+1", condvar(1, &[false]), TIMED),
            model("linearizable-2+1", condvar(2, &[false]), TIMED).long(),
            model("linearizable-3+2", condvar(3, &[false, true]), TIMED.spurious(1)).by_lot(5_000),
        ]),
    ])
}

/// One thread for each call takes the lock and releases it; a thread with `Try` tries it, and then
/// waits for it until a deadline.
fn mutex(calls: &'static [fn(usize) -> MutexCall]) -> Program {
    let threads = calls.len() as u32;
    Program::new(threads, 2 * threads, move |scope| {
        let lock = scope.share(Mutex::NEW);
        let history = scope.share(History::new());
        scope.spawn_each(calls.iter().enumerate(), move |(me, call)| {
            let release = || {
                history.record(MutexCall::Unlock(me), || {
                    unlock(lock);
                    true
                });
            };
            let waits = call(me) == MutexCall::Lock(me);
            let first = || {
                if !waits {
                    return lock.try_lock();
                }
                lock.lock();
                true
            };
            if history.record(call(me), first) {
                release();
            }
            if !waits && history.record(MutexCall::Try(me), || lock.lock_until(soon())) {
                release();
            }
        });
        scope.finally(move || {
            history.record(MutexCall::Try(0), || lock.try_lock());
            history.assert_linearizable(&SeenMutex::default());
        });
    })
}

/// The operations of a thread on a readers-writer lock, except those that depend on a call that has
/// failed.
type Script = &'static [fn(usize) -> RwLockCall];

const READS: Script = &[RwLockCall::Read, RwLockCall::UnlockRead];
const WRITES: Script = &[RwLockCall::Write, RwLockCall::UnlockWrite];
const TRIES: Script = &[
    RwLockCall::TryRead,
    RwLockCall::UnlockRead,
    RwLockCall::TryWrite,
    RwLockCall::Downgrade,
    RwLockCall::UnlockRead,
];
/// Includes calls that may succeed beside a signalled waiter.
const TRIES_AGAIN: Script = &[
    RwLockCall::Write,
    RwLockCall::UnlockWrite,
    RwLockCall::TryWrite,
    RwLockCall::UnlockWrite,
    RwLockCall::Read,
    RwLockCall::UnlockRead,
];
const CHANGES: Script = &[
    RwLockCall::Upgradable,
    RwLockCall::TryUpgrade,
    RwLockCall::UnlockWrite,
    RwLockCall::Upgradable,
    RwLockCall::Upgrade,
    RwLockCall::Downgrade,
    RwLockCall::UnlockRead,
];

/// Runs one thread for each script.
fn rw(scripts: &'static [Script]) -> Program {
    let threads = scripts.len() as u32;
    let operations = scripts.iter().map(|script| script.len() as u32).sum();
    let waits_to_read = scripts.contains(&READS);
    Program::new(threads, operations, move |scope| {
        let lock = scope.share(RwLock::<Sleepy>::NEW);
        let history = scope.share(History::new());
        scope.spawn_each(scripts.iter().enumerate(), move |(me, script)| {
            follow(script, me, lock, history)
        });
        scope.finally(move || {
            history.record(RwLockCall::TryWrite(0), || lock.try_write());
            if !waits_to_read {
                return history.assert_linearizable(&SeenRwLock::default());
            }
            let told = with_glimpses(history.calls());
            assert!(explain(&SeenRwLock::default(), &told).is_some(), "no story: {history:?}");
        });
    })
}

/// A writer that may give up, beside a thread that runs [`TRIES_AGAIN`].
fn rw_giving_up() -> Program {
    Program::new(2, TRIES_AGAIN.len() as u32 + 2, |scope| {
        let lock = scope.share(RwLock::<Sleepy>::NEW);
        let history = scope.share(History::new());
        scope.spawn(move || follow(TRIES_AGAIN, 0, lock, history));
        scope.spawn(move || {
            if history.record(RwLockCall::TryWrite(1), || lock.write_until(soon())) {
                history.record(RwLockCall::UnlockWrite(1), || {
                    perform(lock, RwLockCall::UnlockWrite(1))
                });
            }
        });
        scope.finally(move || {
            history.record(RwLockCall::TryWrite(0), || lock.try_write());
            history.assert_linearizable(&SeenRwLock::default());
        });
    })
}

fn follow(script: Script, me: usize, lock: &RwLock, history: &History<RwLockCall, bool>) {
    let record = |call| history.record(call, || perform(lock, call));
    let mut calls = script.iter().map(|call| call(me)).peekable();
    while let Some(call) = calls.next() {
        if record(call) {
            continue;
        }
        match call {
            // The lock is still held upgradable, and is released in that mode.
            RwLockCall::TryUpgrade(_) => {
                record(RwLockCall::UnlockUpgradable(me));
                calls.next();
            }
            _ => while calls.next_if(|call| is_about_what_is_had(*call)).is_some() {},
        }
    }
}

fn is_about_what_is_had(call: RwLockCall) -> bool {
    matches!(
        call,
        RwLockCall::UnlockRead(_) | RwLockCall::UnlockWrite(_) | RwLockCall::Downgrade(_)
    )
}

fn perform(lock: &RwLock, call: RwLockCall) -> bool {
    match call {
        RwLockCall::Glimpse(_) | RwLockCall::EndGlimpse(_) => unreachable!("nobody's call"),
        RwLockCall::Read(_) => return lock.read().is_ok(),
        RwLockCall::TryRead(_) => return lock.try_read().is_ok(),
        RwLockCall::UnlockRead(_) => unlock_read(lock),
        RwLockCall::Write(_) => lock.write(),
        RwLockCall::TryWrite(_) => return lock.try_write(),
        RwLockCall::UnlockWrite(_) => unlock(lock),
        RwLockCall::Upgradable(_) => lock.upgradable(),
        RwLockCall::TryUpgradable(_) => return lock.try_upgradable(),
        // SAFETY: a script releases or changes only what its earlier calls have acquired.
        RwLockCall::Downgrade(_) => unsafe { lock.downgrade() },
        // SAFETY: an earlier call of the script has acquired it upgradable.
        RwLockCall::UnlockUpgradable(_) => unsafe { lock.unlock_upgradable() },
        // SAFETY: an earlier call of the script has acquired it upgradable.
        RwLockCall::Upgrade(_) => unsafe { lock.upgrade() },
        // SAFETY: an earlier call of the script has acquired it upgradable.
        RwLockCall::TryUpgrade(_) => return unsafe { lock.try_upgrade() },
    }
    true
}

/// `waiters` threads wait until they are notified, or until a deadline; others notify one of them
/// or `all`.
fn condvar(waiters: usize, notifiers: &'static [bool]) -> Program {
    let threads = (waiters + notifiers.len()) as u32;
    Program::new(threads, threads + waiters as u32, move |scope| {
        let condvar = scope.share(wait::Condvar::<Check>::NEW);
        let history = scope.share(History::new());
        scope.spawn_each(0..waiters, move |me| {
            let mut entry = None;
            let begin = || entry.replace(condvar.prepare()).is_none();
            history.record(CondvarCall::Begin(me), begin);
            let Some(entry) = entry else { return };
            while !entry.sleep(Some(soon())) {}
            history.record(CondvarCall::End(me), || {
                // SAFETY: `entry` was prepared above.
                !matches!(unsafe { condvar.finish(entry) }, wait::End::GaveUp)
            });
        });
        scope.spawn_each(notifiers, move |&all| {
            if all {
                history.record(CondvarCall::NotifyAll, || {
                    condvar.notify_all();
                    true
                });
            } else {
                history.record(CondvarCall::NotifyOne, || condvar.notify_one());
            }
        });
        scope.finally(move || history.assert_linearizable(&SeenCondvar::default()));
    })
}
