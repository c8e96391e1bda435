//! A kernel whose CPUs are threads of `std`, with one waiter each: a broadcast wakes all, a
//! notification one, and no more CPUs are interrupted than have waiters.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Barrier, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_wakeup::condvar::{self, Threads, Waiters};
use antiphon_wakeup::machine::Machine;
use antiphon_wakeup::words::Words;

const CPUS: usize = 4;
const ROUNDS: usize = if cfg!(miri) { 20 } else { 2_000 };

type Condvar = condvar::Condvar<Words, 1>;

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
}

struct Cpu {
    thread: OnceLock<thread::Thread>,
    notified: AtomicBool,
    interrupts: AtomicUsize,
    waiters: UnsafeCell<Waiters<Words, usize>>,
    /// Whether its thread was woken. Only that thread uses it.
    woken: Cell<bool>,
}

struct Kernel([Cpu; CPUS]);

// SAFETY: a CPU's list and cell are used by its thread only.
unsafe impl Sync for Kernel {}

impl Machine for Kernel {
    type Words = Words;
    type Cpu = usize;
    type Signal = ();

    const KICK: () = ();

    fn is_current(&self, cpu: usize) -> bool {
        OWN.get() == cpu
    }

    fn others(&self) -> usize {
        CPUS - 1
    }

    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    fn interrupt(&self, cpu: usize, (): ()) {
        let cpu = &self.0[cpu];
        cpu.interrupts.fetch_add(1, Relaxed);
        // Release: the sender's past; pairs with the acquire in `sleep`.
        cpu.notified.store(true, Release);
        cpu.thread.get().expect("it runs").unpark();
    }

    fn interrupt_others(&self, (): ()) {
        (0..CPUS).filter(|&cpu| !self.is_current(cpu)).for_each(|cpu| self.interrupt(cpu, ()));
    }

    fn halt(&self) {
        thread::park();
    }
}

// SAFETY: a CPU is a thread of `std`, and has its list for itself: its handler runs in `sleep`.
unsafe impl Threads for Kernel {
    type Thread = usize;
    type Deadline = Instant;

    const NOTIFY: () = ();

    fn number(&self) -> usize {
        OWN.get()
    }

    fn numbers(&self) -> usize {
        CPUS
    }

    fn cpu(&self, number: usize) -> usize {
        number
    }

    unsafe fn waiters(&self) -> &mut Waiters<Words, usize> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0[OWN.get()].waiters.get() }
    }

    fn running(&self) -> usize {
        OWN.get()
    }

    fn sleep(&self, deadline: Option<Instant>) -> bool {
        let cpu = &self.0[OWN.get()];
        loop {
            // Acquire: pairs with the release in `interrupt`.
            if cpu.notified.swap(false, Acquire) {
                // SAFETY: there are no interrupts but this one.
                unsafe { condvar::handle(self) };
            }
            if cpu.woken.replace(false) {
                return true;
            }
            match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.halt(),
                Some(Duration::ZERO) => return false,
                Some(left) => thread::park_timeout(left),
            }
        }
    }

    fn wake(&self, thread: usize) {
        assert_eq!(thread, OWN.get(), "a thread of this CPU");
        self.0[thread].woken.set(true);
    }
}

impl Kernel {
    fn new() -> Self {
        Self(std::array::from_fn(|_| Cpu {
            thread: OnceLock::new(),
            notified: AtomicBool::new(false),
            interrupts: AtomicUsize::new(0),
            waiters: UnsafeCell::new(Waiters::NEW),
            woken: Cell::new(false),
        }))
    }

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

    fn interrupts(&self) -> usize {
        self.0.iter().map(|cpu| cpu.interrupts.load(Relaxed)).sum()
    }

    /// Waits with the mutex held; returns it, and whether the caller was notified.
    fn wait<'a, T>(
        &self,
        condvar: &Condvar,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, T>, bool) {
        let was_notified = condvar.wait(self, deadline, || drop(guard));
        (mutex.lock().expect("no one panics"), was_notified)
    }
}

/// CPU 0 broadcasts each round when all others wait: each wait ends once.
#[test]
fn a_broadcast_ends_each_wait_once() {
    let (kernel, condvar) = (Kernel::new(), Condvar::NEW);
    // The round, and the number of waits that have begun.
    let state = Mutex::new((0, 0));
    let ended = AtomicUsize::new(0);
    kernel.run(|own| {
        for round in 1..=ROUNDS {
            let mut held = state.lock().expect("no one panics");
            if own > 0 {
                held.1 += 1;
                while held.0 < round {
                    let (again, was_notified) = kernel.wait(&condvar, &state, held, None);
                    assert!(was_notified);
                    held = again;
                    ended.fetch_add(1, Relaxed);
                }
                continue;
            }
            while held.1 < round * (CPUS - 1) {
                drop(held);
                thread::yield_now();
                held = state.lock().expect("no one panics");
            }
            held.0 = round;
            drop(held);
            condvar.notify_all(&kernel);
        }
    });
    assert_eq!(ended.load(Relaxed), ROUNDS * (CPUS - 1));
    assert_eq!(kernel.interrupts(), ROUNDS * (CPUS - 1));
}

/// CPU 0 announces items one by one; of the others, some give up and come back. Each item is taken,
/// and there are no more interrupts than announcements.
#[test]
fn a_notification_is_not_lost_though_others_give_up() {
    let (kernel, condvar) = (Kernel::new(), Condvar::NEW);
    let left = Mutex::new(Some(0_usize));
    let taken = AtomicUsize::new(0);
    kernel.run(|own| {
        if own == 0 {
            for _ in 0..ROUNDS {
                *left.lock().expect("no one panics").as_mut().expect("not over") += 1;
                condvar.notify_one(&kernel);
            }
            while taken.load(Acquire) < ROUNDS {
                thread::yield_now();
            }
            *left.lock().expect("no one panics") = None;
            return condvar.notify_all(&kernel);
        }
        let mut held = left.lock().expect("no one panics");
        while let Some(items) = held.as_mut() {
            if *items > 0 {
                *items -= 1;
                // Release: it is taken; pairs with the acquire above.
                taken.fetch_add(1, Release);
                continue;
            }
            let deadline = (own == 1).then(|| Instant::now() + Duration::from_micros(20));
            held = kernel.wait(&condvar, &left, held, deadline).0;
        }
    });
    assert_eq!(taken.load(Relaxed), ROUNDS);
    assert!(kernel.interrupts() < ROUNDS + CPUS);
}

#[test]
fn without_waiters_no_one_is_notified() {
    let (kernel, condvar) = (Kernel::new(), Condvar::NEW);
    kernel.run(|own| {
        let now = Instant::now();
        assert!(own > 0 || !condvar.wait(&kernel, Some(now), || ()));
        assert!(own > 0 || !condvar.notify_one(&kernel), "it has given up");
        condvar.notify_all(&kernel);
    });
    assert_eq!(kernel.interrupts(), 0);
}

#[test]
fn a_waiter_whose_unlock_panics_leaves_the_list() {
    let (kernel, condvar) = (Kernel::new(), Condvar::NEW);
    kernel.run(|_| {
        let wait = || condvar.wait(&kernel, None, || panic!("as it is asked to"));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait));
        assert!(panicked.is_err());
        // SAFETY: there are no interrupts.
        assert_eq!(unsafe { kernel.waiters() }.iter().count(), 0);
    });
}
