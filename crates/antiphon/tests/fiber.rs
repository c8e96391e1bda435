//! Tasks as fibers: they wait, and their threads run others.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::fiber::{self, STACK_BYTES, yield_now, yield_soft};
use antiphon::pool::{self, Builder, Pool, policy::BoxedPolicy};
use antiphon::{Barrier, Condvar, Event, Latch, Mutex, RwLock, Semaphore};

fn fibers(threads: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) }
}

fn pool(threads: usize) -> Pool {
    fibers(threads).build().expect("fibers")
}

#[test]
fn as_many_wait_on_one_thread_as_there_are() {
    const FIBERS: usize = 10_000;
    let pool = fibers(1).room(FIBERS).build().expect("fibers");
    let (open, here) = (Arc::new(Latch::new(1)), Arc::new(AtomicUsize::new(0)));
    let all: Vec<_> = (0..FIBERS)
        .map(|number| {
            let (open, here) = (open.clone(), here.clone());
            pool.spawn(move || {
                here.fetch_add(1, Relaxed);
                open.wait();
                number
            })
        })
        .collect();
    while here.load(Relaxed) < FIBERS {
        thread::yield_now();
    }
    assert!(all.iter().all(|fiber| !fiber.is_finished()));
    open.count_down(1);
    let sum: usize = all.into_iter().map(|fiber| fiber.join().expect("a number")).sum();
    assert_eq!(sum, FIBERS * (FIBERS - 1) / 2);
}

/// A task that a thread spawns when there is no room waits for something that the thread does next.
#[test]
fn a_thread_runs_no_fiber_though_there_is_no_room() {
    const FIBERS: usize = 100;
    let pool = fibers(1).room(2).build().expect("fibers");
    let open = Arc::new(Latch::new(1));
    let spawn = |_| {
        let open = open.clone();
        let me = thread::current().id();
        pool.spawn(move || {
            // Otherwise the latch would never be open.
            assert_ne!(thread::current().id(), me);
            open.wait();
        })
    };
    let all: Vec<_> = (0..FIBERS).map(spawn).collect();
    open.count_down(1);
    all.into_iter().for_each(|fiber| fiber.join().expect("on a thread of the pool"));
    // This also holds for scopes, many tasks, and ranks.
    let (me, away) = (thread::current().id(), AtomicUsize::new(0));
    pool.scope(|scope| {
        for _ in 0..FIBERS {
            scope.spawn(|| _ = away.fetch_add((thread::current().id() != me).into(), Relaxed));
        }
    });
    assert_eq!(away.into_inner(), FIBERS);
    let where_it_runs = || thread::current().id();
    let many = pool.spawn_many((0..FIBERS).map(|_| where_it_runs));
    let ranked: Vec<_> = (0..FIBERS as u64).map(|n| pool.spawn_ranked(n, where_it_runs)).collect();
    for fiber in many.into_iter().chain(ranked) {
        assert_ne!(fiber.join().expect("a thread"), me);
    }
}

/// Fibers and threads stand in one queue, in each kind of wait.
#[test]
fn fibers_and_threads_wait_for_each_other() {
    const EACH: u32 = 200;
    let (mutex, changed) = (Mutex::new(0_u32), Condvar::new());
    let (lock, permits) = (RwLock::new(0_u32), Semaphore::new(2));
    let meet = Barrier::new(4);
    let inside = AtomicU32::new(0);
    let take_turns = |me: u32| {
        for turn in 0..EACH {
            let mut at = mutex.lock();
            while *at != 4 * turn + me {
                changed.wait(&mut at);
            }
            *at += 1;
            changed.notify_all();
            drop(at);
            *lock.write() += 1;
            assert!(*lock.read() >= turn);
            let _permit = permits.acquire();
            assert!(inside.fetch_add(1, Relaxed) < 2);
            yield_now();
            inside.fetch_sub(1, Relaxed);
        }
        meet.wait();
    };
    let pool = pool(2);
    thread::scope(|threads| {
        threads.spawn(|| take_turns(0));
        threads.spawn(|| take_turns(2));
        pool.scope(|scope| {
            scope.spawn(|| take_turns(1));
            scope.spawn(|| take_turns(3));
        });
    });
    assert_eq!((*mutex.lock(), *lock.read()), (4 * EACH, 4 * EACH));
}

