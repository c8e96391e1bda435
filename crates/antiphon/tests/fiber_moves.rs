//! Fibers that move between threads after a wait, in pools built with `migrating`.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use antiphon::cancel::{Cancelled, Token};
use antiphon::channel::{self, Receiver, Sender};
use antiphon::fiber::{self, STACK_BYTES, yield_now, yield_soft};
use antiphon::net::UdpSocket;
use antiphon::pool::{self, Builder, Pool, policy::BoxedPolicy};
use antiphon::{Barrier, Condvar, Event, Latch, Mutex, ReentrantMutex, RwLock, Semaphore, promise};
use antiphon_linux::Linux;

type AnyPool = Pool<BoxedPolicy<Linux>>;

fn fibers(threads: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) }
}

fn moving(threads: usize) -> Builder {
    // SAFETY: no fiber keeps thread-local state across a wait: `here` asks for it each time.
    unsafe { fibers(threads).migrating() }
}

/// Returns the thread that the calling fiber runs on.
#[inline(never)]
fn here() -> ThreadId {
    thread::current().id()
}

/// Random numbers from a seed.
struct Lot(u64);

impl Lot {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

const FIBERS: usize = 48;
const STEPS: usize = 60;
const KINDS: u64 = 15;
const SEEDS: u64 = 3;
const POLICIES: [&str; 6] = ["lifo", "fifo", "lifo-slot", "stochastic", "adaptive", "fifo/blocks"];

/// Waits, and panics. A separate function, because catching panics uses a thread-local.
#[inline(never)]
fn panics(value: u64, after: Duration) {
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        fiber::sleep(after);
        std::panic::resume_unwind(Box::new(value));
    }));
    assert_eq!(panicked.expect_err("it does").downcast_ref(), Some(&value));
    assert!(!thread::panicking());
}

/// The objects that fibers of a run share.
struct Common {
    pool: AnyPool,
    /// Room for one value of each fiber: a fiber that has sent a value receives one.
    channel: (Sender<u64>, Receiver<u64>),
    count: Mutex<u64>,
    changed: Condvar,
    either: RwLock<u64>,
    permits: Semaphore,
    again: ReentrantMutex<()>,
    token: Token,
    silent: UdpSocket,
}

impl Common {
    fn new(pool: AnyPool) -> Self {
        Self {
            pool,
            channel: channel::bounded(FIBERS),
            count: Mutex::new(0),
            changed: Condvar::new(),
            either: RwLock::new(0),
            permits: Semaphore::new(2),
            again: ReentrantMutex::new(()),
            token: Token::new(),
            silent: UdpSocket::bind("127.0.0.1:0").expect("a port"),
        }
    }

    /// Runs one step of a fiber, a random kind of wait; returns its addition to `count`.
    fn step(&self, lot: &mut Lot) -> u64 {
        let (kind, value) = (lot.draw(KINDS), lot.draw(1 << 20));
        let short = Duration::from_micros(lot.draw(40));
        match kind {
            0 => {
                self.channel.0.send(value).expect("we have a receiver");
                self.channel.1.recv().expect("one for each that was sent");
            }
            1 => {
                // A guard moves with its fiber.
                let mut count = self.count.lock();
                yield_now();
                *count += 1;
                self.changed.notify_all();
                return 1;
            }
            2 => _ = self.changed.wait_for(&mut self.count.lock(), short),
            3 => {
                let before = *self.either.read();
                let mut either = self.either.write();
                fiber::sleep(short);
                *either = before + 1;
            }
            4 => {
                let _permit = self.permits.acquire();
                yield_now();
            }
            5 => {
                let _outer = self.again.lock();
                fiber::sleep(short);
                // The fiber holds it, on any thread.
                drop(self.again.lock());
            }
            6 => {
                let (promise, awaited) = promise::new();
                let child = self.pool.spawn(move || promise.fulfil(value));
                assert_eq!(awaited.wait(), Ok(value));
                child.join().expect("no panic");
            }
            7 => panics(value, short),
            8 => {
                let own = self.token.child_for(short);
                assert!(own.sleep(Duration::from_secs(3600)).is_err());
            }
            9 => {
                let (left, right) = pool::join(|| self.halves(10), || self.halves(10));
                assert_eq!(left + right, 20);
            }
            10 => assert_eq!(fiber::block_on(self.pool.spawn(move || value)).ok(), Some(value)),
            11 => self.pool.scope(|scope| (0..3).for_each(|_| scope.spawn(yield_now))),
            12 => yield_soft(),
            13 => {
                let mut socket = self.silent.try_clone().expect("a file");
                socket.set_token(Some(&self.token.child_for(short)));
                let error = socket.recv(&mut [0]).expect_err("nobody sends");
                assert!(Cancelled::is(&error), "{error}");
            }
            _ => fiber::checkpoint(),
        }
        0
    }

    /// Forks that wait.
    fn halves(&self, of: u64) -> u64 {
        if of < 2 {
            yield_now();
            return of;
        }
        let (left, right) = pool::join(|| self.halves(of / 2), || self.halves(of - of / 2));
        left + right
    }
}

