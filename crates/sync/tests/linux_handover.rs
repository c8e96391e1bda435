//! Tests of hand-offs of the mutex, and of cohorts, on real threads: the platform pretends to have
//! more CPUs and sockets than this machine.
//!
//! Long because all tests share one pretended machine, which belongs to the whole process: a second
//! program would have to set it up and guard it again.

mod common;

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Barrier, Mutex as StdMutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_linux::pretend::{Machine, pretend};
use antiphon_platform::{Clock, Clocks as _, Deadline, Platform};
use antiphon_sync::lock::{Form, ShflMutex, Standard};
use antiphon_sync::policy::Chosen;
use antiphon_sync::wait::Condvar;
use common::page::Page;

type Mutex = ShflMutex<Linux, Chosen, Expecting>;

/// A machine on which all waiters have a CPU.
const ROOMY: Machine = Machine { cpus: 64, sockets: 1, crowded_one_in: 0 };
const SOCKETS: Machine = Machine { sockets: 2, ..ROOMY };
/// A machine on which waiters sometimes find too few CPUs, and sleep.
const UNEVEN: Machine = Machine { sockets: 3, crowded_one_in: 16, ..ROOMY };
/// A machine on which most waiters sleep.
const SCARCE: Machine = Machine { cpus: 6, sockets: 2, crowded_one_in: 3 };
const MACHINES: [Machine; 4] = [ROOMY, SOCKETS, UNEVEN, SCARCE];

/// The right of one test at a time to set up its machine. A test that hangs ends the program.
struct Turn(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Turn {
    fn of(machine: Machine) -> Self {
        static TURN: StdMutex<()> = StdMutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        pretend(Some(machine));
        // SAFETY: no pointer involved.
        unsafe { libc::alarm(120) };
        Self(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: no pointer involved.
        unsafe { libc::alarm(0) };
    }
}

fn in_us(us: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + us * 1_000 }
}

fn unlock<F: Form>(lock: &ShflMutex<Linux, Chosen, F>) {
    // SAFETY: each caller owns it, or the owner told it to unlock.
    unsafe { lock.unlock() }
}

fn nap_ms(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

/// A form whose owners hand the lock over even though the sections of a test are long.
struct Expecting;

impl Form for Expecting {
    const EXPECTS: bool = true;
}

/// A form whose waiters have no backstop: a lost wake is a hang.
struct Unaided;

impl Form for Unaided {
    const BACKSTOP_NS: u64 = 1 << 40;
}

/// A lock, and fields that only its owner may access.
struct Guarded<F: Form = Standard> {
    lock: ShflMutex<Linux, Chosen, F>,
    inside: AtomicBool,
    /// Number of acquisitions.
    had: AtomicU64,
    /// Increased by a load and a store: two owners at a time lose an addition.
    count: AtomicU64,
    /// Number of owners that hand the lock over.
    handing: AtomicU64,
}

impl<F: Form> Guarded<F> {
    const fn new() -> Self {
        Self {
            lock: ShflMutex::NEW,
            inside: AtomicBool::new(false),
            had: AtomicU64::new(0),
            count: AtomicU64::new(0),
            handing: AtomicU64::new(0),
        }
    }

    /// Runs the critical section of the caller, which owns the lock, and unlocks.
    fn pass_through(&self) {
        assert!(!self.inside.swap(true, Relaxed), "two owners at a time");
        self.had.fetch_add(1, Relaxed);
        let count = self.count.load(Relaxed);
        if self.lock.hands_over() {
            self.handing.store(self.handing.load(Relaxed) + 1, Relaxed);
        }
        if count.is_multiple_of(8) {
            thread::yield_now();
        }
        self.count.store(count + 1, Relaxed);
        self.inside.store(false, Relaxed);
        unlock(&self.lock);
    }

    /// Returns whether an owner has handed the lock over.
    fn handed(&self) -> bool {
        self.handing.load(Relaxed) > 0
    }

    /// Checks at the end that one thread at a time had the lock, and that it is free and works.
    fn end(&self) {
        assert_eq!(self.count.load(Relaxed), self.had.load(Relaxed));
        assert!(!self.lock.is_locked() && self.lock.try_lock(), "the lock is free");
        unlock(&self.lock);
    }
}

/// Runs `body` on `threads` threads, each with its number; returns when all have ended.
fn on_threads(threads: u32, body: impl Fn(u32) + Sync) {
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        for number in 0..threads {
            let (start, body) = (&start, &body);
            scope.spawn(move || {
                start.wait();
                body(number);
            });
        }
    });
}

