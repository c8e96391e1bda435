//! Tests of fibers and threads as waiters, with a toy scheduler whose fibers move between threads.

mod support;

use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_linux::fiber::{AlreadyInstalled, Hooks, Sleep, install};
use antiphon_platform::{Clock, Clocks as _, Parked, Platform, WaiterRef};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use support::{Node, after, never};

struct Fiber {
    /// The coroutine, while no thread runs it.
    coroutine: UnsafeCell<Option<Coroutine<(), Sleep, ()>>>,
    yielder: Cell<*const Yielder<(), Sleep>>,
}

/// The fibers that run, and those that sleep with their deadlines. Fibers are named by their
/// address.
struct Scheduler {
    runnable: VecDeque<u64>,
    timers: Vec<(u64, Sleep)>,
    alive: usize,
}

static SCHEDULER: Mutex<Scheduler> =
    Mutex::new(Scheduler { runnable: VecDeque::new(), timers: Vec::new(), alive: 0 });
static WORK: Condvar = Condvar::new();
static HOOKS: Hooks = Hooks { current, suspend, resume, give_way: || false };

thread_local! {
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

fn scheduler() -> MutexGuard<'static, Scheduler> {
    SCHEDULER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fiber(handle: u64) -> &'static Fiber {
    // SAFETY: a handle is the address of a leaked fiber.
    unsafe { &*(handle as *const Fiber) }
}

// Never inlined: a fiber asks again after it has moved to another thread.
#[inline(never)]
fn current() -> Option<u64> {
    Some(CURRENT.get()).filter(|&handle| handle != 0)
}

fn suspend(handle: u64, sleep: Sleep) {
    // SAFETY: set by the running fiber when it began.
    let yielder = unsafe { &*fiber(handle).yielder.get() };
    yielder.suspend(sleep);
}

fn resume(handle: u64) {
    // Long enough for a deadline to pass between the wake and this.
    for _ in 0..500 {
        core::hint::spin_loop();
    }
    let mut scheduler = scheduler();
    scheduler.timers.retain(|timer| timer.0 != handle);
    scheduler.runnable.push_back(handle);
    WORK.notify_one();
}

fn spawn(body: impl FnOnce() + Send + 'static) {
    let fiber: &'static Fiber = Box::leak(Box::new(Fiber {
        coroutine: UnsafeCell::new(None),
        yielder: Cell::new(core::ptr::null()),
    }));
    let handle = core::ptr::from_ref(fiber) as u64;
    let coroutine = Coroutine::new(move |yielder, ()| {
        self::fiber(handle).yielder.set(yielder);
        body();
    });
    // SAFETY: no thread runs it yet.
    unsafe { *fiber.coroutine.get() = Some(coroutine) };
    let mut scheduler = scheduler();
    scheduler.alive += 1;
    scheduler.runnable.push_back(handle);
}

fn run(handle: u64) {
    let slot = fiber(handle).coroutine.get();
    // SAFETY: the thread that has popped the handle is the only one to touch the fiber.
    let mut coroutine = unsafe { (*slot).take() }.expect("a runnable fiber is not running");
    CURRENT.set(handle);
    let result = coroutine.resume(());
    CURRENT.set(0);
    let CoroutineResult::Yield(sleep) = result else {
        scheduler().alive -= 1;
        WORK.notify_all();
        return;
    };
    // SAFETY: only this thread accesses the fiber before the commit, after which another thread may
    // run it.
    unsafe { *slot = Some(coroutine) };
    let mut scheduler = scheduler();
    // SAFETY: the thread has switched away from the fiber, and `suspend` returns when the fiber
    // runs again. The lock keeps `resume` away until the timer is in place.
    if !unsafe { sleep.commit() } {
        scheduler.runnable.push_back(handle);
    } else if sleep.deadline.is_some() {
        scheduler.timers.push((handle, sleep));
    }
}

