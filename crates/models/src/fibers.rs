//! Models of resumed fibers: the thread of a fiber finds each resumed fiber once and is woken for
//! it, whichever thread resumes it and whatever it has waited for. A lost wake is a deadlock.

use core::sync::atomic::Ordering::{Acquire, Release};

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_runtime::sched::{Crew, Lifo, Put, Scheme, Share, Steal, Worker};
use antiphon_runtime::{fiber, task};
use antiphon_sync::queue::{Item, Link};

use crate::bounds::{Bounds, PLAIN};
use crate::entry::{Entry, Subject, model};
use crate::program::{Anywhere, Program};

type Ready = fiber::Ready<Check>;
type Handle = task::Handle<Check, u32>;
type Promise = task::Promise<Check, u32>;
type U32 = <Check as Atomics>::U32;

/// A waiting thread may end its spin and sleep.
const SLEEPY: Bounds = PLAIN.expiries(1);

pub fn entries() -> Vec<Entry> {
    Subject("fibers").models([
        model("goes-on-1+1", going_on(1, 1), SLEEPY.spurious(1)),
        model("goes-on-2+1", going_on(2, 1), SLEEPY),
        model("again-1+1", going_on(1, 2), SLEEPY),
        model("again-2+1", going_on(2, 2), SLEEPY).by_lot(5_000),
        model("next-owner-1+2", next_owner(), SLEEPY),
        model("beside-tasks-1+1", beside_tasks(), SLEEPY),
        model("and-threads-1+1", and_threads(1), SLEEPY.spurious(1)).reaches(&["waits"]),
        model("and-threads-1+2", and_threads(2), PLAIN),
    ])
}

/// A fiber of the model: it waits a number of times until others resume it.
struct Fiber {
    link: Link<Check>,
    /// Number of times that it was resumed.
    turns: U32,
    /// Written by a poster before it resumes the fiber, and by the fiber.
    said: Data<u32>,
}

impl Fiber {
    fn new() -> Self {
        Self { link: Link::NEW, turns: U32::ZERO, said: Data::new(0) }
    }

    fn item(&self) -> Item {
        let address = core::ptr::from_ref(&self.link).expose_provenance();
        Item::new(address as u64).expect("an aligned address")
    }

    /// Resumes the fiber when it waits for the `turn`th time.
    fn post(&self, ready: &Ready, turn: u32) {
        // Acquire: what the fiber has done; pairs with the release in `go_on`.
        self.turns.wait_while(Acquire, |turns| turns < turn);
        assert_eq!(self.said.get(), 2 * turn);
        self.said.set(2 * turn + 1);
        // SAFETY: the fiber is in no queue: it was taken out as often as it was put in.
        unsafe { ready.post(self.item()) };
    }

    fn go_on(&self) {
        let said = self.said.get();
        self.said.set(said + 1);
        // Release: pairs with the acquire in `post`.
        self.turns.fetch_add(1, Release);
    }
}

/// Runs the fibers that may go on, until `left`, which counts down, is 0.
fn collect(ready: &Ready, fibers: &[Fiber], left: &mut u32) {
    ready.look();
    // SAFETY: the owners run one after the other.
    while let Some(item) = unsafe { ready.take() } {
        let fiber = fibers.iter().find(|fiber| fiber.item() == item).expect("one of them");
        fiber.go_on();
        *left -= 1;
    }
}

/// As many posters as fibers; each poster resumes one fiber `times` times, and the owner rests in
/// between.
fn going_on(fibers: u32, times: u32) -> Program {
    Program::new(fibers + 1, fibers * (times + 1), move |scope| {
        let ready = scope.share(Ready::NEW);
        let all: &Vec<Fiber> = scope.share((0..fibers).map(|_| Fiber::new()).collect());
        scope.spawn_each(all, move |fiber| (0..times).for_each(|turn| fiber.post(ready, turn)));
        scope.spawn(move || {
            let mut left = fibers * times;
            while left > 0 {
                if ready.is_quiet() {
                    ready.awaited().wait();
                }
                collect(ready, all, &mut left);
            }
        });
        scope.finally(move || {
            assert!(all.iter().all(|fiber| fiber.said.get() == 2 * times));
        });
    })
}

