//! Readers that are counted by socket, under real threads, on a machine that pretends to have
//! sixteen CPUs on eight sockets.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_linux::pretend::{Machine, pretend};
use antiphon_platform::{Atomic, Clock, Clocks as _, Deadline, Platform};
use antiphon_sync::lock::{Form, Recursive, RwForm, ShflRwLock, Standard};
use antiphon_sync::policy::Numa;

type Lock<F = Standard> = ShflRwLock<Linux, Numa, F>;

const WRITER: u64 = 1;
const MODE: u64 = 3 << 6;

/// Call this before a lock is used.
fn pretend_sockets() {
    pretend(Some(Machine { cpus: 16, sockets: 8, crowded_one_in: 0 }));
}

fn in_ms(ms: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + ms * 1_000_000 }
}

fn read<F: RwForm>(lock: &Lock<F>) {
    assert_eq!(lock.read(), Ok(()));
}

fn unlock_read<F: RwForm>(lock: &Lock<F>) {
    // SAFETY: each caller has acquired it for reading.
    unsafe { lock.unlock_read() }
}

fn unlock_write<F: RwForm>(lock: &Lock<F>) {
    // SAFETY: each caller has acquired it for writing.
    unsafe { lock.unlock_write() }
}

/// Returns the first word of the lock.
fn state<F: RwForm>(lock: &Lock<F>) -> u64 {
    // SAFETY: reads the first eight bytes of the lock.
    unsafe { &*std::ptr::from_ref(lock).cast::<AtomicU64>() }.load(Relaxed)
}

/// Returns the number of locks that have an indicator.
fn claimed() -> usize {
    // SAFETY: only read.
    let all = unsafe { Linux::indicators() };
    all.iter().filter(|indicator| indicator.claimed.load(Relaxed) != 0).count()
}

/// Read-locks a lock by a line.
fn read_by_line<F: RwForm>(lock: &Lock<F>) {
    pretend_sockets();
    for _ in 0..4 {
        read(lock);
    }
    assert_eq!(state(lock) & MODE, 1 << 6, "four readers are a crowd");
    for _ in 0..3 {
        unlock_read(lock);
    }
}

/// A form that leaves counting by socket at the first chance, so the mode changes all the time.
struct Restless;

impl Form for Restless {}

impl RwForm for Restless {
    const REST: u32 = 0;
    const CROWD: u32 = 1;
    const TURNS: u8 = 2;
    const IDLE: u32 = 0;
}

/// Readers see two words that writers change one after the other.
fn exclusion<F: RwForm>(threads: usize, rounds: u32, share: u32) -> u32 {
    pretend_sockets();
    let lock = Lock::<F>::NEW;
    let (one, other) = (AtomicU32::new(0), AtomicU32::new(0));
    let (by_line, start) = (AtomicU32::new(0), Barrier::new(threads));
    thread::scope(|scope| {
        for number in 0..threads {
            let (lock, one, other, by_line, start) = (&lock, &one, &other, &by_line, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..rounds {
                    if (round + number as u32).is_multiple_of(share) {
                        match round % 3 {
                            0 => lock.write(),
                            1 => {
                                while !lock.try_write() {
                                    thread::yield_now();
                                }
                            }
                            _ => while !lock.write_until(in_ms(1)) {},
                        }
                        let next = one.load(Relaxed) + 1;
                        one.store(next, Relaxed);
                        std::hint::spin_loop();
                        other.store(next, Relaxed);
                        if round.is_multiple_of(2) {
                            unlock_write(lock);
                        } else {
                            // SAFETY: acquired above.
                            unsafe { lock.downgrade() };
                            assert_eq!(one.load(Relaxed), next, "a writer came in between");
                            unlock_read(lock);
                        }
                        continue;
                    }
                    match round % 3 {
                        0 => {
                            while lock.try_read().is_err() {
                                thread::yield_now();
                            }
                        }
                        _ => read(lock),
                    }
                    by_line.fetch_add(u32::from(state(lock) & MODE != 0), Relaxed);
                    let seen = other.load(Relaxed);
                    if round % 64 == 7 {
                        thread::yield_now();
                    }
                    assert_eq!(one.load(Relaxed), seen, "a writer is in beside a reader");
                    assert_eq!(other.load(Relaxed), seen);
                    unlock_read(lock);
                }
            });
        }
    });
    assert!(!lock.is_locked());
    lock.gather();
    assert!(lock.write_uncontended(), "as a lock that was never read");
    by_line.load(Relaxed)
}

#[test]
fn writers_exclude_readers_of_all_sockets() {
    let by_line = exclusion::<Standard>(8, 20_000, 10)
        + exclusion::<Standard>(4, 50_000, 200)
        + exclusion::<Restless>(4, 50_000, 7)
        + exclusion::<Restless>(16, 5_000, 3)
        + exclusion::<Recursive<Restless>>(8, 10_000, 20);
    assert!(by_line > 1_000, "{by_line} reads were counted by socket");
}

/// RW-12: a reader forks while a writer waits for it. With central counting, the child's lock is
/// free once the reader has left; here too.
#[test]
fn the_child_of_a_fork_goes_on_though_a_writer_waited() {
    let lock = Lock::<Standard>::NEW;
    read_by_line(&lock);
    thread::scope(|scope| {
        scope.spawn(|| {
            lock.write();
            unlock_write(&lock);
        });
        while state(&lock) & (WRITER | MODE) != WRITER | MODE {
            thread::yield_now();
        }
        // The reader sleeps, so its name is on the lines.
        thread::sleep(Duration::from_millis(20));
        // SAFETY: the child uses nothing but the lock, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut sound = lock.try_read().is_ok();
            unlock_read(&lock);
            unlock_read(&lock);
            sound &= lock.write_until(in_ms(5_000));
            unlock_write(&lock);
            sound &= lock.read_until(in_ms(5_000)).is_ok();
            unlock_read(&lock);
            sound &= lock.try_write();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!sound)) };
        }
        assert!(child > 0);
        let mut status = -1;
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        unlock_read(&lock);
        assert_eq!(status, 0);
    });
}

/// A lock's indicator is given back when the lock is gathered.
#[test]
fn an_indicator_is_had_while_readers_crowd() {
    let lock = Lock::<Standard>::NEW;
    read_by_line(&lock);
    assert!(lock.is_locked() && lock.seems_read() && claimed() > 0);
    lock.gather();
    assert_eq!(state(&lock) & MODE, 1 << 6, "it is read");
    unlock_read(&lock);
    assert!(!lock.is_locked() && !lock.seems_read());
    lock.gather();
    assert_eq!(state(&lock), 0);
}

/// A try does not wait for a writer that waits for readers; a reader may then read again.
#[test]
fn a_try_waits_for_no_writer() {
    let lock = Lock::<Standard>::NEW;
    read_by_line(&lock);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(!lock.write_until(in_ms(50)), "a reader is in");
            done.store(true, Relaxed);
        });
        while state(&lock) & (WRITER | MODE) != WRITER | MODE {
            thread::yield_now();
        }
        while !done.load(Relaxed) {
            assert!(!lock.try_write());
            assert_eq!(lock.try_read_recursive(), Ok(()));
            unlock_read(&lock);
        }
    });
    assert_eq!(lock.try_read(), Ok(()), "it has given up");
    unlock_read(&lock);
    unlock_read(&lock);
    lock.gather();
    assert_eq!(state(&lock), 0);
}