/// Runs fibers with a seed; returns the threads that each has run on.
fn run(builder: Builder, policy: &str, seed: u64) -> Vec<HashSet<ThreadId>> {
    let policy: BoxedPolicy<_> = policy.parse().expect("a policy");
    let common = Arc::new(Common::new(builder.build_with(policy).expect("fibers")));
    let body = |me: u64| {
        let common = common.clone();
        move || {
            let mut lot = Lot((seed * FIBERS as u64 + me + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let (mut seen, mut added) = (Vec::new(), 0);
            for _ in 0..STEPS {
                added += common.step(&mut lot);
                seen.push(here());
            }
            (seen, added)
        }
    };
    let all = common.pool.spawn_many((0..FIBERS as u64).map(body));
    let (mut threads, mut added) = (Vec::new(), 0);
    for fiber in all {
        let (seen, own) = fiber.join().expect("no panic");
        added += own;
        threads.push(seen.into_iter().collect());
    }
    assert_eq!(*common.count.lock(), added);
    assert!(common.channel.1.is_empty());
    assert_eq!(common.permits.available_permits(), 2);
    // Fibers that have ended are not in the census.
    let census = common.pool.fibers(10, Duration::from_secs(10));
    let answers: Vec<_> = census.threads.iter().filter_map(|it| it.answer.as_ref()).collect();
    assert_eq!(answers.len(), census.threads.len(), "{census}");
    assert!(answers.iter().all(|it| it.waiting + it.ready + it.for_files == 0), "{census}");
    threads
}

#[test]
fn fibers_go_on_on_whichever_thread_takes_them() {
    for policy in POLICIES {
        let moved = (0..SEEDS).flat_map(|seed| run(moving(3), policy, seed));
        let moved = moved.filter(|threads| threads.len() > 1).count();
        assert!(moved > 0, "{policy}: none has moved");
    }
}

#[test]
fn fibers_of_other_pools_stay() {
    for policy in POLICIES {
        let threads = run(fibers(3), policy, 0);
        assert!(threads.iter().all(|threads| threads.len() == 1), "{threads:?}");
    }
}

/// One thread sets the fibers free; the other is the thread that all of them were on.
#[test]
fn one_goes_on_elsewhere_while_its_thread_is_busy() {
    let pool = moving(2).build().expect("fibers");
    let (free, busy) = (Latch::new(1), Event::new());
    let moved = AtomicUsize::new(0);
    pool.scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                let before = here();
                free.wait();
                // Until another thread has run one: then both threads take some.
                let began = Instant::now();
                while moved.load(Relaxed) == 0 && began.elapsed() < Duration::from_secs(60) {
                    yield_now();
                    moved.fetch_add(usize::from(here() != before), Relaxed);
                }
                busy.set();
            });
        }
        free.count_down(1);
    });
    assert!(busy.is_set() && moved.load(Relaxed) > 0);
}

/// A fiber that yields softly is in the run queue of its thread.
#[test]
fn one_that_yields_softly_stays_for_that() {
    let pool = moving(2).build().expect("fibers");
    pool.scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let before = here();
                    (0..10).for_each(|_| yield_soft());
                    assert_eq!(here(), before);
                    yield_now();
                }
            });
        }
    });
}

/// Under a policy that runs the newest task first, the fiber itself would run for ever.
#[test]
fn what_one_waits_for_by_yielding_gets_its_turn() {
    for threads in [1, 2] {
        let policy: BoxedPolicy<_> = "lifo".parse().expect("a policy");
        let pool = moving(threads).build_with(policy).expect("fibers");
        let turn = AtomicUsize::new(0);
        pool.scope(|scope| {
            for me in 0..3 {
                let turn = &turn;
                scope.spawn(move || {
                    for round in 0..50 {
                        while turn.load(Acquire) != 3 * round + me {
                            yield_now();
                        }
                        turn.fetch_add(1, Release);
                    }
                });
            }
        });
        assert_eq!(turn.load(Relaxed), 150);
    }
}

/// The fiber's thread has lost its seat when the fiber waits, and another thread resumes the fiber.
#[test]
fn one_that_blocks_goes_on_where_there_is_a_seat() {
    let pool = moving(1).spares(1).patience(Duration::from_millis(1)).build().expect("fibers");
    let (ask, asked) = std::sync::mpsc::channel();
    let go_on = Arc::new(Latch::new(1));
    let waits = {
        let go_on = go_on.clone();
        pool.spawn(move || {
            let said = pool::blocking(|| asked.recv());
            go_on.wait();
            said
        })
    };
    pool.spawn(move || ask.send(42)).join().expect("no panic").expect("it is awaited");
    go_on.count_down(1);
    assert_eq!(waits.join().expect("no panic"), Ok(42));
}