/// Counts up to `most`, for at most half a second: if other programs want the CPUs, each yield of a
/// spinning thread takes as long as their time slices.
fn rounds(most: u32) -> impl Iterator<Item = u32> {
    rounds_until(most, || true)
}

/// [`rounds`] that goes on until `enough` holds, for at most 90 s.
fn rounds_until(most: u32, enough: impl Fn() -> bool) -> impl Iterator<Item = u32> {
    let begun = Instant::now();
    (0..).take_while(move |&nth| {
        let past = nth >= most || begun.elapsed() > Duration::from_millis(500);
        !past || !enough() && begun.elapsed() < Duration::from_secs(90)
    })
}

/// Returns the next number of the thread's own random sequence, less than `below`.
fn lot(below: u32) -> u32 {
    Linux::random() % below
}

#[test]
fn one_owner_at_a_time_and_all_threads_end() {
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        for threads in [4, 8, 16] {
            contend(&Guarded::<Standard>::new(), machine, threads);
        }
    }
}

fn contend<F: Form>(guarded: &Guarded<F>, machine: Machine, threads: u32) {
    on_threads(threads, |_| {
        for _ in rounds_until(60_000 / threads, || guarded.handed()) {
            guarded.lock.lock();
            guarded.pass_through();
        }
    });
    guarded.end();
    let (handing, had) = (guarded.handing.load(Relaxed), guarded.had.load(Relaxed));
    println!("{machine:?}, {threads} threads: {handing} owners of {had} were to hand over");
    assert!(handing > 0, "no lock was handed over");
}

/// Without backstops, each sleeping waiter is woken by an owner, in the queue and in cohorts, when
/// handing over ends and begins.
#[test]
fn no_wake_is_lost() {
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        for threads in [4, 8, 16] {
            contend(&Guarded::<Unaided>::new(), machine, threads);
        }
    }
}

/// Lost wakes as above, with waiters that give up, and tries.
#[test]
fn no_wake_is_lost_among_waiters_that_give_up() {
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        let guarded = Guarded::<Unaided>::new();
        on_threads(12, |number| {
            for _ in rounds(5_000) {
                let had = match number % 4 {
                    0 => guarded.lock.lock_until(in_us(lot(400).into())),
                    1 => guarded.lock.try_lock(),
                    _ => {
                        guarded.lock.lock();
                        true
                    }
                };
                if had {
                    guarded.pass_through();
                }
            }
        });
        guarded.end();
    }
}

/// Several locks at a time, nested: a thread is an owner that hands over and a waiter.
#[test]
fn an_owner_that_hands_over_waits_for_another_lock() {
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        let (outer, inner) = ([const { Guarded::<Unaided>::new() }; 2], Guarded::<Unaided>::new());
        on_threads(8, |number| {
            let outer = &outer[number as usize % 2];
            for _ in rounds(2_500) {
                outer.lock.lock();
                inner.lock.lock();
                inner.pass_through();
                outer.pass_through();
            }
        });
        outer.iter().for_each(Guarded::end);
        inner.end();
    }
}

/// Waiters give up at any moment: before and while the lock is handed to them, in the queue and in
/// cohorts.
#[test]
fn waiters_give_up_while_the_lock_is_handed_over() {
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        let guarded = Guarded::<Standard>::new();
        let gave_up = AtomicU64::new(0);
        on_threads(12, |number| {
            let enough = || gave_up.load(Relaxed) > 0 && guarded.handed();
            for _ in rounds_until(5_000, enough) {
                let in_time = if number % 3 == 0 {
                    guarded.lock.lock();
                    true
                } else {
                    guarded.lock.lock_until(in_us((lot(20) * lot(200)).into()))
                };
                if in_time {
                    guarded.pass_through();
                } else {
                    gave_up.fetch_add(1, Relaxed);
                }
            }
        });
        guarded.end();
        assert!(gave_up.load(Relaxed) > 0 && guarded.handed());
    }
}

/// Starts a thread that runs `body`; returns when `body` is about to begin.
fn start(body: impl FnOnce() + Send + 'static) -> (thread::JoinHandle<()>, libc::pthread_t) {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        // SAFETY: asks for the calling thread's own handle.
        assert!(sender.send(unsafe { libc::pthread_self() }).is_ok());
        body();
    });
    (thread, receiver.recv().expect("the thread has started"))
}

