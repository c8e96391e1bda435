//! The promises of lock_api to its users, tested on our locks; and on those of parking_lot, so that
//! a test that requires more than lock_api promises is noticed.

#[path = "lock_api/mutex.rs"]
mod mutex;
#[path = "lock_api/reentrant.rs"]
mod reentrant;
#[path = "lock_api/rw.rs"]
mod rw;

use std::thread;
use std::time::Duration;

/// Longer than any operation here that must not wait, and short enough to wait for.
const SHORT: Duration = Duration::from_millis(5);

/// Runs `f` on another thread, and returns its result.
fn elsewhere<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(f).join().expect("a panic in the other thread"))
}

/// Defines the tests of a module, each for several locks.
macro_rules! for_each_lock {
    ($module:ident: $($lock:ident = $raw:ty),*; $tests:tt) => {
        $(mod $lock {
            tests! { $module, $raw, $tests }
        })*
    };
}

/// Defines the tests of a module for one lock.
macro_rules! tests {
    ($module:ident, $raw:ty, [$($name:ident),*]) => {
        $(#[test]
        fn $name() {
            super::$module::$name::<$raw>();
        })*
    };
}

for_each_lock! {
    mutex: blocking = antiphon::raw::RawMutex,
        sorted = antiphon::raw::RawMutex<antiphon::policy::Priority>, spin = antiphon::raw::RawSpin,
        their_mutex = parking_lot::RawMutex;
    [owners_come_one_after_the_other, a_try_fails_on_a_locked_lock_alone,
    a_forgotten_guard_leaves_it_locked,
    unlocked_lets_others_in_and_locks_again, a_mapped_guard_unlocks, a_refused_map_keeps_the_guard]
}

for_each_lock! {
    rw: readers_and_writers = antiphon::raw::RawRwLock,
        recursive = antiphon::raw::RawRwLock<antiphon::raw::Recursive>,
        their_rw = parking_lot::RawRwLock;
    [writers_come_one_after_the_other, readers_come_together, a_downgrade_lets_no_writer_in,
    one_upgradable_reader_at_a_time, an_upgrade_sees_what_was_written_before,
    mapped_readers_and_writers_unlock, timed_attempts_end_in_time,
    a_refused_upgrade_keeps_what_there_was]
}

mod further {
    use super::mutex::{a_guard_may_be_dropped_elsewhere, timed_attempts_end_in_time};
    use antiphon::policy::{Condvar, Mutex, Priority};
    use antiphon::raw::{RawMutex, RawSpin};

    /// parking_lot's guards may not: its mutex may detect deadlocks, by owners.
    #[test]
    fn our_guards_may_be_dropped_elsewhere() {
        a_guard_may_be_dropped_elsewhere::<RawMutex>();
        a_guard_may_be_dropped_elsewhere::<RawSpin>();
    }

    /// A mutex of any policy has its condition variable.
    #[test]
    fn a_condition_is_waited_for_with_a_sorted_mutex() {
        static READY: Mutex<Priority, bool> = Mutex::new(false);
        static CHANGED: Condvar<Priority> = Condvar::new();
        let mut ready = READY.lock();
        assert!(CHANGED.wait_for(&mut ready, super::SHORT).timed_out());
        let other = std::thread::spawn(|| {
            *READY.lock() = true;
            CHANGED.notify_all();
        });
        CHANGED.wait_while(&mut ready, |ready| !*ready);
        drop(ready);
        other.join().expect("no panic");
    }

    #[test]
    fn timed_mutexes_give_up_in_time() {
        timed_attempts_end_in_time::<RawMutex>();
        timed_attempts_end_in_time::<RawMutex<Priority>>();
        timed_attempts_end_in_time::<parking_lot::RawMutex>();
    }
}

mod reentrant_mutex {
    use antiphon::raw::{RawMutex, RawSpin, ThreadIdentity};

    #[test]
    fn its_owner_comes_in_again_and_nobody_else() {
        super::reentrant::its_owner_comes_in_again_and_nobody_else::<RawMutex, ThreadIdentity>();
        super::reentrant::its_owner_comes_in_again_and_nobody_else::<RawSpin, ThreadIdentity>();
        super::reentrant::its_owner_comes_in_again_and_nobody_else::<
            parking_lot::RawMutex,
            parking_lot::RawThreadId,
        >();
    }
}