#[test]
fn a_dropped_pool_waits_for_fibers_that_are_queued_or_wait() {
    for round in 0..50 {
        let pool = moving(2).build().expect("fibers");
        let (go_on, ended) = (Arc::new(Latch::new(1)), Arc::new(AtomicUsize::new(0)));
        for number in 0..20 {
            let (go_on, ended) = (go_on.clone(), ended.clone());
            drop(pool.spawn(move || {
                if number % 2 == 0 {
                    go_on.wait();
                }
                (0..number + round % 3).for_each(|_| yield_now());
                ended.fetch_add(1, Relaxed);
            }));
        }
        go_on.count_down(1);
        drop(pool);
        assert_eq!(ended.load(Relaxed), 20);
    }
}

/// Stacks are so large that there are only a few: fibers that have begun need no new one.
#[test]
fn where_stacks_are_few_those_that_have_begun_go_on() {
    const HUGE: usize = 1 << 44;
    // SAFETY: as in `moving`.
    let builder = unsafe { Pool::builder().threads(2).fibers(HUGE).migrating() };
    let policy: BoxedPolicy<_> = "lifo".parse().expect("a policy");
    let pool = builder.build_with(policy).expect("one, at least");
    let ended = AtomicUsize::new(0);
    pool.scope(|scope| {
        for _ in 0..60 {
            scope.spawn(|| {
                assert!(fiber::is_fiber());
                fiber::sleep(Duration::from_micros(50));
                yield_now();
                ended.fetch_add(1, Relaxed);
            });
        }
    });
    assert_eq!(ended.load(Relaxed), 60);
}

/// The reactor belongs to the thread.
#[test]
fn one_that_waits_for_a_socket_goes_on_on_its_thread() {
    let moved: usize = (0..16).map(|_| moved_while_they_read()).sum();
    assert_eq!(moved, 0);
}

/// Returns how many times a fiber was on another thread after it had waited for a socket. All
/// fibers together accept, meet and read less often than the number of ready steps after which a
/// fiber yields (128).
fn moved_while_they_read() -> usize {
    use std::io::{Read, Write};
    const STREAMS: usize = 10;
    const EACH: u8 = 5;
    let pool = moving(2).build().expect("fibers");
    let listener = antiphon::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one");
    let (meet, moved) = (Barrier::new(STREAMS + 1), AtomicUsize::new(0));
    pool.scope(|scope| {
        scope.spawn(|| {
            for _ in 0..STREAMS {
                let (mut stream, _) = listener.accept().expect("a client");
                let (meet, moved) = (&meet, &moved);
                scope.spawn(move || {
                    for number in 0..EACH {
                        meet.wait();
                        let (mut byte, before) = ([0], here());
                        stream.read_exact(&mut byte).expect("as many");
                        assert_eq!(byte[0], number);
                        moved.fetch_add(usize::from(here() != before), Relaxed);
                        // Time for the other thread to take a fiber that may be taken.
                        let began = Instant::now();
                        while began.elapsed() < Duration::from_micros(20) {}
                    }
                });
            }
        });
        let connect = |_| std::net::TcpStream::connect(address).expect("it listens");
        let mut streams: Vec<_> = (0..STREAMS).map(connect).collect();
        for number in 0..EACH {
            meet.wait();
            while pool.fibers(0, Duration::from_secs(60)).waiting() < STREAMS {}
            for stream in &mut streams {
                stream.write_all(&[number]).expect("it is read");
            }
        }
    });
    moved.load(Relaxed)
}

#[test]
fn what_is_no_fiber_does_not_move() {
    // SAFETY: no pool is built.
    let error = unsafe { Pool::builder().threads(1).migrating() }.build().expect_err("no fibers");
    assert!(error.to_string().contains("fibers"), "{error}");
}

/// Each waiting fiber is reported once, on any thread.
#[test]
fn each_that_waits_is_told_once() {
    const WAIT: usize = 50;
    let pool = moving(3).build().expect("fibers");
    let (open, waits) = (Latch::new(1), AtomicUsize::new(0));
    pool.scope(|scope| {
        for number in 0..WAIT {
            let (open, waits) = (&open, &waits);
            scope.spawn(move || {
                (0..number % 7).for_each(|_| yield_now());
                waits.fetch_add(1, Relaxed);
                open.wait();
            });
        }
        while waits.load(Relaxed) < WAIT {
            thread::yield_now();
        }
        let census = loop {
            let census = pool.fibers(WAIT, Duration::from_secs(60));
            if census.waiting() >= WAIT {
                break census;
            }
        };
        // Opened before the checks: if one failed, the pool's drop would wait for the fibers.
        open.count_down(1);
        let places = census.places();
        assert_eq!(places.iter().map(|place| place.count).sum::<usize>(), WAIT, "{census}");
    });
}

/// Fibers meet threads at one barrier.
#[test]
fn threads_meet_fibers_that_move() {
    let pool = moving(2).build().expect("fibers");
    let meet = Barrier::new(4);
    pool.scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..200).for_each(|_| _ = meet.wait()));
        }
        (0..200).for_each(|_| _ = meet.wait());
    });
}