/// READY-2: a poster may be late to notify, and then notifies the next owner without effect.
fn next_owner() -> Program {
    Program::new(3, 4, |scope| {
        let (ready, passed) = (scope.share(Ready::NEW), scope.share(U32::ZERO));
        let all: &Vec<Fiber> = scope.share((0..2).map(|_| Fiber::new()).collect());
        scope.spawn(move || all.iter().for_each(|fiber| fiber.post(ready, 0)));
        let own = move || {
            while ready.is_quiet() {
                ready.awaited().wait();
            }
            let mut left = 2;
            collect(ready, all, &mut left);
            2 - left
        };
        scope.spawn(move || {
            let found = own();
            // Release: pairs with the acquire below.
            passed.store(1 + found, Release);
        });
        scope.spawn(move || {
            let mut found = passed.wait_while(Acquire, |passed| passed == 0) - 1;
            while found < 2 {
                found += own();
            }
        });
    })
}

/// Tells the thread of a fiber that the fiber may go on.
struct Posts(Anywhere<(*const Ready, Item)>);

impl Wake for Posts {
    fn wake(self: Arc<Self>) {
        let (ready, item) = self.0.0;
        // SAFETY: `ready` is shared as long as the execution lasts. The fiber waits, and has left
        // one waker.
        unsafe { (*ready).post(item) };
    }
}

/// The fibers of a thread wait for promises of other threads, which then wait for promises of the
/// fibers.
fn and_threads(count: usize) -> Program {
    let all = count as u32;
    Program::new(1 + all, 4 * all, move |scope| {
        let ready = scope.share(Ready::NEW);
        let fibers: &Vec<Fiber> = scope.share((0..count).map(|_| Fiber::new()).collect());
        let mut waits = Vec::new();
        for fiber in fibers {
            let (promise, awaited) = Promise::new();
            let (back, handle) = Promise::new();
            waits.push((awaited, Some(back)));
            scope.spawn(move || {
                fiber.said.set(1);
                promise.fulfil(3);
                assert_eq!(handle.take(), Some(7));
                assert_eq!(fiber.said.get(), 2);
            });
        }
        scope.spawn(move || {
            let mut left = count;
            let mut go_on = |fiber: &Fiber, (awaited, back): &mut (Handle, Option<Promise>)| {
                // Resumed late: it had found the value when it left its waker.
                if back.is_none() {
                    return left;
                }
                let waker = Waker::from(Arc::new(Posts(Anywhere((ready, fiber.item())))));
                let mut context = Context::from_waker(&waker);
                match Pin::new(awaited).poll(&mut context) {
                    Poll::Pending => probe("waits"),
                    Poll::Ready(had) => {
                        assert_eq!((had, fiber.said.get()), (Some(3), 1));
                        fiber.said.set(2);
                        back.take().expect("it goes on once").fulfil(7);
                        left -= 1;
                    }
                }
                left
            };
            // Each fiber begins, and goes on when it was resumed.
            let begun = fibers.iter().zip(&mut waits).map(|(fiber, wait)| go_on(fiber, wait));
            let mut left = begun.last().expect("one at least");
            while left > 0 {
                if ready.is_quiet() {
                    ready.awaited().wait();
                }
                ready.look();
                // SAFETY: this thread is the owner.
                while let Some(item) = unsafe { ready.take() } {
                    let at = fibers.iter().position(|fiber| fiber.item() == item);
                    let at = at.expect("one of them");
                    left = go_on(&fibers[at], &mut waits[at]);
                }
            }
        });
    })
}

/// A worker that has a waiting fiber, and a task from outside.
fn beside_tasks() -> Program {
    Program::new(2, 3, |scope| {
        let policy = Scheme::new(Lifo, Steal { share: Share::Half }).capacity(2, 2);
        let crew = scope.share(Crew::<Check, _>::new(policy, 1, 2));
        let ready = scope.share(Ready::NEW);
        let all: &Vec<Fiber> = scope.share(vec![Fiber::new()]);
        scope.spawn(move || {
            crew.submit(Item::new(8 * 512).expect("an item"), Put::PLAIN).expect("there is room");
            all[0].post(ready, 0);
        });
        scope.spawn(move || {
            let mut worker = crew.worker(0).expect("a seat");
            let (mut left, mut tasks) = (1, 1);
            while left + tasks > 0 {
                if !ready.is_quiet() {
                    collect(ready, all, &mut left);
                    tasks -= u32::from(Worker::try_any_task(&mut worker).is_some());
                } else if left > 0 {
                    tasks -= u32::from(worker.next_until(&ready.awaited(), None).is_some());
                } else {
                    tasks -= u32::from(worker.next_task().is_some());
                }
            }
        });
    })
}
