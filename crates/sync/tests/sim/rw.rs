//! Tests of the readers-writer lock on simulated machines: which threads are served, and the costs;
//! deterministic.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_platform::Budget;
use antiphon_sim::{Machine, Outcome, OwnLine, Sim, Simulation, count, finished, now, think, work};
use antiphon_sync::lock::{Form, Recursive, RwForm, ShflRwLock, Standard};
use antiphon_sync::lock::{GroupReaders, GroupWriters};
use antiphon_sync::policy::{None, Numa, Policy};

type Lock<Q = Numa, F = Standard> = ShflRwLock<Sim, Q, F>;

fn read<Q: Policy, F: RwForm>(lock: &Lock<Q, F>) {
    assert_eq!(lock.read(), Ok(()));
}

fn unlock_read<Q: Policy, F: RwForm>(lock: &Lock<Q, F>) {
    // SAFETY: each caller has acquired it for reading.
    unsafe { lock.unlock_read() }
}

fn unlock_write<Q: Policy, F: RwForm>(lock: &Lock<Q, F>) {
    // SAFETY: each caller has acquired it for writing.
    unsafe { lock.unlock_write() }
}

/// The state that a machine's threads share: one lock, and their counts.
struct Shared<Q: Policy, F: RwForm> {
    lock: OwnLine<Lock<Q, F>>,
    readers: Cell<u64>,
    writers: Cell<u64>,
}

/// `threads` threads, of which the first `writers` write, the others read, repeatedly.
fn run<Q: Policy, F: RwForm>(
    machine: Machine,
    threads: usize,
    writers: usize,
    away_ns: u64,
    limit_ns: u64,
) -> Outcome {
    let shared = Rc::new(Shared::<Q, F> {
        lock: OwnLine(Lock::NEW),
        readers: Cell::new(0),
        writers: Cell::new(0),
    });
    Simulation::new(machine, 11)
        .threads(threads, move |number| {
            let Shared { lock, readers, writers: writing } = &*shared;
            while !finished() {
                if number < writers {
                    lock.0.write();
                    assert_eq!((readers.get(), writing.replace(1)), (0, 0), "not alone");
                    work(500);
                    assert_eq!((readers.get(), writing.replace(0)), (0, 1), "not alone");
                    unlock_write(&lock.0);
                } else {
                    read(&lock.0);
                    readers.set(readers.get() + 1);
                    assert_eq!(writing.get(), 0, "beside a writer");
                    work(2_000);
                    assert_eq!(writing.get(), 0, "beside a writer");
                    readers.set(readers.get() - 1);
                    unlock_read(&lock.0);
                }
                count();
                think(away_ns);
            }
        })
        .run(limit_ns)
        .unwrap_or_else(|stuck| panic!("{stuck}"))
}

#[test]
fn everybody_is_served() {
    let machine = || Machine::two_sockets().shape(2, 4);
    for (threads, writers) in [(2, 1), (8, 1), (8, 4), (8, 7), (24, 2), (24, 22)] {
        // Three threads to a core: a few backstops, for waiters that were overtaken until then.
        let limit_ns = if threads > 8 { 300_000_000 } else { 10_000_000 };
        let outcome = run::<Numa, Standard>(machine(), threads, writers, 200, limit_ns);
        assert!(outcome.operations.iter().all(|&count| count > 0), "{:?}", outcome.operations);
    }
}

