//! Models of the semaphore: no permit is created or lost, and each waiter is woken.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::{Atomic, Atomics, Platform, WaiterId};
use antiphon_sync::lock::{Form, Standard};
use antiphon_sync::policy::None;
use antiphon_sync::wait;

use crate::bounds::{ANY, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Backed, Insistent, Sleepy, Spinning};
use crate::program::{GAVE_UP, Program, soon};

type Semaphore<F = Sleepy> = wait::Semaphore<Check, None, F>;

pub fn entries() -> Vec<Entry> {
    all_of([exclusive(), signalled(), gathered(), impatient(), hardened()])
}

/// One permit, used as a mutex.
fn exclusive() -> Vec<Entry> {
    Subject("semaphore").models([
        model("excludes-2x1", excluding::<Sleepy>(2, 1), PLAIN),
        model("excludes-2x2", excluding::<Sleepy>(2, 2), PLAIN).long(),
        model("excludes-3x1", excluding::<Sleepy>(3, 1), PLAIN).long(),
        model("excludes-4x2", excluding::<Sleepy>(4, 2), SPURIOUS).by_lot(5_000),
        model("excludes-any-platform-2x1", excluding::<Spinning>(2, 1), ANY),
        model("excludes-any-platform-3x2", excluding::<Spinning>(3, 2), ANY).by_lot(5_000),
        model("fair-2x2", excluding::<Insistent>(2, 2), PLAIN).long(),
        model("fair-3x2", excluding::<Insistent>(3, 2), SPURIOUS).by_lot(5_000),
        model("backstop-2x1", excluding::<Backed>(2, 1), TIMED),
        model("backstop-awake-3x2", excluding::<Backed>(3, 2), TIMED.awake()).by_lot(5_000),
        model("backstop-3x2", excluding::<Backed>(3, 2), TIMED.spurious(1)).by_lot(5_000),
        model("exhausted-3x1", excluding::<Sleepy>(3, 1), PLAIN.nodes(0)),
        model("exhausted-but-one-3x1", excluding::<Sleepy>(3, 1), PLAIN.nodes(1)),
    ])
}

/// Permits that one thread releases and others take, for good.
fn signalled() -> Vec<Entry> {
    Subject("semaphore").models([
        model("signals-1+1", signalling::<Sleepy>(1, 1), SPURIOUS),
        model("signals-2+1", signalling::<Sleepy>(2, 1), PLAIN).long(),
        model("signals-together-2+1", signalling::<Sleepy>(2, 2), PLAIN),
        model("signals-together-3+1", signalling::<Sleepy>(3, 3), SPURIOUS).by_lot(5_000),
        model("signals-any-platform-3+1", signalling::<Spinning>(3, 1), ANY).by_lot(5_000),
        model("destroyed-1+1", destroying(), PLAIN),
    ])
}

fn gathered() -> Vec<Entry> {
    Subject("semaphore").models([
        model("gathers-1+2", gathering::<Sleepy>(2, 0), PLAIN),
        model("gathers-beside-1+2+1", gathering::<Sleepy>(2, 1), SPURIOUS).by_lot(5_000),
        model("gathers-fair-1+2+1", gathering::<Insistent>(2, 1), PLAIN).by_lot(5_000),
        model("gathers-backstop-1+2+1", gathering::<Backed>(2, 1), TIMED).by_lot(5_000),
    ])
}

fn impatient() -> Vec<Entry> {
    Subject("semaphore").models([
        model("gives-up-alone-1+1", giving_up::<Sleepy>(0), TIMED).reaches(GAVE_UP),
        model("gives-up-beside-1+1+1", giving_up::<Sleepy>(1), TIMED).reaches(GAVE_UP).long(),
        model("gives-up-2+1+1", giving_up::<Sleepy>(2), TIMED.spurious(1))
            .by_lot(8_000)
            .reaches(GAVE_UP),
        model("gives-up-fair-1+1+1", giving_up::<Insistent>(1), TIMED)
            .by_lot(5_000)
            .reaches(GAVE_UP),
        model("tries-1+1", trying(1), SPURIOUS).reaches(&["busy"]),
        model("tries-2+1", trying(2), PLAIN).reaches(&["busy"]),
    ])
}

fn hardened() -> Vec<Entry> {
    let tired = PLAIN.expiries(3);
    Subject("semaphore").models([
        model("inherited-1+1", inherited(1), PLAIN),
        model("inherited-2+1", inherited(2), PLAIN).by_lot(3_000),
        model("shipped-2x1", excluding::<Standard>(2, 1), tired.spurious(1)),
        model("shipped-3x2", excluding::<Standard>(3, 2), tired.spurious(1)).by_lot(5_000),
        model("shipped-3+1", signalling::<Standard>(3, 1), tired.timeouts(1)).by_lot(5_000),
    ])
}

fn release<F: Form>(semaphore: &Semaphore<F>, permits: u32) {
    assert_eq!(semaphore.release(permits), Ok(()));
}

/// A thread that takes a permit, touches plain data, and gives it back.
fn section<'scope, F: Form>(
    scope: &'scope Scope<'scope, '_>,
    semaphore: &'scope Semaphore<F>,
    data: &'scope Data<u32>,
    rounds: u32,
) {
    scope.spawn(move || {
        for _ in 0..rounds {
            semaphore.acquire();
            data.set(data.get() + 1);
            release(semaphore, 1);
        }
    });
}

