//! Tests that the locks and the condition variable are linearizable with real threads, in many
//! short histories, each of a fresh object.

use std::sync::Barrier;
use std::thread;

use antiphon_check::linearizability::objects::{
    Condvar, CondvarCall, Mutex, MutexCall, RwLock, RwLockCall, with_glimpses,
};
use antiphon_check::linearizability::{Tape, explain};
use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::lock::{Lock, ShflMutex, ShflRwLock, ShflSpin};
use antiphon_sync::wait;

const HISTORIES: usize = 200;
const THREADS: usize = 3;

/// Runs `thread` on each of several threads, which begin each of many rounds together, on the value
/// that `make` has made for the round; then `judge`s it.
fn rounds<T: Sync>(make: impl Fn() -> T, thread: impl Fn(&T, usize) + Sync, judge: impl Fn(&T)) {
    let objects: Vec<T> = (0..HISTORIES).map(|_| make()).collect();
    let together = Barrier::new(THREADS);
    thread::scope(|scope| {
        for me in 0..THREADS {
            let (objects, together, thread) = (&objects, &together, &thread);
            scope.spawn(move || {
                for object in objects {
                    together.wait();
                    thread(object, me);
                }
            });
        }
    });
    objects.iter().for_each(judge);
}

/// Returns a deadline that some threads reach without success.
fn soon() -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + 2_000 }
}

fn exclusive<L: Lock>(try_until: fn(&L) -> bool) {
    let thread = |(lock, tape): &(L, Tape<MutexCall, bool>), me: usize| {
        let unlock = || {
            tape.record(MutexCall::Unlock(me), || {
                // SAFETY: the call before has acquired it.
                unsafe { lock.unlock() };
                true
            });
        };
        tape.record(MutexCall::Lock(me), || {
            lock.lock();
            true
        });
        unlock();
        if tape.record(MutexCall::Try(me), || lock.try_lock()) {
            unlock();
        }
        if tape.record(MutexCall::Try(me), || try_until(lock)) {
            unlock();
        }
    };
    let judge = |(_, tape): &(L, Tape<_, _>)| tape.assert_linearizable(&Mutex::default());
    rounds(|| (L::NEW, Tape::new()), thread, judge);
}

#[test]
fn exclusive_locks_are_honest() {
    exclusive::<ShflMutex<Linux>>(|lock| lock.lock_until(soon()));
    exclusive::<ShflSpin<Linux>>(ShflSpin::try_lock);
}

type Rw = ShflRwLock<Linux>;

fn perform(lock: &Rw, call: RwLockCall) -> bool {
    match call {
        RwLockCall::Read(_) => return lock.read().is_ok(),
        RwLockCall::TryRead(_) => return lock.try_read().is_ok(),
        RwLockCall::Write(_) => lock.write(),
        RwLockCall::TryWrite(_) => return lock.try_write(),
        RwLockCall::Upgradable(_) => lock.upgradable(),
        RwLockCall::TryUpgradable(_) => return lock.try_upgradable(),
        // SAFETY: earlier calls have acquired it in this mode.
        RwLockCall::UnlockRead(_) => unsafe { lock.unlock_read() },
        // SAFETY: earlier calls have acquired it for writing.
        RwLockCall::UnlockWrite(_) => unsafe { lock.unlock_write() },
        // SAFETY: earlier calls have acquired it for writing.
        RwLockCall::Downgrade(_) => unsafe { lock.downgrade() },
        // SAFETY: earlier calls have acquired it upgradably.
        RwLockCall::UnlockUpgradable(_) => unsafe { lock.unlock_upgradable() },
        // SAFETY: earlier calls have acquired it upgradably.
        RwLockCall::Upgrade(_) => unsafe { lock.upgrade() },
        // SAFETY: earlier calls have acquired it upgradably.
        RwLockCall::TryUpgrade(_) => return unsafe { lock.try_upgrade() },
        RwLockCall::Glimpse(_) | RwLockCall::EndGlimpse(_) => unreachable!("nobody's call"),
    }
    true
}

#[test]
fn a_readers_writer_lock_is_honest() {
    use RwLockCall::{
        Downgrade, Read, TryRead, TryUpgrade, TryWrite, UnlockRead, UnlockUpgradable, UnlockWrite,
        Upgradable, Upgrade, Write,
    };
    let thread = |(lock, tape): &(Rw, Tape<RwLockCall, bool>), me: usize| {
        let all = |calls: &[fn(usize) -> RwLockCall]| {
            calls.iter().all(|call| tape.record(call(me), || perform(lock, call(me))))
        };
        match me {
            0 => {
                all(&[Read, UnlockRead]);
                all(&[TryWrite, Downgrade, UnlockRead]);
                all(&[Read, UnlockRead]);
            }
            1 => {
                all(&[Write, Downgrade, UnlockRead]);
                all(&[TryRead, UnlockRead]);
                all(&[Write, UnlockWrite]);
            }
            _ => {
                all(&[Upgradable]);
                all(if all(&[TryUpgrade]) { &[UnlockWrite] } else { &[UnlockUpgradable] });
                all(&[Upgradable, Upgrade, UnlockWrite]);
            }
        }
    };
    let judge = |(_, tape): &(Rw, Tape<RwLockCall, bool>)| {
        let told = explain(&RwLock::default(), &with_glimpses(tape.calls()));
        assert!(told.is_some(), "no story: {tape:#?}");
    };
    rounds(|| (Rw::NEW, Tape::new()), thread, judge);
}

#[test]
fn a_notification_is_had_once() {
    type Shared = (wait::Condvar<Linux>, Tape<CondvarCall, bool>);
    let thread = |(condvar, tape): &Shared, me: usize| {
        if me == 0 {
            for _ in 0..2 {
                tape.record(CondvarCall::NotifyOne, || condvar.notify_one());
            }
            tape.record(CondvarCall::NotifyAll, || {
                condvar.notify_all();
                true
            });
            return;
        }
        for _ in 0..2 {
            let mut entry = None;
            tape.record(CondvarCall::Begin(me), || entry.replace(condvar.prepare()).is_none());
            let Some(entry) = entry else { return };
            let until = soon();
            while !entry.sleep(Some(until)) {}
            tape.record(CondvarCall::End(me), || {
                // SAFETY: `entry` was prepared above.
                !matches!(unsafe { condvar.finish(entry) }, wait::End::GaveUp)
            });
        }
    };
    let judge = |(_, tape): &Shared| tape.assert_linearizable(&Condvar::default());
    rounds(|| (wait::Condvar::NEW, Tape::new()), thread, judge);
}
