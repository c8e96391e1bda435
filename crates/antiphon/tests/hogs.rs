//! Tasks that are long, or block: others run meanwhile, and nothing is lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::fiber::STACK_BYTES;
use antiphon::pool::{
    self, Hog, JoinHandle, Pool,
    policy::{BoxedPolicy, Policy},
};
use antiphon_linux::Linux;
use antiphon_runtime::sched::{Others, Own};
use antiphon_sync::queue::{Blocks, Item, Stolen};

const PATIENCE: Duration = Duration::from_millis(10);
/// Longer than any task that should end sooner.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Hogs on the workers of the pool, until they are told to end. If that never comes, the test
/// fails.
struct Hogs {
    over: Arc<AtomicBool>,
    handles: Vec<JoinHandle<bool>>,
}

fn patient(threads: usize) -> pool::Builder {
    Pool::builder().threads(threads).patience(PATIENCE)
}

fn run_until(over: &AtomicBool) -> bool {
    let begun = Instant::now();
    while !over.load(Relaxed) && begun.elapsed() < FOR_EVER {
        thread::yield_now();
    }
    over.load(Relaxed)
}

impl Hogs {
    fn new<Y: Policy<Linux> + 'static>(pool: &Pool<Y>, hogs: usize) -> Self {
        let (over, began) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let hog = |_| {
            let (over, began) = (over.clone(), began.clone());
            pool.spawn(move || {
                began.fetch_add(1, Relaxed);
                run_until(&over)
            })
        };
        let handles = (0..hogs).map(hog).collect();
        while began.load(Relaxed) < hogs as u64 {
            thread::yield_now();
        }
        Self { over, handles }
    }

    /// Ends the hogs; checks that they have run until now.
    fn end(self) {
        self.over.store(true, Relaxed);
        for hog in self.handles {
            assert!(hog.join().unwrap(), "tasks have waited for a hog");
        }
    }
}

fn short_tasks_are_done<Y: Policy<Linux> + 'static>(pool: &Pool<Y>, tasks: u64) {
    let handles: Vec<_> = (0..tasks).map(|number| pool.spawn(move || number)).collect();
    let sum: u64 = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
    assert_eq!(sum, tasks * (tasks - 1) / 2);
}

#[test]
fn short_tasks_are_done_while_all_workers_are_in_long_ones() {
    let pool = patient(2).build().unwrap();
    let hogs = Hogs::new(&pool, 2);
    // They would run on this thread if there were no room.
    for _ in 0..10 {
        short_tasks_are_done(&pool, 1_000);
    }
    let stats = pool.stats();
    assert!(stats.hogs >= 2 && stats.longest_ns >= 10_000_000, "{stats:?}");
    hogs.end();
    short_tasks_are_done(&pool, 1_000);
}

/// A hog that has lost its seat, which no thread watches any more; and a hog that is a fiber.
#[test]
fn a_hog_is_seen_for_as_long_as_it_lasts() {
    // SAFETY: no fiber waits while it makes a thread-local.
    let fibers = unsafe { patient(1).spares(0).fibers(STACK_BYTES) };
    for builder in [patient(1).spares(1), fibers] {
        let pool = builder.build().unwrap();
        let hogs = Hogs::new(&pool, 1);
        let seen = |is: &dyn Fn(&Hog) -> bool| {
            let begun = Instant::now();
            loop {
                match &pool.hogs()[..] {
                    [hog] if is(hog) => return hog.clone(),
                    others => assert!(begun.elapsed() < FOR_EVER, "{others:?}"),
                }
            }
        };
        let hog = seen(&|_| true);
        assert!(hog.seen >= PATIENCE && hog.ago.is_zero(), "{hog:?}");
        thread::sleep(PATIENCE);
        let later = seen(&|_| true);
        assert!(later.seen >= hog.seen + PATIENCE && later.ago.is_zero(), "{hog:?}, {later:?}");
        hogs.end();
        let over = seen(&|hog| !hog.ago.is_zero());
        assert!(over.seen >= later.seen, "{later:?}, {over:?}");
    }
}

/// Two hogs at a time, more than there are backup threads: a thread that returns is the next backup
/// thread.
#[test]
fn threads_change_places_again_and_again() {
    let pool = Pool::builder().threads(2).patience(Duration::from_millis(1)).build().unwrap();
    for _ in 0..20 {
        let hogs = Hogs::new(&pool, 2);
        short_tasks_are_done(&pool, 100);
        hogs.end();
    }
}