#[test]
fn one_that_has_begun_stays_on_its_thread() {
    thread_local! {
        static HERE: Cell<u32> = const { Cell::new(0) };
    }
    let pool = pool(2);
    let moved: u32 = (0..200)
        .map(|number| {
            pool.spawn(move || {
                let (me, shared) = (thread::current().id(), Rc::new(Cell::new(number)));
                for turn in 0..20 {
                    HERE.set(number);
                    let again = shared.clone();
                    if turn % 3 == 0 {
                        fiber::sleep(Duration::from_micros(50));
                    } else {
                        yield_now();
                    }
                    assert_eq!((again.get(), Rc::strong_count(&shared)), (number, 2));
                    HERE.set(0);
                }
                u32::from(thread::current().id() != me)
            })
        })
        .collect::<Vec<_>>()
        .into_iter()
        .map(|fiber| fiber.join().expect("no panic"))
        .sum();
    assert_eq!(moved, 0);
}

/// This holds for each policy: otherwise the test does not end.
#[test]
fn what_one_waits_for_by_yielding_gets_its_turn() {
    for name in ["lifo", "fifo", "lifo-slot", "stochastic", "adaptive", "fifo/blocks"] {
        for yields in [yield_now as fn(), yield_soft] {
            let policy: BoxedPolicy<_> = name.parse().expect("a policy");
            let pool = Arc::new(fibers(1).build_with(policy).expect("fibers"));
            let inner = pool.clone();
            let all = pool.spawn(move || {
                let said = Arc::new(AtomicBool::new(false));
                let last = said.clone();
                let first = inner.spawn(move || last.store(true, Relaxed));
                let busy: Vec<_> = (0..3)
                    .map(|_| {
                        let said = said.clone();
                        inner.spawn(move || {
                            while !said.load(Relaxed) {
                                yields();
                            }
                        })
                    })
                    .collect();
                while !said.load(Relaxed) {
                    yields();
                }
                first.join().expect("no panic");
                busy.into_iter().for_each(|busy| busy.join().expect("no panic"));
            });
            all.join().expect(name);
        }
    }
}

/// The task that a fiber waits for by yielding is in the queue of a worker that does not run it.
#[test]
fn one_that_yields_takes_from_others_in_the_end() {
    let pool = Arc::new(pool(2));
    let (hogs, let_go) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (inner, hogging, going) = (pool.clone(), hogs.clone(), let_go.clone());
    let hog = pool.spawn(move || {
        let done = going.clone();
        let task = inner.spawn(move || done.store(true, Relaxed));
        hogging.store(true, Relaxed);
        while !going.load(Relaxed) {
            std::hint::spin_loop();
        }
        task
    });
    while !hogs.load(Relaxed) {
        thread::yield_now();
    }
    pool.spawn(move || {
        while !let_go.load(Relaxed) {
            yield_now();
        }
    })
    .join()
    .expect("no panic");
    hog.join().expect("no panic").join().expect("no panic");
}

#[test]
fn panics_stay_in_their_fibers() {
    let pool = pool(1);
    let all: Vec<_> = (0..20)
        .map(|number| {
            pool.spawn(move || {
                yield_now();
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    yield_now();
                    assert!(number % 2 == 0, "odd");
                }));
                yield_now();
                assert!(number % 4 != 0, "by four");
                caught.is_err()
            })
        })
        .collect();
    for (number, fiber) in all.into_iter().enumerate() {
        let returned = fiber.join();
        assert_eq!(returned.is_err(), number % 4 == 0, "{number}");
        assert_eq!(returned.unwrap_or(false), number % 2 == 1, "{number}");
    }
}

