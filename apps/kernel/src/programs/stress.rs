//! `stress`: tests the locks, waits and messages of the tree on this machine. Each part has a total
//! that must be exact; a lost wake-up shows as a run that does not end.
//!
//! `rounds=N` (1000 by default) is the number of rounds of each thread; `threads=N` (2) is the
//! number of threads on each CPU.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_metal::kernel::{cpu, schedule, thread};
use antiphon_metal::options::Options;
use antiphon_metal::x86::power::Outcome;
use antiphon_metal::{Metal, println};
use antiphon_platform::Platform;
use antiphon_runtime::message::{Actions, Mailbox, Message};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::{Barrier, Condvar, Event};

use crate::programs::broadcasts;
use crate::programs::herds;
use crate::programs::parts::Parts;
use crate::programs::percpu;
use crate::programs::prompt::Prompt;

/// The size of each part.
#[derive(Clone, Copy)]
struct Size {
    rounds: u64,
    /// Number of threads on each CPU.
    threads: u32,
}

/// A part: returns its total, and the total that it must have.
type Part = fn(Size) -> (u64, u64);

pub fn run(options: Options<'_>) -> Outcome {
    let sizes = (options.number("rounds", 1000), options.number("threads", 2));
    let (Ok(rounds), Ok(threads)) = sizes else {
        println!("`rounds` and `threads` are numbers");
        return Outcome::Misused;
    };
    let size = Size { rounds, threads: threads.clamp(1, 64) as u32 };
    let parts: [(&str, Part); 10] = [
        ("mutex", mutex),
        ("condvar", condvar),
        ("event", event),
        ("barrier", barrier),
        ("sleep", sleep),
        ("mailbox", mailbox),
        ("prompt", prompt),
        ("herds", |size| herds::run(size.rounds)),
        ("percpu", |size| percpu::run(size.rounds, size.threads)),
        ("broadcast", |size| broadcasts::run(size.rounds)),
    ];
    let mut counted = Parts::NONE;
    for (name, part) in parts {
        counted.add(name, part(size));
    }
    counted.outcome()
}

/// Runs `body` in `size.threads` threads of each CPU, with the number of the thread; returns the
/// sum of what they return.
fn everywhere(size: Size, body: impl Fn(u64) -> u64 + Send + Sync + Clone + 'static) -> u64 {
    let count = cpu::count();
    let handles: Vec<_> = (0..count * size.threads)
        .map(|number| {
            let body = body.clone();
            thread::spawn_on(number % count, move || body(number.into()))
                .expect("memory for a thread")
        })
        .collect();
    handles.into_iter().map(thread::JoinHandle::join).sum()
}

/// Number of threads on all CPUs.
fn members(size: Size) -> u64 {
    u64::from(cpu::count() * size.threads)
}

struct Guarded<T> {
    lock: ShflMutex<Metal>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed only with the lock held.
unsafe impl<T: Send> Sync for Guarded<T> {}
// SAFETY: the value is accessed only with the lock held, and is `Send`.
unsafe impl<T: Send> Send for Guarded<T> {}

impl<T> Guarded<T> {
    fn new(value: T) -> Self {
        Self { lock: ShflMutex::NEW, value: UnsafeCell::new(value) }
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.lock.lock();
        // SAFETY: the lock is held.
        let result = f(unsafe { &mut *self.value.get() });
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        result
    }
}

/// All threads add to one number; some yield with the lock held, so that others have to park.
fn mutex(size: Size) -> (u64, u64) {
    let total = Arc::new(Guarded::new(0_u64));
    let ours = total.clone();
    everywhere(size, move |number| {
        for round in 0..size.rounds {
            ours.with(|total| {
                let seen = *total;
                if (round + number) % 64 == 0 {
                    schedule::yield_now();
                }
                *total = seen + 1;
            });
        }
        0
    });
    (total.with(|total| *total), members(size) * size.rounds)
}

/// A buffer of four places between threads that put numbers in and threads that take them out.
struct Buffer {
    items: Guarded<Vec<u64>>,
    filled: Condvar<Metal>,
    emptied: Condvar<Metal>,
}

impl Buffer {
    const PLACES: usize = 4;