fn excluding<F: Form>(threads: u32, rounds: u32) -> Program {
    Program::new(threads, threads * rounds, move |scope| {
        let semaphore = scope.share(Semaphore::<F>::new(1));
        let data = scope.share(Data::new(0));
        (0..threads).for_each(|_| section(scope, semaphore, data, rounds));
        scope.finally(move || {
            assert_eq!(data.get(), threads * rounds);
            assert!(semaphore.acquire_uncontended(), "none is kept for anybody");
            assert_eq!(semaphore.permits(), 0);
        });
    })
}

/// `takers` threads take a permit each; one thread releases them, `step` at a time.
fn signalling<F: Form>(takers: u32, step: u32) -> Program {
    Program::new(takers + 1, takers + takers / step, move |scope| {
        let semaphore = scope.share(Semaphore::<F>::new(0));
        let data = scope.share(Data::new(0));
        scope.spawn_each(0..takers, move |_| {
            semaphore.acquire();
            assert!(data.get() > 0, "what came before the release");
        });
        scope.spawn(move || {
            data.set(1);
            (0..takers / step).for_each(|_| release(semaphore, step));
        });
        scope.finally(move || assert_eq!(semaphore.permits(), 0, "each has had one"));
    })
}

/// SEM-3: the thread that takes the last permit frees the semaphore.
fn destroying() -> Program {
    Program::new(2, 2, |scope| {
        let semaphore = scope.share(Semaphore::<Sleepy>::new(0));
        scope.spawn(move || release(semaphore, 1));
        scope.spawn(move || {
            semaphore.acquire();
            antiphon_check::retire(semaphore);
        });
    })
}

/// One thread wants as many permits as `givers` threads release, one each; `others` take one of
/// them for a while.
fn gathering<F: Form>(givers: u32, others: u32) -> Program {
    Program::new(1 + givers + others, 1 + givers + others, move |scope| {
        let semaphore = scope.share(Semaphore::<F>::new(0));
        let parts = scope.share((0..givers).map(|_| Data::new(false)).collect::<Vec<_>>());
        scope.spawn(move || {
            semaphore.acquire_many(givers);
            assert!(parts.iter().all(Data::get), "all have given");
            release(semaphore, givers);
        });
        scope.spawn_each(parts, move |part| {
            part.set(true);
            release(semaphore, 1);
        });
        scope.spawn_each(0..others, move |_| {
            semaphore.acquire();
            release(semaphore, 1);
        });
        scope.finally(move || assert_eq!(semaphore.permits(), givers));
    })
}

/// `patient` threads take a permit, and so does one that may give up; as many are released as are
/// wanted in the end. Must reach `gave up`.
fn giving_up<F: Form>(patient: u32) -> Program {
    Program::new(patient + 2, patient + 2, move |scope| {
        let semaphore = scope.share(Semaphore::<F>::new(0));
        scope.spawn_each(0..patient, move |_| semaphore.acquire());
        scope.spawn(move || {
            if semaphore.acquire_until(1, soon()) {
                release(semaphore, 1);
            } else {
                antiphon_check::probe("gave up");
            }
        });
        let given = patient.max(1);
        scope.spawn(move || release(semaphore, given));
        scope.finally(move || {
            assert_eq!(semaphore.permits(), given - patient, "none went with it");
            release(semaphore, 1);
            assert!(semaphore.acquire_uncontended(), "and none is kept for it");
        });
    })
}

/// A try takes an available permit, and nothing otherwise. Must reach `busy`.
fn trying(others: u32) -> Program {
    Program::new(others + 1, others + 1, move |scope| {
        let semaphore = scope.share(Semaphore::<Sleepy>::new(1));
        let data = scope.share(Data::new(0));
        (0..others).for_each(|_| section(scope, semaphore, data, 1));
        scope.spawn(move || {
            if semaphore.try_acquire(1) {
                data.set(data.get() + 1);
                release(semaphore, 1);
            } else {
                antiphon_check::probe("busy");
            }
        });
        scope.finally(move || assert!(semaphore.try_acquire(1), "it was given back"));
    })
}

/// Layout of the words of a semaphore.
#[repr(C, align(8))]
struct Words {
    state: <Check as Atomics>::U64,
    tail: <Check as Atomics>::U32,
    first: u32,
}

const _: () = assert!(size_of::<Words>() == size_of::<Semaphore>());

/// In the child of a fork: the parent's head sleeps and is favoured, and others wait behind it.
/// `takers` threads still wait and are woken.
fn inherited(takers: u32) -> Program {
    /// `WAKE`, `FAIR` and a name that a waiter of the child may also have.
    const HEADS: u64 = 3 << 32 | 1 << 48;
    Program::new(takers + 1, takers + 1, move |scope| {
        let semaphore = scope.share(Semaphore::<Sleepy>::new(0));
        // SAFETY: `Words` has the layout that the semaphore's file defines; the semaphore lives as
        // long as the borrow.
        let words = unsafe { &*std::ptr::from_ref(semaphore).cast::<Words>() };
        words.state.store(HEADS, Relaxed);
        words.tail.store(WaiterId::new(Check::epoch() + 1, 1).bits(), Relaxed);
        scope.spawn_each(0..takers, move |_| semaphore.acquire());
        scope.spawn(move || (0..takers).for_each(|_| release(semaphore, 1)));
        scope.finally(move || assert_eq!(semaphore.permits(), 0));
    })
}