/// A value that is dropped in a panic waits for a thread, and blocks the fiber's own thread
/// meanwhile: otherwise another fiber would be considered panicking.
#[test]
fn a_fiber_that_unwinds_does_not_leave_its_thread() {
    struct Waits<'a>(&'a Event, &'a AtomicBool);
    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            self.0.wait();
            yield_now();
            fiber::sleep(Duration::from_millis(1));
            assert!(!self.1.load(Relaxed), "another fiber has run");
        }
    }
    let (event, ran) = (Event::new(), AtomicBool::new(false));
    let pool = pool(1);
    thread::scope(|threads| {
        threads.spawn(|| {
            thread::sleep(Duration::from_millis(5));
            event.set();
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(|scope| {
                scope.spawn(|| {
                    let other = || {
                        assert!(!thread::panicking());
                        ran.store(true, Relaxed);
                    };
                    scope.spawn(other);
                    let _waits = Waits(&event, &ran);
                    panic!("unwinds");
                });
            });
        }));
        assert!(panicked.is_err());
    });
    assert!(ran.load(Relaxed));
}

#[test]
fn deadlines_pass_and_wakes_come_before_them() {
    let pool = pool(1);
    let event = Arc::new(Event::new());
    let began = Instant::now();
    let waits: Vec<_> = [7_u64, 1, 4, 30, 2]
        .into_iter()
        .map(|ms| {
            let event = event.clone();
            pool.spawn(move || {
                assert!(!event.wait_for(Duration::from_millis(ms)));
                assert!(began.elapsed() >= Duration::from_millis(ms));
                ms
            })
        })
        .collect();
    let sum: u64 = waits.into_iter().map(|wait| wait.join().expect("no panic")).sum();
    assert_eq!(sum, 44);
    let told = event.clone();
    let waits = pool.spawn(move || told.wait_for(Duration::from_secs(1 << 40)));
    event.set();
    assert!(waits.join().expect("no panic"));
}

/// If turns are long, deadlines are checked after each.
#[test]
fn deadlines_pass_beside_long_turns() {
    const SLEEPS: u32 = 20;
    let (turns, done) = (AtomicU32::new(0), AtomicBool::new(false));
    let pool = pool(1);
    let computes = || {
        while !done.load(Relaxed) {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(1) {}
            turns.fetch_add(1, Relaxed);
            yield_now();
        }
    };
    let mut late = 0;
    pool.scope(|scope| {
        scope.spawn(|| {
            (0..3).for_each(|_| scope.spawn(computes));
            for _ in 0..SLEEPS {
                let before = turns.load(Relaxed);
                // Over after one turn.
                fiber::sleep(Duration::from_micros(500));
                late += turns.load(Relaxed) - before;
            }
            done.store(true, Relaxed);
        });
    });
    assert!(late < 6 * SLEEPS, "{late} turns for {SLEEPS} sleeps");
}

#[test]
fn scopes_borrow_and_their_fibers_wait() {
    let pool = pool(2);
    let mut numbers = vec![0_u64; 500];
    let gate = Latch::new(500);
    pool.scope(|scope| {
        for (number, slot) in numbers.iter_mut().enumerate() {
            let gate = &gate;
            scope.spawn(move || {
                gate.count_down(1);
                // All fibers have stacks at the same time.
                gate.wait();
                *slot = number as u64;
            });
        }
    });
    assert_eq!(numbers.iter().sum::<u64>(), 499 * 500 / 2);
}

/// A fiber joins tasks and waits in scopes, of its own pool and of another pool.
#[test]
fn fibers_wait_for_tasks_of_their_own_and_of_other_pools() {
    let (one, other) = (Arc::new(pool(1)), Arc::new(Pool::new(1).expect("a pool")));
    let inner = (one.clone(), other.clone());
    let sum = one.spawn(move || {
        let (one, other) = inner;
        let own: u64 = (0..50).map(|n| one.spawn(move || n)).map(|it| it.join().unwrap()).sum();
        let there: u64 = (0..50).map(|n| other.spawn(move || n)).map(|it| it.join().unwrap()).sum();
        let mut scoped = [0; 10];
        one.scope(|scope| scoped.iter_mut().for_each(|it| scope.spawn(move || *it = 1)));
        other.scope(|scope| scoped.iter_mut().for_each(|it| scope.spawn(move || *it += 1)));
        own + there + scoped.iter().sum::<u64>() + one.run(|| 1) + other.run(|| 1)
    });
    assert_eq!(sum.join().expect("no panic"), 2 * 1225 + 20 + 2);
}

