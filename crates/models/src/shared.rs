//! Models of the types that several processes share: mutex, condition variable, semaphore. Threads
//! stand for processes.

use antiphon_check::{Check, Data};
use antiphon_platform::Deadline;
use antiphon_sync::lock::{Form, Lock, Standard};
use antiphon_sync::shared::{Acquired, SharedCondvar, SharedMutex, SharedSemaphore};

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::{Backed, Sleepy, Spinning};
use crate::program::{Program, destruction, exclusion, soon, tries};

type Mutex<F = Sleepy> = SharedMutex<Check, F>;
type Semaphore<F = Sleepy> = SharedSemaphore<Check, F>;

const PLAIN: Bounds = Bounds::PLAIN;
const ANY: Bounds = PLAIN.spurious(1).expiries(1);

pub fn entries() -> Vec<Entry> {
    [mutex(), condvar(), semaphore()].into_iter().flatten().collect()
}

fn mutex() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    let gave_up = &["gave up"];
    vec![
        Entry::new("shared-mutex/excludes-2x1", exclusion::<Whole>(2, 1), PLAIN),
        Entry::new("shared-mutex/excludes-2x2", exclusion::<Whole>(2, 2), PLAIN),
        Entry::new("shared-mutex/excludes-3x1", exclusion::<Whole>(3, 1), PLAIN).long(),
        Entry::new("shared-mutex/excludes-3x2", exclusion::<Whole>(3, 2), PLAIN.spurious(1))
            .by_lot(3_000),
        Entry::new(
            "shared-mutex/excludes-any-platform-2x1",
            exclusion::<Whole<Spinning>>(2, 1),
            ANY,
        ),
        Entry::new("shared-mutex/excludes-backstop-3x1", exclusion::<Whole<Backed>>(3, 1), timed)
            .by_lot(3_000),
        Entry::new("shared-mutex/excludes-shipped-3x2", exclusion::<Whole<Standard>>(3, 2), ANY)
            .by_lot(3_000),
        Entry::new("shared-mutex/tries-1+1", tries::<Whole>(1), PLAIN.spurious(1))
            .reaches(&["busy"]),
        Entry::new("shared-mutex/gives-up-alone-1+1", giving_up(1), timed).reaches(gave_up),
        Entry::new("shared-mutex/gives-up-beside-3+1", giving_up(3), timed)
            .by_lot(10_000)
            .reaches(gave_up),
        Entry::new("shared-mutex/owner-dies-1+1", dying(1), timed.mortal(1)).reaches(&["found"]),
        Entry::new("shared-mutex/owner-dies-1+2", dying(2), timed.mortal(1))
            .by_lot(3_000)
            .reaches(&["found"]),
        Entry::new("shared-mutex/destroyed-1+1", destruction::<Whole>(), PLAIN)
            .reaches(&["retired"]),
    ]
}

fn condvar() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    vec![
        Entry::new("shared-condvar/notifies-1+1", notifying(1, None), PLAIN.spurious(1)),
        Entry::new("shared-condvar/notifies-2+1", notifying(2, None), PLAIN).by_lot(2_000),
        Entry::new("shared-condvar/gives-up-1+1", notifying(1, Some(soon)), timed)
            .reaches(&["gave up"]),
    ]
}

fn semaphore() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    vec![
        Entry::new("shared-semaphore/excludes-2x1", excluding::<Sleepy>(2, 1), PLAIN),
        Entry::new("shared-semaphore/excludes-3x2", excluding::<Spinning>(3, 2), ANY).by_lot(3_000),
        Entry::new("shared-semaphore/signals-1+1", signalling(1, 1), PLAIN.spurious(1)),
        Entry::new("shared-semaphore/signals-2+1", signalling(2, 1), PLAIN),
        Entry::new("shared-semaphore/signals-together-2+1", signalling(2, 2), PLAIN),
        Entry::new("shared-semaphore/signals-together-3+1", signalling(3, 3), PLAIN.spurious(1))
            .by_lot(3_000),
        Entry::new("shared-semaphore/gives-up-1+1+1", passing_on(), timed)
            .by_lot(3_000)
            .reaches(&["gave up"]),
        Entry::new("shared-semaphore/destroyed-1+1", destroying(), PLAIN),
    ]
}

/// A mutex of which no owner dies.
struct Whole<F: Form = Sleepy>(Mutex<F>);

// SAFETY: these are the mutex's own methods; its file gives the argument.
unsafe impl<F: Form> Lock for Whole<F> {
    const NEW: Self = Self(SharedMutex::NEW);

    fn lock(&self) {
        assert_eq!(self.0.lock(), Acquired::Whole);
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock() == Some(Acquired::Whole)
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller makes the same promise.
        unsafe { self.0.unlock() }
    }
}

fn unlock<F: Form>(mutex: &Mutex<F>) {
    // SAFETY: each caller owns the mutex.
    unsafe { mutex.unlock() }
}

