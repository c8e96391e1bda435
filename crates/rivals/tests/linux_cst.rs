//! CST locks under real threads, on this machine's sockets and on two that are played.

#[path = "../../sync/tests/common/mod.rs"]
mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use antiphon_linux::Linux;
use antiphon_platform::{Platform, SocketId};
use antiphon_rivals::cst::{CstForm, CstMutex, CstRwLock};
use antiphon_sync::lock::Lock;
use common::metal::{Metal, boot};
use common::validate::{Guarded, exclusion};
use support::{FORKS, arena, in_child};

/// All waiters sleep at once, and a batch is short: a wake that does not come shows.
struct Sleepy;

impl CstForm for Sleepy {
    const BATCH: u32 = 3;
    const PIECE_NS: u32 = 0;
    const MARGIN_NS: u32 = 0;
}

#[test]
fn a_mutex_excludes() {
    exclusion(&Guarded::<CstMutex<Linux>>::new(), 2, 20_000, |_| {});
    exclusion(&Guarded::<CstMutex<Linux>>::new(), 16, 1_000, |_| {});
    exclusion(&Guarded::<CstMutex<Linux, Sleepy>>::new(), 8, 1_000, |_| {});
}

/// CPU 0 is on one socket, CPU 2 on the other.
#[test]
fn a_mutex_excludes_over_two_sockets() {
    let guarded = Guarded::<CstMutex<Metal>>::new();
    exclusion(&guarded, 2, 300, |number| boot(2 * number));
    assert_eq!(guarded.lock.sockets(), 2);
}

/// Readers see the pair whole and several at a time, writers are alone; one write in `share`.
fn share<P: Platform, F: CstForm>(threads: usize, rounds: u64, share: u64, enter: fn(usize)) {
    let guarded = Guarded::<CstRwLock<P, F>>::new();
    let writes = (0..rounds).filter(|round| round % share == 0).count();
    std::thread::scope(|scope| {
        for number in 0..threads {
            let guarded = &guarded;
            scope.spawn(move || {
                enter(number);
                for round in 0..rounds {
                    let lock = &guarded.lock;
                    let seat = if round % share == 0 {
                        lock.write();
                        guarded.step();
                        let mine = guarded.look();
                        // SAFETY: acquired above.
                        let seat = unsafe { lock.downgrade() };
                        assert_eq!(guarded.look(), mine, "a writer came in between");
                        seat
                    } else {
                        lock.read()
                    };
                    let _ = guarded.look();
                    // SAFETY: acquired above, by this seat.
                    unsafe { lock.unlock_read(seat) };
                }
            });
        }
    });
    assert_eq!(guarded.total(), (threads * writes) as u64);
    assert!(guarded.lock.try_lock(), "free at the end");
    // SAFETY: acquired above.
    unsafe { guarded.lock.unlock() };
}

#[test]
fn readers_share_and_writers_do_not() {
    share::<Linux, antiphon_rivals::cst::Standard>(4, 5_000, 10, |_| {});
    share::<Linux, Sleepy>(8, 500, 5, |_| {});
    exclusion(&Guarded::<CstRwLock<Linux, Sleepy>>::new(), 4, 1_000, |_| {});
}

#[test]
fn readers_share_over_two_sockets() {
    share::<Metal, Sleepy>(2, 300, 5, |number| boot(2 * number));
}

#[test]
fn the_readers_writer_lock_has_the_size_that_is_stated() {
    assert_eq!(size_of::<CstRwLock<Linux>>(), 16);
}

/// A lock takes what it needs with its first acquisition, and gives it back.
#[test]
fn nothing_is_leaked() {
    let nodes = |work: fn()| {
        let before = arena().high_water();
        work();
        arena().high_water() - before
    };
    // In a process of its own: other tests take nodes too.
    assert!(in_child(FORKS[0].1, || {
        let of_one = nodes(|| {
            for _ in 0..1_000 {
                let lock = CstMutex::<Linux>::NEW;
                assert_eq!(lock.sockets(), 0, "nothing before it is used");
                lock.lock();
                // SAFETY: locked above.
                unsafe { lock.unlock() };
                assert_eq!(lock.sockets(), 1);
            }
        });
        let of_a_hundred_sockets = nodes(|| {
            for _ in 0..10 {
                let lock = CstMutex::<Linux>::NEW;
                assert!((0..100).all(|socket| lock.reserve(SocketId(socket))));
                assert_eq!(lock.sockets(), 100, "there is no limit of 16");
            }
        });
        let of_readers = nodes(|| {
            for _ in 0..1_000 {
                let lock = CstRwLock::<Linux>::NEW;
                let seat = lock.read();
                assert_eq!(lock.sockets(), 1);
                // SAFETY: acquired above, by this seat.
                unsafe { lock.unlock_read(seat) };
            }
        });
        (of_one, of_a_hundred_sockets, of_readers) == (3, 197, 0)
    }));
}

/// With new structures: the old ones were the parent's.
#[test]
fn a_lock_that_is_held_at_a_fork_works_in_the_child() {
    let lock = CstMutex::<Linux>::NEW;
    lock.lock();
    assert!(in_child(FORKS[0].1, || {
        for _ in 0..3 {
            // SAFETY: locked by the thread that has forked, and below.
            unsafe { lock.unlock() };
            if !lock.try_lock() {
                return false;
            }
            // SAFETY: locked just now.
            unsafe { lock.unlock() };
            lock.lock();
        }
        lock.sockets() == 1
    }));
}