#[test]
fn forks_of_fibers_that_wait_are_their_own() {
    fn count(depth: u32, waits: bool) -> u64 {
        if depth == 0 {
            if waits {
                yield_now();
            }
            return 1;
        }
        let (left, right) = pool::join(|| count(depth - 1, waits), || count(depth - 1, !waits));
        left + right
    }
    let pool = Arc::new(pool(2));
    let all: Vec<_> = (0..8).map(|n| pool.spawn(move || count(10, n % 2 == 0))).collect();
    for count in all {
        assert_eq!(count.join().expect("no panic"), 1 << 10);
    }
}

/// If there is no room, a fiber waits for room, and does not run out of its stack.
#[test]
fn a_fiber_that_makes_more_than_there_is_room_for_waits() {
    let policy: BoxedPolicy<_> = "lifo".parse().expect("a policy");
    let pool = Arc::new(fibers(2).room(2).build_with(policy).expect("fibers"));
    let done = Arc::new(AtomicUsize::new(0));
    fn tree(
        pool: &Arc<Pool<BoxedPolicy<antiphon_linux::Linux>>>,
        done: &Arc<AtomicUsize>,
        left: u32,
    ) {
        done.fetch_add(1, Relaxed);
        for _ in 0..left {
            let (inner, done) = (pool.clone(), done.clone());
            drop(pool.spawn(move || tree(&inner, &done, left - 1)));
        }
    }
    tree(&pool, &done, 7);
    // 1 + 7 + 7·6 + … + 7!
    while done.load(Relaxed) < 13_700 {
        thread::yield_now();
    }
}

#[test]
fn who_blocks_has_another_thread_run_what_has_not_begun() {
    let pool = Arc::new(fibers(1).spares(1).build().expect("fibers"));
    let event = Arc::new(Event::new());
    let (waits, told) = (event.clone(), event.clone());
    let waiting = pool.spawn(move || waits.wait());
    let (ask, asked) = std::sync::mpsc::channel();
    let blocks = pool.spawn(move || {
        let got = pool::blocking(|| asked.recv());
        yield_now();
        told.set();
        got
    });
    pool.spawn(move || ask.send(42).expect("somebody listens")).join().expect("no panic");
    assert_eq!(blocks.join().expect("no panic"), Ok(42));
    waiting.join().expect("no panic");
}

#[test]
fn a_dropped_pool_waits_for_its_fibers() {
    let ended = Arc::new(AtomicUsize::new(0));
    let event = Arc::new(Event::new());
    let pool = pool(2);
    for number in 0..100 {
        let (ended, event) = (ended.clone(), event.clone());
        drop(pool.spawn(move || {
            if number == 0 {
                event.wait();
            } else {
                fiber::sleep(Duration::from_micros(number * 20));
            }
            ended.fetch_add(1, Relaxed);
        }));
    }
    let sets = thread::spawn(move || {
        thread::sleep(Duration::from_millis(10));
        event.set();
    });
    drop(pool);
    assert_eq!(ended.load(Relaxed), 100);
    sets.join().expect("no panic");
}

#[test]
fn identities_are_those_of_fibers() {
    let (pool, tries) = (pool(1), AtomicU32::new(0));
    let lock = antiphon::ReentrantMutex::new(Cell::new(0));
    let takes = || {
        let guard = lock.lock();
        let before = guard.get();
        // The other fibers arrive here, too, and have to wait.
        while tries.fetch_add(1, Relaxed) < 40 {
            yield_now();
        }
        lock.lock().set(before + 1);
        yield_now();
        assert_eq!(guard.get(), before + 1);
    };
    // Spawned by a fiber, so that they are in its worker's queue.
    pool.scope(|scope| scope.spawn(|| (0..4).for_each(|_| scope.spawn(takes))));
    assert_eq!(lock.lock().get(), 4);
}

/// Another task uses the fiber's stack afterwards.
#[test]
fn what_a_fiber_has_locked_and_forgotten_stays_locked() {
    let pool = pool(1);
    let lock = Arc::new(antiphon::ReentrantMutex::new(()));
    let locks = lock.clone();
    pool.spawn(move || std::mem::forget(locks.lock())).join().expect("no panic");
    assert!(!pool.spawn(move || lock.try_lock().is_some()).join().expect("no panic"));
}

