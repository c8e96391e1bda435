//! Models of the types that several processes share: mutex, condition variable, semaphore. Threads
//! stand for processes.

use antiphon_check::{Check, Data};
use antiphon_platform::Deadline;
use antiphon_sync::lock::{Form, Lock, Standard};
use antiphon_sync::shared::{Acquired, SharedCondvar, SharedMutex, SharedSemaphore};

use crate::bounds::{ANY_SHARED as ANY, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Backed, Sleepy, Spinning};
use crate::program::{GAVE_UP, Program, destruction, exclusion, soon, tries};

type Mutex<F = Sleepy> = SharedMutex<Check, F>;
type Semaphore<F = Sleepy> = SharedSemaphore<Check, F>;

pub fn entries() -> Vec<Entry> {
    all_of([mutex(), condvar(), semaphore()])
}

fn mutex() -> Vec<Entry> {
    Subject("shared-mutex").models([
        model("excludes-2x1", exclusion::<Whole>(2, 1), PLAIN),
        model("excludes-2x2", exclusion::<Whole>(2, 2), PLAIN),
        model("excludes-3x1", exclusion::<Whole>(3, 1), PLAIN).long(),
        model("excludes-3x2", exclusion::<Whole>(3, 2), SPURIOUS).by_lot(3_000),
        model("excludes-any-platform-2x1", exclusion::<Whole<Spinning>>(2, 1), ANY),
        model("excludes-backstop-3x1", exclusion::<Whole<Backed>>(3, 1), TIMED).by_lot(3_000),
        model("excludes-shipped-3x2", exclusion::<Whole<Standard>>(3, 2), ANY).by_lot(3_000),
        model("tries-1+1", tries::<Whole>(1), SPURIOUS).reaches(&["busy"]),
        model("gives-up-alone-1+1", giving_up(1), TIMED).reaches(GAVE_UP),
        model("gives-up-beside-3+1", giving_up(3), TIMED).by_lot(10_000).reaches(GAVE_UP),
        model("owner-dies-1+1", dying(1), TIMED.mortal(1)).reaches(&["found"]),
        model("owner-dies-1+2", dying(2), TIMED.mortal(1)).by_lot(3_000).reaches(&["found"]),
        model("destroyed-1+1", destruction::<Whole>(), PLAIN).reaches(&["retired"]),
    ])
}

fn condvar() -> Vec<Entry> {
    Subject("shared-condvar").models([
        model("notifies-1+1", notifying(1, None), SPURIOUS),
        model("notifies-2+1", notifying(2, None), PLAIN).by_lot(2_000),
        model("gives-up-1+1", notifying(1, Some(soon)), TIMED).reaches(GAVE_UP),
    ])
}

fn semaphore() -> Vec<Entry> {
    Subject("shared-semaphore").models([
        model("excludes-2x1", excluding::<Sleepy>(2, 1), PLAIN),
        model("excludes-3x2", excluding::<Spinning>(3, 2), ANY).by_lot(3_000),
        model("signals-1+1", signalling(1, 1), SPURIOUS),
        model("signals-2+1", signalling(2, 1), PLAIN),
        model("signals-together-2+1", signalling(2, 2), PLAIN),
        model("signals-together-3+1", signalling(3, 3), SPURIOUS).by_lot(3_000),
        model("gives-up-1+1+1", passing_on(), TIMED).by_lot(3_000).reaches(GAVE_UP),
        model("destroyed-1+1", destroying(), PLAIN),
    ])
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
        scope.spawn_each(0..patient, move |_| {
            assert_eq!(mutex.lock(), Acquired::Whole);
            data.set(data.get() + 1);
            unlock(mutex);
        });
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
        scope.spawn_each(0..others, move |_| {
            if mutex.lock() == Acquired::OwnerDied {
                antiphon_check::probe("found");
                found.set(found.get() + 1);
                mutex.recovered();
            }
            unlock(mutex);
        });
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
        scope.spawn_each(0..takers, move |_| {
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
        scope.spawn_each(0..threads, move |_| {
            for _ in 0..rounds {
                semaphore.acquire();
                data.set(data.get() + 1);
                assert_eq!(semaphore.release(1), Ok(()));
            }
        });
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
        scope.spawn_each(0..takers, move |_| {
            semaphore.acquire();
            assert!(data.get() > 0, "what came before the release");
        });
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