/// The caller takes the lock, as an owner that will hand it over: it waits in the queue, and keeps
/// its place there.
fn own_handing(lock: &Mutex) {
    for _ in 0..10 {
        let held = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                lock.lock();
                held.wait();
                let begun = Instant::now();
                // The caller may still spin outside the queue, or have no CPU.
                while lock.last_waiter().is_none() && begun.elapsed() < Duration::from_secs(20) {
                    thread::yield_now();
                }
                unlock(lock);
            });
            held.wait();
            lock.lock();
        });
        if lock.hands_over() {
            return;
        }
        unlock(lock);
    }
    panic!("no owner keeps its place");
}

/// The first in the queue has given up: the waiter behind it still gets the lock, and the node that
/// the first has left is passed over.
#[test]
fn one_that_gave_up_is_passed_over() {
    static LOCK: Mutex = Mutex::NEW;
    for machine in [ROOMY, SOCKETS] {
        let _turn = Turn::of(machine);
        for _ in 0..20 {
            own_handing(&LOCK);
            let first = start(|| assert!(!LOCK.lock_until(in_us(1_500)))).0;
            nap_ms(1);
            let second = start(|| {
                LOCK.lock();
                unlock(&LOCK);
            });
            assert!(first.join().is_ok());
            unlock(&LOCK);
            assert!(second.0.join().is_ok());
            assert!(LOCK.try_lock());
            unlock(&LOCK);
        }
    }
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: the handlers below use only atomics, our locks and system calls.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
    }
}

/// A waiter is handed the lock while it is in a handler: it has the lock when the handler returns,
/// and the others only after that.
#[test]
fn a_waiter_in_a_handler_has_the_lock_when_that_returns() {
    static LOCK: Mutex = Mutex::NEW;
    static INSIDE: AtomicBool = AtomicBool::new(false);
    static GO: AtomicBool = AtomicBool::new(false);

    extern "C" fn stay(_: libc::c_int) {
        INSIDE.store(true, Relaxed);
        let begun = Instant::now();
        while !GO.load(Relaxed) && begun.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    handle(libc::SIGUSR2, stay);
    for machine in [ROOMY, SOCKETS] {
        let _turn = Turn::of(machine);
        let handed = AtomicU32::new(0);
        let mut of = 0;
        for _ in rounds_until(100, || handed.load(Relaxed) >= 3) {
            of += 1;
            INSIDE.store(false, Relaxed);
            GO.store(false, Relaxed);
            own_handing(&LOCK);
            let (first, first_handle) = start(|| {
                LOCK.lock();
                unlock(&LOCK);
            });
            // The waiter is on its way to the queue or to a cohort, where it spins for a moment.
            let (begun, pause) = (Instant::now(), Duration::from_micros(lot(250).into()));
            while begun.elapsed() < pause {}
            // SAFETY: the thread ends once it has had the lock, which we hold.
            unsafe { libc::pthread_kill(first_handle, libc::SIGUSR2) };
            while !INSIDE.load(Relaxed) {
                thread::yield_now();
            }
            unlock(&LOCK);
            handed.fetch_add(LOCK.is_locked().into(), Relaxed);
            let second = start(|| {
                LOCK.lock();
                unlock(&LOCK);
            });
            nap_ms(2);
            GO.store(true, Relaxed);
            assert!(first.join().is_ok() && second.0.join().is_ok());
            assert!(LOCK.try_lock());
            unlock(&LOCK);
        }
        let handed = handed.load(Relaxed);
        println!("{machine:?}: the lock was handed to {handed} of {of} handlers");
        assert!(handed > 0, "no lock was handed to a handler");
    }
}

/// Handlers come at any moment, wait for the same lock and for another lock, and give up.
#[test]
fn handlers_lock_in_the_middle_of_a_hand_over() {
    static OUTER: Guarded = Guarded::new();
    static INNER: Guarded = Guarded::new();
    static IN_HANDLERS: AtomicU64 = AtomicU64::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);

    extern "C" fn lock_both(_: libc::c_int) {
        // The thread may own either lock.
        for guarded in [&INNER, &OUTER] {
            if guarded.lock.lock_until(in_us(50)) {
                IN_HANDLERS.fetch_add(1, Relaxed);
                guarded.pass_through();
            }
        }
    }

    handle(libc::SIGUSR1, lock_both);
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        STOP.store(false, Relaxed);
        let workers = [(); 6].map(|()| {
            start(|| {
                while !STOP.load(Relaxed) {
                    OUTER.lock.lock();
                    OUTER.pass_through();
                }
            })
        });
        let enough = || IN_HANDLERS.load(Relaxed) > 0 && OUTER.handed();
        for _ in rounds_until(1_000, enough) {
            for (_, worker) in &workers {
                // SAFETY: the workers are joined below.
                unsafe { libc::pthread_kill(*worker, libc::SIGUSR1) };
            }
            thread::sleep(Duration::from_micros(300));
        }
        STOP.store(true, Relaxed);
        for (worker, _) in workers {
            assert!(worker.join().is_ok());
        }
        OUTER.end();
        INNER.end();
    }
    assert!(IN_HANDLERS.load(Relaxed) > 0 && OUTER.handing.load(Relaxed) > 0);
}