    fn change<R>(
        &self,
        wait_for: &Condvar<Metal>,
        tell: &Condvar<Metal>,
        mut f: impl FnMut(&mut Vec<u64>) -> Option<R>,
    ) -> R {
        self.items.lock.lock();
        loop {
            // SAFETY: the lock is held, here and after each wait.
            if let Some(result) = f(unsafe { &mut *self.items.value.get() }) {
                // SAFETY: the lock is held.
                unsafe { self.items.lock.unlock() };
                tell.notify_one();
                return result;
            }
            // SAFETY: the lock is held, and the wait acquires it again.
            unsafe { wait_for.wait_with(&self.items.lock, None) };
        }
    }

    fn put(&self, item: u64) {
        self.change(&self.emptied, &self.filled, |items| {
            (items.len() < Self::PLACES).then(|| items.push(item))
        });
    }

    fn take(&self) -> u64 {
        self.change(&self.filled, &self.emptied, Vec::pop)
    }
}

/// Half of the threads put numbers into a small buffer, the other half take them out.
fn condvar(size: Size) -> (u64, u64) {
    let buffer = Arc::new(Buffer {
        items: Guarded::new(Vec::with_capacity(Buffer::PLACES)),
        filled: Condvar::NEW,
        emptied: Condvar::NEW,
    });
    let even = Size { threads: size.threads * 2, ..size };
    let total = everywhere(even, move |number| {
        if number % 2 == 0 {
            (0..size.rounds).for_each(|round| buffer.put(number * size.rounds + round));
            return 0;
        }
        (0..size.rounds).map(|_| buffer.take()).sum()
    });
    let putters = members(size);
    let numbers = (0..putters).map(|putter| putter * 2 * size.rounds * size.rounds);
    (total, numbers.sum::<u64>() + putters * size.rounds * (size.rounds - 1) / 2)
}

/// Pairs of threads set an event for each other, in turns.
fn event(size: Size) -> (u64, u64) {
    let pairs: Vec<[Event<Metal>; 2]> =
        (0..members(size)).map(|_| [Event::NEW, Event::NEW]).collect();
    let pairs = Arc::new(pairs);
    let even = Size { threads: size.threads * 2, ..size };
    let total = everywhere(even, move |number| {
        let [one, other] = &pairs[number as usize / 2];
        let (set, wait) = if number % 2 == 0 { (one, other) } else { (other, one) };
        for _ in 0..size.rounds {
            if number % 2 == 0 {
                set.set();
                wait.wait();
            } else {
                wait.wait();
                set.set();
            }
        }
        size.rounds
    });
    (total, members(even) * size.rounds)
}

/// All threads meet; each round has one leader.
fn barrier(size: Size) -> (u64, u64) {
    let barrier = Arc::new(Barrier::<Metal>::new(members(size) as u32));
    let rounds = size.rounds / 8 + 1;
    let led = everywhere(size, move |_| (0..rounds).filter(|_| barrier.wait()).count() as u64);
    (led, rounds)
}

/// Threads sleep for some microseconds each, and none wakes early.
fn sleep(size: Size) -> (u64, u64) {
    use antiphon_metal::x86::clock::now_ns;
    let rounds = size.rounds / 64 + 1;
    let in_time = everywhere(size, move |number| {
        let slept = |round: u64| {
            let (began, ns) = (now_ns(), 10_000 * (1 + (number + round) % 5));
            thread::sleep_ns(ns);
            now_ns() >= began + ns
        };
        (0..rounds).filter(|&round| slept(round)).count() as u64
    });
    (in_time, members(size) * rounds)
}

/// The messages of a receiver: the number from each sender, and whether each came in its turn.
struct Received {
    from: Vec<AtomicU64>,
    disordered: AtomicU64,
}

impl Received {
    fn new(senders: u64) -> Arc<Self> {
        let from = (0..senders).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { from, disordered: AtomicU64::new(0) })
    }

    /// Counts message number `turn` of `sender`.
    fn count(&self, sender: u64, turn: u64) {
        // Relaxed: one owner delivers; joins order what is read at the end.
        let seen = self.from[sender as usize].fetch_add(1, Relaxed);
        if seen != turn {
            self.disordered.fetch_add(1, Relaxed);
        }
    }

