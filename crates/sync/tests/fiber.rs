//! Tests that one mutex serves fibers and threads, with both in one queue; and that the thread of a
//! waiting fiber goes on, whatever the fiber waits for.
//!
//! The fibers run on one thread, under a toy scheduler: if a fiber that waits blocked that thread,
//! the fiber that holds the lock would never run, and the test would hang.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_linux::fiber::{Hooks, Sleep, install};
use antiphon_platform::Clocks as _;
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::{Barrier, Once, Semaphore};
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Reason why a fiber is switched away from, for the scheduler.
enum Switch {
    /// The fiber waits.
    Sleep(Sleep),
    /// The fiber only lets others run.
    Yield,
}

type Body = Coroutine<(), Switch, ()>;

/// Handles of fibers that may run again; filled by any thread.
static RUNNABLE: Mutex<VecDeque<u64>> = Mutex::new(VecDeque::new());
static MORE: Condvar = Condvar::new();
static HOOKS: Hooks = Hooks { current, suspend, resume, give_way: || false };

thread_local! {
    /// The fiber that runs on this thread (1 and up), and its yielder; 0 if no fiber runs.
    static CURRENT: Cell<(u64, *const Yielder<(), Switch>)> =
        const { Cell::new((0, std::ptr::null())) };
}

fn current() -> Option<u64> {
    Some(CURRENT.get().0).filter(|&handle| handle != 0)
}

fn switch(why: Switch) {
    let (handle, yielder) = CURRENT.get();
    // SAFETY: set by the fiber that runs here; its yielder lives as long as the fiber.
    unsafe { &*yielder }.suspend(why);
    CURRENT.set((handle, yielder));
}

fn suspend(_: u64, sleep: Sleep) {
    switch(Switch::Sleep(sleep));
}

fn resume(handle: u64) {
    RUNNABLE.lock().unwrap().push_back(handle);
    MORE.notify_one();
}

/// Runs the fibers on the calling thread until all have ended.
fn run(fibers: Vec<Body>) {
    let fibers: Vec<_> = fibers.into_iter().map(|body| RefCell::new(Some(body))).collect();
    RUNNABLE.lock().unwrap().extend(1..=fibers.len() as u64);
    let mut alive = fibers.len();
    let mut timers: Vec<(u64, Sleep)> = Vec::new();
    while alive > 0 {
        timers.retain(|&(handle, sleep)| {
            let due = sleep.deadline.is_some_and(|due| Linux::now(due.clock) >= due.ns);
            // SAFETY: a timer is dropped before its fiber runs, so this one still sleeps.
            if due && unsafe { sleep.expire() } {
                resume(handle);
            }
            !due
        });
        let next = {
            let runnable = RUNNABLE.lock().unwrap();
            let (mut runnable, _) = MORE
                .wait_timeout_while(runnable, Duration::from_millis(1), |queue| queue.is_empty())
                .unwrap();
            runnable.pop_front()
        };
        let Some(handle) = next else { continue };
        timers.retain(|timer| timer.0 != handle);
        let mut slot = fibers[handle as usize - 1].borrow_mut();
        let result = slot.as_mut().expect("it has not ended").resume(());
        CURRENT.set((0, std::ptr::null()));
        match result {
            CoroutineResult::Return(()) => {
                *slot = None;
                alive -= 1;
            }
            CoroutineResult::Yield(Switch::Yield) => resume(handle),
            CoroutineResult::Yield(Switch::Sleep(sleep)) => {
                // SAFETY: the fiber is switched away from; `suspend` returns when it is resumed.
                if unsafe { sleep.commit() } {
                    timers.push((handle, sleep));
                } else {
                    resume(handle);
                }
            }
        }
    }
}

#[test]
fn fibers_and_threads_wait_in_one_queue() {
    const FIBERS: u64 = 8;
    const ROUNDS: u64 = 500;
    install(&HOOKS).expect("no other hooks in this process");
    let lock = Arc::new(ShflMutex::<Linux>::NEW);
    let count = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));

    let section = |lock: &ShflMutex<Linux>, count: &AtomicU64, inside: &dyn Fn()| {
        lock.lock();
        let before = count.load(Ordering::Relaxed);
        inside();
        count.store(before + 1, Ordering::Relaxed);
        // SAFETY: locked above.
        unsafe { lock.unlock() };
    };
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (lock, count, stop) = (lock.clone(), count.clone(), stop.clone());
            thread::spawn(move || {
                let mut rounds = 0;
                while !stop.load(Ordering::Relaxed) {
                    section(&lock, &count, &|| {});
                    rounds += 1;
                }
                rounds
            })
        })
        .collect();

    let suspended = Rc::new(Cell::new(0u64));
    let waits = (Once::<Linux>::NEW, Barrier::<Linux>::new(FIBERS as u32), Semaphore::new(1));
    let waits: Rc<(_, _, Semaphore<Linux>)> = Rc::new(waits);
    let leaders = Rc::new(Cell::new(0));
    let fibers = (1..=FIBERS)
        .map(|handle| {
            let (lock, count, suspended) = (lock.clone(), count.clone(), suspended.clone());
            let (waits, leaders) = (waits.clone(), leaders.clone());
            Coroutine::new(move |yielder: &Yielder<(), Switch>, ()| {
                for _ in 0..ROUNDS {
                    CURRENT.set((handle, yielder));
                    // The owner lets the others run: they find the lock held, on the same thread.
                    section(&lock, &count, &|| {
                        switch(Switch::Yield);
                        suspended.set(suspended.get() + 1);
                    });
                }
                // The first fiber lets the others run in the middle; they then wait for it.
                waits.0.call_once(|| switch(Switch::Yield));
                let leads = waits.1.wait();
                leaders.set(leaders.get() + u32::from(leads));
                waits.2.acquire();
                switch(Switch::Yield);
                assert_eq!(waits.2.release(1), Ok(()));
            })
        })
        .collect();
    run(fibers);
    stop.store(true, Ordering::Relaxed);
    let by_threads: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(suspended.get(), FIBERS * ROUNDS);
    assert_eq!((leaders.get(), waits.2.permits()), (1, 1));
    assert_eq!(count.load(Ordering::Relaxed), FIBERS * ROUNDS + by_threads);
}
