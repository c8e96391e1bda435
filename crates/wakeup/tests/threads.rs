//! A kernel whose CPUs are threads of `std`: threads that sleep at home on a CPU are woken one by
//! one and in batches, actions are posted and broadcast, and idle CPUs are claimed.

use std::cell::Cell;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Barrier, OnceLock};
use std::thread;

use antiphon_platform::{Atomic, Atomics};
use antiphon_wakeup::batch::Batch;
use antiphon_wakeup::broadcast::{Broadcasts, Seen};
use antiphon_wakeup::idle::IdleCpus;
use antiphon_wakeup::inbox::{self, Inbox, Linked};
use antiphon_wakeup::kick::{Home, wake, wake_all};
use antiphon_wakeup::machine::Machine;
use antiphon_wakeup::message;
use antiphon_wakeup::pending::Pending;
use antiphon_wakeup::run_queue::RunQueue;
use antiphon_wakeup::token;
use antiphon_wakeup::words::Words;

const CPUS: usize = 4;
const ROUNDS: usize = if cfg!(miri) { 20 } else { 2_000 };

type Link = inbox::Link<Words>;
type Token = <Words as Atomics>::U32;

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A thread of this kernel: it sleeps by its token, and runs for no time.
struct Task {
    link: Link,
    token: Token,
    cpu: usize,
    runs: AtomicUsize,
}

// SAFETY: the link is always the same, and of this entry alone.
unsafe impl Linked for Task {
    type Words = Words;

    fn link(&self) -> &Link {
        &self.link
    }
}

#[derive(Default)]
struct Cpu {
    thread: OnceLock<thread::Thread>,
    inbox: Inboxed,
    messaged: AtomicBool,
    interrupts: AtomicUsize,
}

struct Inboxed(Inbox<Task>);

impl Default for Inboxed {
    fn default() -> Self {
        Self(Inbox::NEW)
    }
}

#[derive(Default)]
struct Kernel([Cpu; CPUS]);

#[derive(Clone, Copy, PartialEq)]
enum Signal {
    Kick,
    Message,
}

impl Machine for Kernel {
    type Words = Words;
    type Cpu = usize;
    type Signal = Signal;

    const KICK: Signal = Signal::Kick;

    fn is_current(&self, cpu: usize) -> bool {
        OWN.get() == cpu
    }

    fn others(&self) -> usize {
        CPUS - 1
    }

    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    fn interrupt(&self, cpu: usize, signal: Signal) {
        let cpu = &self.0[cpu];
        cpu.interrupts.fetch_add(1, Relaxed);
        if signal == Signal::Message {
            // Release: the sender's past; pairs with the acquire of the receiver.
            cpu.messaged.store(true, Release);
        }
        cpu.thread.get().expect("it runs").unpark();
    }

    fn interrupt_others(&self, signal: Signal) {
        (0..CPUS).filter(|&cpu| !self.is_current(cpu)).for_each(|cpu| self.interrupt(cpu, signal));
    }

    fn halt(&self) {
        thread::park();
    }
}

impl Kernel {
    /// Runs `body` on each CPU at once.
    fn run(&self, body: impl Fn(usize) + Sync) {
        let start = Barrier::new(CPUS);
        thread::scope(|scope| {
            for own in 0..CPUS {
                let (start, body) = (&start, &body);
                scope.spawn(move || {
                    OWN.set(own);
                    self.0[own].thread.set(thread::current()).expect("once");
                    start.wait();
                    body(own);
                });
            }
        });
    }

    fn home(&self, cpu: usize) -> Home<'_, Self, Task> {
        Home { cpu, inbox: &self.0[cpu].inbox.0 }
    }

    fn interrupts(&self) -> usize {
        self.0.iter().map(|cpu| cpu.interrupts.load(Relaxed)).sum()
    }
}