    /// Number of messages received; 0 if any came out of turn.
    fn total(&self) -> u64 {
        let total = self.from.iter().map(|from| from.load(Relaxed)).sum();
        if self.disordered.load(Relaxed) == 0 { total } else { 0 }
    }
}

/// A sender's receivers, chosen at random each round, with the number of messages to each.
struct Choice(Vec<u64>);

impl Choice {
    fn next(&mut self) -> (usize, u64) {
        let receiver = Metal::random() as usize % self.0.len();
        let turn = self.0[receiver];
        self.0[receiver] += 1;
        (receiver, turn)
    }
}

/// Each CPU has a thread with a mailbox, in which it sleeps; all threads post to all, and wait when
/// there is no room.
fn mailbox(size: Size) -> (u64, u64) {
    let count = u64::from(cpu::count());
    let actions = Actions::<Metal>::new(count as usize);
    let senders = members(size);
    let posted = senders * size.rounds;
    let delivered = Arc::new(AtomicU64::new(0));
    let (mut all, mut owners, mut received) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        let here = Received::new(senders);
        let (ours, counted) = (here.clone(), delivered.clone());
        let action = actions
            .register(move |[sender, turn, _]| {
                ours.count(sender, turn);
                counted.fetch_add(1, Relaxed);
            })
            .expect("an action for each CPU");
        let mut mailbox = Mailbox::<Metal>::new(&actions, 64);
        all.push((mailbox.sender(), action));
        received.push(here);
        owners.push((number, move || while mailbox.wait(None).strays == 0 {}));
    }
    let owners: Vec<_> = owners
        .into_iter()
        .map(|(number, body)| thread::spawn_on(number as u32, body).expect("memory for a thread"))
        .collect();
    let all = Arc::new(all);
    let senders_all = all.clone();
    everywhere(size, move |number| {
        let mut choice = Choice(alloc::vec![0; senders_all.len()]);
        for _ in 0..size.rounds {
            let (receiver, turn) = choice.next();
            let (sender, action) = &senders_all[receiver];
            let message = Message { action: *action, payload: [number, turn, 0] };
            sender.post_wait(message, None).expect("the mailbox is open");
        }
        0
    });
    while delivered.load(Relaxed) < posted {
        thread::sleep_ns(20_000);
    }
    // A message for an unregistered action ends each owner.
    for (sender, action) in all.iter() {
        actions.unregister(*action).expect("it was registered");
        let message = Message { action: *action, payload: [0; 3] };
        sender.post_wait(message, None).expect("the mailbox is open");
    }
    owners.into_iter().for_each(thread::JoinHandle::join);
    (received.iter().map(|here| here.total()).sum(), posted)
}

/// Each CPU has a mailbox whose messages run in interrupts; all threads post to all, and try again
/// when there is no room.
fn prompt(size: Size) -> (u64, u64) {
    let count = cpu::count();
    let actions = Actions::<Metal>::new(count as usize);
    let senders = members(size);
    let mut all = Vec::new();
    let mut received = Vec::new();
    for number in 0..count {
        let here = Received::new(senders);
        let ours = here.clone();
        let action = actions
            .register(move |[sender, turn, _]| ours.count(sender, turn))
            .expect("an action for each CPU");
        all.push((Prompt::open(number, &actions, 64).expect("an action of the kernel"), action));
        received.push(here);
    }
    let all = Arc::new(all);
    everywhere(size, move |number| {
        let mut choice = Choice(alloc::vec![0; all.len()]);
        for _ in 0..size.rounds {
            let (receiver, turn) = choice.next();
            let (sender, action) = &all[receiver];
            let message = Message { action: *action, payload: [number, turn, 0] };
            while sender.post(message).is_err() {
                core::hint::spin_loop();
                schedule::yield_now();
            }
        }
        0
    });
    let total = || received.iter().map(|here| here.total()).sum::<u64>();
    let posted = senders * size.rounds;
    let mut looks = 0;
    while total() < posted && looks < 1000 {
        thread::sleep_ns(20_000);
        looks += 1;
    }
    (total(), posted)
}