/// Runs fibers until all have ended.
fn work() {
    loop {
        let mut scheduler = scheduler();
        // Expired sleepers become runnable, unless a wake is about to make them so.
        for timer in core::mem::take(&mut scheduler.timers) {
            let late = timer.1.deadline.is_some_and(|d| Linux::now(d.clock) >= d.ns);
            if !late {
                scheduler.timers.push(timer);
            // SAFETY: `resume` removes a timer before its fiber runs, so this one still sleeps.
            } else if unsafe { timer.1.expire() } {
                scheduler.runnable.push_back(timer.0);
            }
        }
        if let Some(handle) = scheduler.runnable.pop_front() {
            drop(scheduler);
            run(handle);
        } else if scheduler.alive == 0 {
            return;
        } else {
            let waited = WORK.wait_timeout(scheduler, Duration::from_millis(1));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

const MEMBERS: usize = 6;
const ROUNDS: u32 = 2_000;
static TURNS: [AtomicU32; MEMBERS] = [const { AtomicU32::new(0) }; MEMBERS];

/// One member of the ring: waits for its turn and passes it on.
fn member(me: usize, node: Node, next: WaiterRef) {
    for round in 1..=ROUNDS {
        let first = u32::from(me == 0);
        while TURNS[me].load(Acquire) + first < round {
            assert_eq!(Linux::park(node.waiter, never()), Parked::Woken, "a wake was lost");
        }
        TURNS[(me + 1) % MEMBERS].fetch_add(1, Release);
        Linux::unpark(next);
    }
}

fn ring() {
    let nodes: Vec<_> = (0..MEMBERS).map(|_| Node::take()).collect();
    let next = |me: usize| nodes[(me + 1) % MEMBERS].reference();
    // Fibers and threads in turn, and twice two fibers in a row.
    for me in [0, 1, 3, 4] {
        let (node, next) = (nodes[me], next(me));
        spawn(move || member(me, node, next));
    }
    thread::scope(|scope| {
        for me in [2, 5] {
            let (node, next) = (nodes[me], next(me));
            scope.spawn(move || member(me, node, next));
        }
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    assert!(TURNS.iter().all(|turns| turns.load(Relaxed) == ROUNDS));
    nodes.into_iter().for_each(Node::give);
}

/// A fiber's deadline passes; and a wake that was pending before is found.
fn deadlines() {
    static ENDED: AtomicU32 = AtomicU32::new(0);
    for clock in [Clock::Monotonic, Clock::Realtime] {
        spawn(move || {
            let node = Node::take();
            let deadline = after(clock, 3_000_000);
            while Linux::park(node.waiter, Some(deadline)) == Parked::Woken {}
            assert!(Linux::now(clock) >= deadline.ns);
            Linux::unpark(node.reference());
            assert_eq!(Linux::park(node.waiter, None), Parked::Woken);
            node.give();
            ENDED.fetch_add(1, Relaxed);
        });
    }
    work();
    assert_eq!(ENDED.load(Relaxed), 2);
}

/// Wakes race with deadlines: a fiber counts only wakes that it got, and is never resumed twice.
fn races() {
    const TURNS: u32 = 2_000;
    static ROUND: AtomicU32 = AtomicU32::new(0);
    let node = Node::take();
    let reference = node.reference();
    spawn(move || {
        for round in 1..=TURNS {
            let give_up = never();
            ROUND.store(round, Release);
            while Linux::park(node.waiter, Some(after(Clock::Monotonic, 5_000))) != Parked::Woken {
                let now = Linux::now(Clock::Monotonic);
                assert!(give_up.is_some_and(|never| now < never.ns), "a wake was lost");
            }
        }
    });
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
        for round in 1..=TURNS {
            while ROUND.load(Acquire) < round {
                thread::yield_now();
            }
            let until = after(Clock::Monotonic, u64::from(round % 64) * 1_000);
            while Linux::now(Clock::Monotonic) < until.ns {}
            Linux::unpark(reference);
        }
    });
    node.give();
}

// One test, because there is one scheduler.
#[test]
fn fibers_and_threads_wake_each_other() {
    static OTHER: Hooks = Hooks { current, suspend, resume, give_way: || false };
    assert_eq!(install(&HOOKS), Ok(()));
    assert_eq!(install(&HOOKS), Ok(()));
    assert_eq!(install(&OTHER), Err(AlreadyInstalled));
    ring();
    deadlines();
    races();
}