/// CPU 0 wakes a task on each other CPU, by turns one after the other and together; each wake is
/// answered by one run. A lost wake-up would never end.
#[test]
fn tasks_run_once_for_each_wake() {
    let kernel = Kernel::default();
    let tasks: Vec<_> = (0..CPUS)
        .map(|cpu| Task { link: Link::NEW, token: Token::ZERO, cpu, runs: AtomicUsize::new(0) })
        .collect();
    tasks[1..].iter().for_each(|task| assert!(token::fall_asleep(&task.token)));
    kernel.run(|own| {
        if own > 0 {
            let mut queue = RunQueue::<Task>::NEW;
            while tasks[own].runs.load(Relaxed) < ROUNDS {
                // SAFETY: they were in the inbox, and live as long as the test.
                unsafe { queue.push_all(kernel.0[own].inbox.0.take()) };
                let Some(task) = queue.pop() else {
                    let mut woken = false;
                    kernel.0[own].inbox.0.halt(|| {
                        let token = &tasks[own].token;
                        let rests = token::rest(token);
                        kernel.halt();
                        woken = rests && token::rise(token);
                    });
                    if woken {
                        // SAFETY: TOKEN-3: its waker leaves it to this CPU.
                        unsafe { queue.push(&raw const tasks[own]) };
                    }
                    continue;
                };
                // SAFETY: tasks live as long as the test.
                let task = unsafe { &*task };
                assert!(token::wake_up(&task.token) && token::fall_asleep(&task.token));
                // Release: it sleeps again; pairs with the acquire below.
                task.runs.fetch_add(1, Release);
            }
            return;
        }
        for round in 0..ROUNDS {
            let place = |task: &Task| (kernel.home(task.cpu), std::ptr::from_ref(task));
            let sleepers = tasks[1..].iter().map(|task| (&task.token, move || place(task)));
            if round % 2 == 0 {
                // SAFETY: they live as long as the test.
                unsafe { wake_all::<_, _, _, CPUS>(&kernel, sleepers) };
            } else {
                // SAFETY: as above.
                sleepers.for_each(|(token, place)| unsafe { wake(&kernel, token, place) });
            }
            for task in &tasks[1..] {
                while task.runs.load(Acquire) == round {
                    thread::yield_now();
                }
            }
        }
    });
    assert!(tasks[1..].iter().all(|task| task.runs.load(Relaxed) == ROUNDS));
    assert!(kernel.interrupts() <= ROUNDS * (CPUS - 1));
}

/// Each CPU posts to the next one and broadcasts to all, and halts until it has run all that is
/// sent to it.
#[test]
fn each_message_is_seen() {
    let kernel = Kernel::default();
    let pending: [Pending<Words>; CPUS] = [const { Pending::NEW }; CPUS];
    let seen: [Seen<Words, 1>; CPUS] = [const { Seen::NEW }; CPUS];
    let batches: [Batch<Words>; CPUS] = [const { Batch::NEW }; CPUS];
    let broadcasts = Broadcasts::<Words, 1>::NEW;
    let posts: [AtomicUsize; CPUS] = [const { AtomicUsize::new(0) }; CPUS];
    kernel.run(|own| {
        let mut heard = 0;
        let mut posted = 0;
        let mut handle = |sent: bool| {
            batches[own].run(|_| {
                pending[own].drain(|action| {
                    assert_eq!(action, own);
                    posted += 1;
                });
                broadcasts.take(&seen[own], |_| heard += 1);
            });
            !sent || posted == 0 || heard < (CPUS - 1) * ROUNDS
        };
        let next = (own + 1) % CPUS;
        for _ in 0..ROUNDS {
            message::broadcast(&kernel, &broadcasts, || &seen[own], 0, Signal::Message);
            posts[next].fetch_add(1, Relaxed);
            message::post(&kernel, next, &pending[next], next, Signal::Message);
            handle(false);
        }
        while handle(true) {
            // Acquire: pairs with the release in `interrupt`.
            if !kernel.0[own].messaged.swap(false, Acquire) {
                kernel.halt();
            }
        }
        assert!(posted <= posts[own].load(Relaxed), "run more often than posted");
    });
}

/// Tasks that any CPU may run: each is run, and no more CPUs are interrupted than there are tasks.
#[test]
fn one_idle_cpu_is_woken_for_each_task() {
    let kernel = Kernel::default();
    let idle = IdleCpus::<Words, 1>::NEW;
    let (ready, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let take = || {
        let less = |left: usize| left.checked_sub(1);
        ready.fetch_update(AcqRel, Acquire, less).is_ok()
    };
    let claims = AtomicUsize::new(0);
    let wake_one = |own| {
        if let Some(cpu) = idle.claim(own) {
            claims.fetch_add(1, Relaxed);
            kernel.interrupt(cpu, Signal::Kick);
        }
    };
    let is_over = || done.load(Acquire) == ROUNDS;
    kernel.run(|own| {
        if own == 0 {
            for _ in 0..ROUNDS {
                ready.fetch_add(1, Release);
                wake_one(own);
            }
        }
        while !is_over() {
            if take() {
                if done.fetch_add(1, AcqRel) + 1 == ROUNDS {
                    kernel.interrupt_others(Signal::Kick);
                }
            } else {
                let has_more = || ready.load(Acquire) > 0;
                if idle.rest(&kernel, own, || has_more() || is_over()) && has_more() {
                    wake_one(own);
                }
            }
        }
    });
    assert_eq!(done.load(Relaxed), ROUNDS);
    // The last task's are for the end of the test.
    assert_eq!(kernel.interrupts(), claims.load(Relaxed) + CPUS - 1);
}

#[test]
fn the_nearest_idle_cpu_is_claimed_first() {
    let idle = IdleCpus::<Words, 2>::NEW;
    assert_eq!(idle.claim(0), None);
    [70, 3, 100].into_iter().for_each(|cpu| idle.enter(cpu));
    assert_eq!(idle.claim(90), Some(70));
    assert!(idle.leave(70), "it was claimed");
    assert!(!idle.leave(3), "it was not");
    assert_eq!(idle.claim(3), Some(100));
    assert_eq!(idle.claim(3), None);
}