/// `patient` threads lock, one more may give up; no thread hangs. Must reach `gave up`.
fn giving_up(patient: u32) -> Program {
    Program::new(patient + 1, patient + 1, move |scope| {
        let mutex = scope.share(Mutex::<Sleepy>::NEW);
        let data = scope.share(Data::new(0));
        // Spawned first, because the first of the sleepers is woken.
        scope.spawn(move || match mutex.lock_until(soon()) {
            Some(acquired) => {
                assert_eq!(acquired, Acquired::Whole);
                data.set(data.get() + 1);
                unlock(mutex);
            }
            None => antiphon_check::probe("gave up"),
        });
        for _ in 0..patient {
            scope.spawn(move || {
                assert_eq!(mutex.lock(), Acquired::Whole);
                data.set(data.get() + 1);
                unlock(mutex);
            });
        }
        scope.finally(move || assert!(data.get() >= patient && !mutex.is_locked()));
    })
}

/// One thread locks and ends; `others` lock, one after the other, and each of them learns of the
/// death, unless it came first, or another has declared the data whole. Must reach `found`.
fn dying(others: u32) -> Program {
    Program::new(others + 1, others + 1, move |scope| {
        let mutex = scope.share(Mutex::<Backed>::NEW);
        let found = scope.share(Data::new(0));
        scope.spawn(move || assert_eq!(mutex.lock(), Acquired::Whole));
        for _ in 0..others {
            scope.spawn(move || {
                if mutex.lock() == Acquired::OwnerDied {
                    antiphon_check::probe("found");
                    found.set(found.get() + 1);
                    mutex.recovered();
                }
                unlock(mutex);
            });
        }
        scope.finally(move || {
            let left = u32::from(mutex.is_locked());
            assert_eq!(found.get() + left, 1, "it died once");
        });
    })
}

/// `takers` threads wait for an item each, which one thread brings. With a `deadline` they give up
/// when it has passed, and must reach `gave up`.
fn notifying(takers: u32, deadline: Option<fn() -> Deadline>) -> Program {
    Program::new(takers + 1, 2 * takers, move |scope| {
        let mutex = scope.share(Mutex::<Sleepy>::NEW);
        let filled = scope.share(SharedCondvar::<Check, Sleepy>::NEW);
        let items = scope.share(Data::new(0));
        for _ in 0..takers {
            scope.spawn(move || {
                let _ = mutex.lock();
                let mut in_time = true;
                while items.get() == 0 && in_time {
                    // SAFETY: locked above.
                    (_, in_time) = unsafe { filled.wait(mutex, deadline.map(|soon| soon())) };
                }
                if items.get() > 0 {
                    items.set(items.get() - 1);
                } else {
                    antiphon_check::probe("gave up");
                }
                unlock(mutex);
            });
        }
        scope.spawn(move || {
            for _ in 0..takers {
                let _ = mutex.lock();
                items.set(items.get() + 1);
                unlock(mutex);
                filled.notify_one();
            }
        });
        scope.finally(move || assert!(deadline.is_some() || items.get() == 0));
    })
}

/// One permit, used as a mutex.
fn excluding<F: Form>(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let semaphore = scope.share(Semaphore::<F>::new(1));
        let data = scope.share(Data::new(0));
        for _ in 0..threads {
            scope.spawn(move || {
                for _ in 0..rounds {
                    semaphore.acquire();
                    data.set(data.get() + 1);
                    assert_eq!(semaphore.release(1), Ok(()));
                }
            });
        }
        scope.finally(move || {
            assert_eq!((data.get(), semaphore.permits()), (threads * rounds, 1));
        });
    })
}

/// `takers` threads take a permit each; one thread releases them, `step` at a time.
fn signalling(takers: u32, step: u32) -> Program {
    Program::new(takers + 1, takers + takers / step, move |scope| {
        let semaphore = scope.share(Semaphore::<Sleepy>::new(0));
        let data = scope.share(Data::new(0));
        for _ in 0..takers {
            scope.spawn(move || {
                semaphore.acquire();
                assert!(data.get() > 0, "what came before the release");
            });
        }
        scope.spawn(move || {
            data.set(1);
            (0..takers / step).for_each(|_| assert_eq!(semaphore.release(step), Ok(())));
        });
        scope.finally(move || assert_eq!(semaphore.permits(), 0, "each has had one"));
    })
}

/// One thread waits, one may give up, one permit is released. Must reach `gave up`.
fn passing_on() -> Program {
    Program::new(3, 3, |scope| {
        let semaphore = scope.share(Semaphore::<Sleepy>::new(0));
        scope.spawn(move || semaphore.acquire());
        scope.spawn(move || {
            if semaphore.acquire_until(soon()) {
                assert_eq!(semaphore.release(1), Ok(()));
            } else {
                antiphon_check::probe("gave up");
            }
        });
        scope.spawn(move || assert_eq!(semaphore.release(1), Ok(())));
        scope.finally(move || assert_eq!(semaphore.permits(), 0));
    })
}

/// SHARED-3: the thread that has had the permit frees the semaphore.
fn destroying() -> Program {
    Program::new(2, 2, |scope| {
        let semaphore = scope.share(Semaphore::<Sleepy>::new(0));
        scope.spawn(move || assert_eq!(semaphore.release(1), Ok(())));
        scope.spawn(move || {
            semaphore.acquire();
            antiphon_check::retire(semaphore);
        });
    })
}