/// RW-13, LINGER-4: with twice as many threads as CPUs the lock does more, because no waiter spins
/// to the end when another thread wants its CPU, and readers that have slept come in together.
#[test]
fn twice_as_many_threads_as_cpus_do_more() {
    let run = |threads| {
        let machine = Machine::two_sockets();
        run::<Numa, Standard>(machine, threads, threads / 10, 1_000, 5_000_000).total_operations()
    };
    let share = run(56) as f64 / run(28) as f64;
    // It was 1.17 when each spun to the end, and woke one reader.
    assert!(share > 1.6, "{share:.2}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = || run::<Numa, Standard>(Machine::eight_sockets(), 48, 6, 200, 300_000);
    assert_eq!(once(), once());
}

/// Defect g: readers whose sections overlap without end starve a writer. In the form that lets
/// readers pass, this happens.
#[test]
fn readers_starve_no_writer() {
    let share =
        |outcome: Outcome| outcome.operations[0] as f64 / (outcome.total_operations() as f64 / 8.0);
    let machine = || Machine::two_sockets().shape(2, 4);
    let fair = share(run::<Numa, Standard>(machine(), 8, 1, 0, 20_000_000));
    let passed = share(run::<Numa, Recursive>(machine(), 8, 1, 0, 20_000_000));
    assert!(fair > 0.3, "the writer has {fair} of its share");
    assert!(passed < 0.1, "readers don't pass: the writer has {passed} of its share");
}

/// A reader that comes back at once, among writers that also do: it is passed over for as long as a
/// head's patience lasts, then the lock is reserved for it. So it reads at least once in two such
/// periods, however fast the writers are.
#[test]
fn writers_starve_no_reader() {
    const LIMIT_NS: u64 = 20_000_000;
    let outcome = run::<Numa, Standard>(Machine::two_sockets().shape(2, 2), 4, 3, 0, LIMIT_NS);
    let least = LIMIT_NS / (2 * u64::from(<Standard as Form>::PATIENCE_NS));
    assert!(outcome.operations[3] >= least, "{:?}, of {least}", outcome.operations);
}

/// A locked access and a load each way, before contention and after it.
#[test]
fn an_idle_lock_costs_two_locked_accesses() {
    let machine = Machine { light: false, ..Machine::two_sockets() }.without_jitter();
    let most = 2 * (machine.rmw_ns + machine.hit_ns);
    let shared = Rc::new((OwnLine(Lock::<Numa>::NEW), Cell::new(0)));
    let outcome = Simulation::new(machine.shape(1, 4), 3)
        .threads(4, move |number| {
            let (lock, over) = (&shared.0.0, &shared.1);
            let price = |begin: &dyn Fn(), end: &dyn Fn()| {
                begin();
                end();
                let begun = now();
                begin();
                end();
                now() - begun
            };
            let check = || {
                let reads = price(&|| read(lock), &|| unlock_read(lock));
                let writes = price(&|| lock.write(), &|| unlock_write(lock));
                assert!(reads <= most && writes <= most, "{reads} and {writes} ns");
            };
            if number == 0 {
                check();
            }
            work(10_000);
            for round in 0..100 {
                if (round + number) % 2 == 0 {
                    read(lock);
                    work(100);
                    unlock_read(lock);
                } else {
                    lock.write();
                    work(100);
                    unlock_write(lock);
                }
            }
            over.set(over.get() + 1);
            if number == 0 {
                while over.get() < 4 {
                    work(1_000);
                }
                check();
            }
        })
        .run(0);
    assert!(outcome.is_ok(), "{:?}", outcome.err());
}

/// Waiters that spin, and so have time to sort; groups of `GROUP`.
struct Awake<const GROUP: u32>;

impl<const GROUP: u32> Form for Awake<GROUP> {
    const GROUP: u32 = GROUP;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(10_000_000);
    const HEAD_SPIN: Budget = Budget::ns(10_000_000);
    const LINGER: Budget = Budget::NONE;
}

impl<const GROUP: u32> RwForm for Awake<GROUP> {}

/// The result of a run with queued waiters.
#[derive(Default)]
struct Served {
    /// The threads that came in, in order.
    order: Vec<usize>,
    /// The number of readers that are in, and the largest such number.
    inside: u64,
    together: u64,
}

impl Served {
    fn enter(&mut self, reader: usize) {
        self.order.push(reader);
        self.inside += 1;
        self.together = self.together.max(self.inside);
    }
}

/// Waiters 1, 2, 3 and so on, of which the even ones read and the others write, queue at a lock
/// that is held until all of them wait.
fn serve<Q: Policy, const GROUP: u32>(waiters: usize) -> Served {
    let shared = Rc::new((OwnLine(Lock::<Q, Awake<GROUP>>::NEW), RefCell::new(Served::default())));
    let result = Rc::clone(&shared);
    let machine = Machine::two_sockets().shape(1, waiters as u32 + 1).without_jitter();
    let outcome = Simulation::new(machine, 5)
        .threads(waiters + 1, move |number| {
            let (lock, served) = (&shared.0.0, &shared.1);
            work(10_000 * number as u64);
            if number == 0 {
                lock.write();
                work(10_000 * (waiters as u64 + 5));
                unlock_write(lock);
            } else if number % 2 == 1 {
                lock.write();
                served.borrow_mut().order.push(number);
                work(20_000);
                unlock_write(lock);
            } else {
                read(lock);
                served.borrow_mut().enter(number);
                work(20_000);
                served.borrow_mut().inside -= 1;
                unlock_read(lock);
            }
        })
        .run(0);
    assert!(outcome.is_ok(), "{:?}", outcome.err());
    result.1.take()
}

/// Returns the longest row of waiters of one kind, and the largest number of later waiters that
/// overtook any waiter.
fn rows(order: &[usize]) -> (usize, usize) {
    let row = order.chunk_by(|one, next| one % 2 == next % 2).map(<[usize]>::len).max();
    let overtaken = order
        .iter()
        .enumerate()
        .map(|(place, waiter)| order[..place].iter().filter(|earlier| *earlier > waiter).count());
    (row.unwrap_or(0), overtaken.max().unwrap_or(0))
}

/// `000_…`, "RWlock: Group writers together".
#[test]
fn waiters_of_a_kind_are_served_together() {
    const WAITERS: usize = 21;
    let plain = serve::<None, 100>(WAITERS);
    assert_eq!(plain.order, (1..=WAITERS).collect::<Vec<_>>(), "in order of coming");
    assert_eq!((rows(&plain.order), plain.together), ((1, 0), 1));

    let readers = serve::<GroupReaders, 100>(WAITERS);
    // The head sorts, and is at first not a reader.
    assert_eq!(readers.order[..3], [1, 2, 4]);
    assert_eq!(readers.together, 10, "all readers are in at a time");

    let writers = serve::<GroupWriters, 100>(WAITERS);
    assert_eq!(writers.order[..3], [1, 2, 3]);
    // QUEUE-2: the last of all, a writer too, is left where it is.
    assert_eq!(writers.order[2..11], [3, 5, 7, 9, 11, 13, 15, 17, 19], "one after the other");
    // Sorting one kind, whichever it is, sorts the other.
    assert_eq!(writers.together, 9);
}

/// INV-5 limits how many are overtaken: three waiters of each kind come in, and then the other
/// kind.
#[test]
fn a_group_of_a_kind_ends() {
    for served in [serve::<GroupReaders, 3>(21), serve::<GroupWriters, 3>(21)] {
        assert_eq!(rows(&served.order), (3, 2), "{:?}", served.order);
        assert_eq!(served.together, 3);
    }
    let endless = serve::<GroupReaders, 100>(21);
    assert!(rows(&endless.order).1 > 5, "{:?}", endless.order);
}