/// Forks, and waits until the child has ended: without an error, within `seconds`.
fn in_child(seconds: u32, child: impl FnOnce() -> bool, meanwhile: impl FnOnce(libc::pid_t)) {
    // SAFETY: the child runs locks and threads of ours only, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => panic!("fork failed"),
        0 => {
            // SAFETY: no pointer involved.
            unsafe { libc::alarm(seconds) };
            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!well.unwrap_or(false))) }
        }
        pid => {
            meanwhile(pid);
            let mut status = 0;
            // SAFETY: our own child, our own word.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(status, 0, "the child failed or hung");
        }
    }
}

/// All threads of a process may be stopped at any moment, and go on.
#[test]
fn a_process_that_is_stopped_goes_on() {
    let _turn = Turn::of(SOCKETS);
    let guarded = Guarded::<Standard>::new();
    let contend = || {
        on_threads(6, |_| {
            for _ in rounds_until(10_000, || guarded.handed()) {
                guarded.lock.lock();
                guarded.pass_through();
            }
        });
        guarded.end();
        guarded.handing.load(Relaxed) > 0
    };
    in_child(60, contend, |pid| {
        for _ in 0..40 {
            for signal in [libc::SIGSTOP, libc::SIGCONT] {
                // SAFETY: no pointer involved; the child has not been waited for.
                unsafe { libc::kill(pid, signal) };
                nap_ms(3);
            }
        }
    });
}

/// An owner that hands over forks, with waiters behind it in the queue and in cohorts, awake and
/// asleep: its child unlocks, locks again, and hands over among its own threads.
#[test]
fn an_owner_that_hands_over_forks() {
    static LOCK: Mutex = Mutex::NEW;
    for machine in [ROOMY, SOCKETS, UNEVEN] {
        let _turn = Turn::of(machine);
        for asleep in [false, true] {
            own_handing(&LOCK);
            let waiters = [(); 4].map(|()| {
                start(|| {
                    LOCK.lock();
                    unlock(&LOCK);
                })
            });
            if asleep {
                nap_ms(30);
            }
            let child = || {
                let before = LOCK.hands_over();
                unlock(&LOCK);
                assert!(!LOCK.is_locked(), "no waiter of the parent is handed the child's lock");
                LOCK.lock();
                let guarded = Guarded::<Standard>::new();
                thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| {
                            for _ in 0..300 {
                                LOCK.lock();
                                guarded.lock.lock();
                                guarded.pass_through();
                                unlock(&LOCK);
                            }
                        });
                    }
                    nap_ms(2);
                    unlock(&LOCK);
                });
                guarded.end();
                before && LOCK.try_lock()
            };
            in_child(30, child, |_| {});
            unlock(&LOCK);
            for (waiter, _) in waiters {
                assert!(waiter.join().is_ok());
            }
            assert!(LOCK.try_lock());
            unlock(&LOCK);
        }
    }
}

/// Threads fork at any moment, as owners or not: the child has one thread.
#[test]
fn forks_at_any_moment_of_a_hand_over() {
    let _turn = Turn::of(SOCKETS);
    let guarded = Guarded::<Standard>::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    guarded.lock.lock();
                    guarded.pass_through();
                }
            });
        }
        for _ in rounds_until(300, || guarded.handed()) {
            guarded.lock.lock();
            let child = || {
                unlock(&guarded.lock);
                on_threads(3, |_| {
                    for _ in 0..50 {
                        guarded.lock.lock();
                        guarded.pass_through();
                    }
                });
                guarded.end();
                true
            };
            in_child(30, child, |_| {});
            guarded.pass_through();
        }
        stop.store(true, Relaxed);
    });
    assert!(guarded.handing.load(Relaxed) > 0);
}

