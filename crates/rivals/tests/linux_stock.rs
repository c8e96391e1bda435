//! The kernel's locks under real threads.

#[path = "../../sync/tests/common/mod.rs"]
mod common;

use antiphon_linux::Linux;
use antiphon_rivals::stock::{LinuxMutex, LinuxRwSem, QSpinLock};
use common::validate::{Guarded, exclusion};

#[test]
fn they_exclude() {
    exclusion(&Guarded::<QSpinLock<Linux>>::new(), 2, 20_000, |_| {});
    exclusion(&Guarded::<QSpinLock<Linux>>::new(), 4, 500, |_| {});
    exclusion(&Guarded::<LinuxMutex<Linux>>::new(), 2, 20_000, |_| {});
    exclusion(&Guarded::<LinuxMutex<Linux>>::new(), 16, 1_000, |_| {});
    exclusion(&Guarded::<LinuxRwSem<Linux>>::new(), 2, 20_000, |_| {});
    exclusion(&Guarded::<LinuxRwSem<Linux>>::new(), 16, 1_000, |_| {});
}

#[test]
fn readers_share_and_writers_do_not() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 2_000;
    let guarded = Guarded::<LinuxRwSem<Linux>>::new();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let lock = &guarded.lock;
                for round in 0..ROUNDS {
                    if round % 5 == 0 {
                        lock.write();
                        guarded.step();
                        let mine = guarded.look();
                        // SAFETY: acquired above.
                        unsafe { lock.downgrade() };
                        assert_eq!(guarded.look(), mine, "a writer came in between");
                    } else {
                        lock.read();
                    }
                    let _ = guarded.look();
                    // SAFETY: acquired above.
                    unsafe { lock.unlock_read() };
                }
            });
        }
    });
    assert_eq!(guarded.total(), THREADS * ROUNDS / 5);
}

#[test]
fn the_semaphore_has_the_size_that_is_stated() {
    assert_eq!(size_of::<LinuxRwSem<Linux>>(), 24);
}