/// The tasks that the hog itself has spawned are in its own queue.
fn what_a_hog_has_made_is_done<Y: Policy<Linux> + 'static>(policy: Y, name: &str) {
    let pool = patient(2).build_with(policy).unwrap();
    let pool: &'static Pool<Y> = Box::leak(Box::new(pool));
    let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (ends, counts) = (over.clone(), done.clone());
    let hog = pool.spawn(move || {
        for _ in 0..21 {
            let counts = counts.clone();
            drop(pool.spawn(move || counts.fetch_add(1, Relaxed)));
        }
        run_until(&ends)
    });
    let begun = Instant::now();
    while done.load(Relaxed) < 21 && begun.elapsed() < FOR_EVER {
        thread::yield_now();
    }
    assert_eq!(done.load(Relaxed), 21, "{name}");
    over.store(true, Relaxed);
    assert!(hog.join().unwrap(), "{name}");
}

#[test]
fn no_policy_leaves_tasks_to_a_hog() {
    let orders = ["fifo", "lifo", "adaptive", "lifo-slot", "stochastic", "switch", "reverse"];
    for order in orders {
        for spread in ["steal-half", "steal-one", "neighbours-1"] {
            let name = format!("{order}/{spread}");
            what_a_hog_has_made_is_done(name.parse::<BoxedPolicy<_>>().unwrap(), &name);
        }
    }
    what_a_hog_has_made_is_done(Keeps, "blocks that nobody steals");
}

/// Blocks of tasks, which no worker steals.
struct Keeps;

// SAFETY: tasks go into one queue each, and come out of queues.
unsafe impl Policy<Linux> for Keeps {
    type Queue = Blocks<Linux>;
    type State = ();

    fn queue(&self) -> Self::Queue {
        Blocks::new(64)
    }

    fn pop(&self, own: &Own<'_, Self::Queue>, (): &mut ()) -> Option<Item> {
        own.pop_front()
    }

    fn steal(&self, _: &Own<'_, Self::Queue>, (): &mut (), _: &Others<'_, Self::Queue>) -> Stolen {
        Stolen::Empty
    }
}

/// A hog without a seat spawns, waits, and forks.
#[test]
fn a_hog_that_has_lost_its_seat_is_served_by_others() {
    let pool: &'static Pool = Box::leak(Box::new(patient(1).build().unwrap()));
    let hog = pool.spawn(|| {
        let begun = Instant::now();
        while pool.stats().hogs == 0 && begun.elapsed() < FOR_EVER {
            thread::yield_now();
        }
        let joined = pool.spawn(|| 1).join().unwrap();
        let mut scoped = 0;
        pool.scope(|scope| scope.spawn(|| scoped = 2));
        let forked = pool::join(|| 3, || 4);
        joined + scoped + forked.0 + forked.1
    });
    assert_eq!(hog.join().unwrap(), 10);
}

#[test]
fn a_hog_may_panic() {
    let pool = Pool::builder().threads(2).patience(Duration::from_millis(1)).build().unwrap();
    let pool = Arc::new(pool);
    for _ in 0..8 {
        let of = pool.clone();
        let hog = pool.spawn(move || {
            let before = of.stats().hogs;
            let begun = Instant::now();
            while of.stats().hogs == before && begun.elapsed() < FOR_EVER {
                thread::yield_now();
            }
            panic!("of the hog");
        });
        assert_eq!(hog.join().unwrap_err().downcast_ref(), Some(&"of the hog"));
        short_tasks_are_done(&pool, 100);
    }
}

/// Each link waits for the next without the pool's knowledge; there are three threads.
#[test]
fn who_blocks_gives_its_seat_away() {
    let pool = Pool::builder().threads(1).spares(2).build().unwrap();
    let (first, firsts) = mpsc::channel();
    let (second, seconds) = mpsc::channel();
    let outer = pool.spawn(move || pool::blocking(move || firsts.recv().unwrap()));
    let inner = pool.spawn(move || {
        // The inner call has no seat to give away.
        let told: u32 = pool::blocking(|| pool::blocking(|| seconds.recv().unwrap()));
        first.send(told + 1).unwrap();
    });
    pool.spawn(move || second.send(1_u32).unwrap()).join().unwrap();
    inner.join().unwrap();
    assert_eq!(outer.join().unwrap(), 2);
    assert_eq!(pool.stats().hogs, 0);
    assert_eq!(pool::blocking(|| 5), 5, "no worker");
}

/// The default pool has no more threads, either.
#[test]
fn without_spares_or_patience_a_pool_has_no_more_threads() {
    tasks_wait(patient(1).spares(0).build().unwrap());
    tasks_wait(Pool::new(1).unwrap());
}

fn tasks_wait(pool: Pool) {
    let later = Arc::new(AtomicBool::new(false));
    let (says, hog) = (later.clone(), Hogs::new(&pool, 1));
    let task = pool.spawn(move || says.store(true, Relaxed));
    thread::sleep(Duration::from_millis(50));
    assert!(!later.load(Relaxed));
    hog.end();
    task.join().unwrap();
    assert_eq!(pool.stats().hogs, 0);
}