/// A try never waits, acquires a free lock, and never a lock that is being handed over.
#[test]
fn tries_take_no_lock_that_is_handed_over() {
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        let guarded = Guarded::<Standard>::new();
        let over = AtomicU32::new(0);
        on_threads(10, |number| {
            if number < 5 {
                for _ in rounds(1_500) {
                    guarded.lock.lock();
                    guarded.pass_through();
                }
                over.fetch_add(1, Relaxed);
            } else {
                while over.load(Relaxed) < 5 {
                    if guarded.lock.try_lock() {
                        guarded.pass_through();
                    }
                    if lot(8) == 0 {
                        thread::yield_now();
                    }
                }
            }
        });
        guarded.end();
    }
}

/// Another thread than the owner, which has kept its place, unlocks.
#[test]
fn another_thread_hands_it_over() {
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        let guarded = Guarded::<Standard>::new();
        let (sender, receiver) = mpsc::channel::<mpsc::SyncSender<()>>();
        thread::scope(|scope| {
            scope.spawn(|| {
                for answer in receiver {
                    guarded.pass_through();
                    let _ = answer.send(());
                }
            });
            for _ in 0..6 {
                let sender = sender.clone();
                let guarded = &guarded;
                scope.spawn(move || {
                    for nth in rounds_until(2_000, || guarded.handed()) {
                        guarded.lock.lock();
                        if nth % 3 == 0 {
                            let (answer, answered) = mpsc::sync_channel(1);
                            assert!(sender.send(answer).is_ok());
                            assert!(answered.recv().is_ok());
                        } else {
                            guarded.pass_through();
                        }
                    }
                });
            }
            drop(sender);
        });
        guarded.end();
        assert!(guarded.handing.load(Relaxed) > 0);
    }
}

/// Broadcasts move waiters into the queue of a lock that others hand over meanwhile.
#[test]
fn broadcasts_move_waiters_behind_owners_that_hand_over() {
    const ROUNDS: u32 = 100;
    const WAITERS: u32 = 6;
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        let guarded = Guarded::<Standard>::new();
        let (changed, all_here) = (Condvar::<Linux>::NEW, Condvar::<Linux>::NEW);
        // Both are accessed under the lock.
        let (round, here) = (AtomicU32::new(0), AtomicU32::new(0));
        on_threads(WAITERS + 5, |number| {
            if number < WAITERS {
                for mine in 0..ROUNDS {
                    guarded.lock.lock();
                    here.store(here.load(Relaxed) + 1, Relaxed);
                    all_here.notify_one();
                    while round.load(Relaxed) == mine {
                        let deadline = (mine % 3 == 1).then(|| in_us(lot(2_000).into()));
                        // SAFETY: locked above, and by each wait.
                        unsafe { changed.wait_with(&guarded.lock, deadline) };
                    }
                    unlock(&guarded.lock);
                }
            } else if number == WAITERS {
                for mine in 0..ROUNDS {
                    guarded.lock.lock();
                    while here.load(Relaxed) < WAITERS {
                        // SAFETY: locked above, and again by each wait.
                        unsafe { all_here.wait_with(&guarded.lock, None) };
                    }
                    here.store(0, Relaxed);
                    round.store(mine + 1, Relaxed);
                    if mine % 2 == 0 {
                        changed.notify_all();
                        unlock(&guarded.lock);
                    } else {
                        unlock(&guarded.lock);
                        changed.notify_all();
                    }
                }
            } else {
                while round.load(Relaxed) < ROUNDS {
                    guarded.lock.lock();
                    guarded.pass_through();
                }
            }
        });
        guarded.end();
    }
}

/// The next owner may unmap the lock while the last one is still inside `unlock` (PASS-3).
#[test]
fn a_hand_over_touches_nothing_of_the_lock_afterwards() {
    for machine in MACHINES {
        let _turn = Turn::of(machine);
        let handing = AtomicU32::new(0);
        for _ in rounds_until(1_000, || handing.load(Relaxed) > 0) {
            let page = Page::map();
            // SAFETY: all zero is a free lock; the last of three to have it unmaps it.
            let lock: &Mutex = unsafe { page.as_ref() };
            let left = AtomicU32::new(3);
            lock.lock();
            let waiting = Barrier::new(4);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        waiting.wait();
                        lock.lock();
                        handing.fetch_add(lock.hands_over().into(), Relaxed);
                        let is_last = left.fetch_sub(1, Relaxed) == 1;
                        unlock(lock);
                        if is_last {
                            // SAFETY: no thread may access it any more.
                            unsafe { page.unmap() };
                        }
                    });
                }
                waiting.wait();
                thread::yield_now();
                unlock(lock);
            });
        }
        let handing = handing.load(Relaxed);
        println!("{machine:?}: {handing} owners kept their places");
        assert!(handing > 0);
    }
}