#[test]
fn outside_of_fibers_these_are_calls_for_threads() {
    assert!(!fiber::is_fiber());
    yield_now();
    yield_soft();
    let began = Instant::now();
    fiber::sleep(Duration::from_millis(2));
    assert!(began.elapsed() >= Duration::from_millis(2));
    assert!(pool(1).spawn(fiber::is_fiber).join().expect("no panic"));
    assert!(!Pool::new(1).expect("a pool").spawn(fiber::is_fiber).join().expect("no panic"));
}

#[test]
fn sizes_of_stacks_that_cannot_be_are_refused() {
    // The third size is possible, but there is no memory for a single stack of it.
    for bytes in [0, 100, 1 << 50, usize::MAX] {
        // SAFETY: no pool is built, so no fiber runs.
        let refused = unsafe { Pool::builder().threads(1).fibers(bytes) }.build();
        let told = refused.expect_err("no such stack").to_string();
        assert!(told.contains("stack"), "{told}");
    }
}

/// Threads of pools come and go, and their mailboxes go to the next threads.
#[test]
fn pools_come_and_go() {
    let seen: HashSet<u64> = (0..50)
        .map(|number| {
            let pool = pool(2);
            let event = Arc::new(Event::new());
            let waits = event.clone();
            let waiting = pool.spawn(move || {
                waits.wait();
                number
            });
            event.set();
            waiting.join().expect("no panic")
        })
        .collect();
    assert_eq!(seen.len(), 50);
}

/// The memory of a burst of fibers is given back.
#[test]
fn stacks_of_a_burst_are_given_back() {
    const FIBERS: usize = 20_000;
    let resident = || {
        let told = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux has it");
        let line = told.lines().find(|line| line.starts_with("Anonymous:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<usize>().ok()).expect("a number")
    };
    let pool = fibers(1).room(FIBERS).build().expect("fibers");
    let open = Arc::new(Latch::new(1));
    let all: Vec<_> = (0..FIBERS)
        .map(|_| {
            let open = open.clone();
            pool.spawn(move || open.wait())
        })
        .collect();
    // The last fiber to begin: the others wait, or are about to.
    pool.spawn(yield_now).join().expect("no panic");
    let most = resident();
    open.count_down(1);
    all.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
    // At least three quarters of their memory is given back eventually.
    while resident() + 4 * FIBERS * 3 / 4 > most {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A fiber in a long task keeps its worker, but not its seat.
#[test]
fn what_has_not_begun_is_run_though_fibers_hog() {
    let builder = fibers(1).spares(1).patience(Duration::from_millis(2));
    let pool = Arc::new(builder.build().expect("fibers"));
    let (told, waits) = (Arc::new(AtomicBool::new(false)), Arc::new(Event::new()));
    let (hogs, event) = (told.clone(), waits.clone());
    let waiting = pool.spawn(move || event.wait());
    let hog = pool.spawn(move || {
        yield_now();
        while !hogs.load(Relaxed) {
            std::hint::spin_loop();
        }
        yield_now();
    });
    pool.spawn(move || told.store(true, Relaxed)).join().expect("no panic");
    hog.join().expect("no panic");
    waits.set();
    waiting.join().expect("no panic");
}

/// A fiber that computes lets runnable fibers run, and no more often than necessary.
#[test]
fn a_fiber_that_computes_has_others_run() {
    let pool = pool(1);
    let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (told, seen) = (stop.clone(), turns.clone());
    let computes = pool.spawn(move || {
        let mut steps = 0_u64;
        while !told.load(Relaxed) {
            steps += 1;
            fiber::checkpoint();
        }
        (steps, seen.load(Relaxed))
    });
    let others = pool.spawn(move || {
        for _ in 0..20 {
            turns.fetch_add(1, Relaxed);
            yield_now();
        }
        stop.store(true, Relaxed);
    });
    others.join().expect("no panic");
    let (steps, turns) = computes.join().expect("no panic");
    assert!(turns == 20 && steps > 20, "{steps} steps in {turns} turns");
    // Not a fiber: nothing happens.
    (0..5_000).for_each(|_| fiber::checkpoint());
}
