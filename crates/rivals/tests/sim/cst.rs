//! CST locks on simulated machines: the documents' shapes, and the memory of the locks. All figures
//! are simulated.

use std::rc::Rc;

use crate::common::contention::{self, Pace};
use antiphon_rivals::classic::{Mcs, McsStp};
use antiphon_rivals::cst::{CstMutex, CstRwLock, Quantum};
use antiphon_sim::{Machine, Outcome, OwnLine, Sim, Simulation, count, finished, now, think, work};
use antiphon_sync::lock::{Central, Lock, ShflRwLock};
use antiphon_sync::policy::Chosen;

/// Short critical sections on a busy lock.
fn contend<L: Lock>(machine: Machine, threads: usize, limit_ns: u64) -> Outcome {
    contention::contend::<L>(machine, threads, Pace { section_ns: 50, away_ns: 200 }, limit_ns)
}

fn rate<L: Lock>(machine: Machine, threads: usize, limit_ns: u64) -> f64 {
    contend::<L>(machine, threads, limit_ns).total_operations() as f64
}

/// `004_…`, "NUMA-aware lock": beyond one socket a queue that does not mind where its waiters are
/// pays a transfer between sockets for each hand-off, and CST for one in a batch. On one socket,
/// the second queue is a price.
#[test]
fn beyond_one_socket_it_does_more_than_mcs() {
    let gain = |threads| {
        let of = rate::<CstMutex<Sim>>(Machine::eight_sockets(), threads, 600_000);
        of / rate::<Mcs<Sim>>(Machine::eight_sockets(), threads, 600_000)
    };
    let (one, one_socket, all) = (gain(1), gain(24), gain(192));
    println!("simulated, CST : MCS: {one:.2} with 1 thread, {one_socket:.2} 24, {all:.2} 192");
    assert!(one < 1.0 && one_socket < 1.3, "{one}, {one_socket}");
    assert!(all > 1.5, "{all}");
}

/// `004_…`, "Efficient spin-then-park strategy" and "Effective parking strategy": where threads
/// outnumber cores, a lock that is handed to sleepers waits for their wake-ups.
#[test]
fn on_a_crowded_machine_it_keeps_its_pace() {
    let machine = || Machine::two_sockets().shape(2, 4);
    const LIMIT_NS: u64 = 10_000_000;
    let crowd = rate::<CstMutex<Sim>>(machine(), 32, LIMIT_NS);
    let kept = crowd / rate::<CstMutex<Sim>>(machine(), 8, LIMIT_NS);
    let gain = crowd / rate::<McsStp<Sim>>(machine(), 32, LIMIT_NS);
    let quantum = rate::<CstMutex<Sim, Quantum>>(machine(), 32, LIMIT_NS) / crowd;
    println!("simulated, 32 threads on 8 cores: {kept:.2} of 8 threads', {gain:.2} of MCS-STP's");
    println!("simulated, spinning to the end of the slice: {quantum:.2} of that");
    assert!(kept > 0.5 && gain > 1.3, "{kept}, {gain}");
}

/// This includes threads that share a CPU with one that is their socket's head in each of its
/// turns: 128 hand-offs among four that spin end where they began.
#[test]
fn everybody_is_served() {
    let outcome = contend::<CstMutex<Sim>>(Machine::two_sockets().shape(2, 4), 24, 10_000_000);
    assert!(outcome.operations.iter().all(|&count| count > 0), "{:?}", outcome.operations);
    assert!(outcome.counts.wakes > 0, "{:?}", outcome.counts);
}

/// The time when each socket has what it needs. A socket's first acquisition is one for writing,
/// which empties all sockets that have begun: eight of them take 0.15 ms.
const SETTLED_NS: u64 = 200_000;

/// `threads` threads read over and over: operations once that is settled, and the bytes that the
/// lock has taken.
fn readers<L: 'static>(
    lock: L,
    threads: usize,
    read: impl Fn(&L, &dyn Fn()) + Copy + 'static,
    bytes: fn(&L) -> usize,
) -> (u64, usize) {
    let lock = Rc::new(OwnLine(lock));
    let took = Rc::new(std::cell::Cell::new(0));
    let taken = Rc::clone(&took);
    let outcome = Simulation::new(Machine::eight_sockets(), 7)
        .threads(threads, move |_| {
            while !finished() {
                read(&lock.0, &|| work(100));
                if now() >= SETTLED_NS {
                    count();
                }
                think(200);
            }
            taken.set(bytes(&lock.0));
        })
        .run(SETTLED_NS + 50_000)
        .unwrap_or_else(|stuck| panic!("{stuck}"));
    (outcome.total_operations(), took.get())
}

/// `000_…`: "CST uses per-socket counters than a centralized counter", and is better for it where
/// all read.
#[test]
fn reads_scale_over_sockets() {
    let cst = |threads| {
        let read = |lock: &CstRwLock<Sim>, section: &dyn Fn()| {
            let seat = lock.read();
            section();
            // SAFETY: acquired above, by this seat.
            unsafe { lock.unlock_read(seat) };
        };
        readers(CstRwLock::NEW, threads, read, |lock| 16 + 192 * lock.sockets())
    };
    let central = |threads| {
        let read = |lock: &ShflRwLock<Sim, Chosen, Central>, section: &dyn Fn()| {
            assert_eq!(lock.read(), Ok(()));
            section();
            // SAFETY: acquired above.
            unsafe { lock.unlock_read() };
        };
        readers(ShflRwLock::NEW, threads, read, |_| 16)
    };
    let (one_socket, all) = (cst(24), cst(192));
    let gain = all.0 as f64 / central(192).0 as f64;
    println!("simulated, 192 readers: {gain:.2} of the central counter's operations");
    let scaled = all.0 as f64 / one_socket.0 as f64;
    println!("simulated, eight sockets do {scaled:.2} of what one does");
    // No line is written to by two sockets; a longer list to look through is all that is lost.
    assert!(scaled > 7.0, "{scaled}");
    // One counter does no more for eight sockets than for one.
    assert!(gain > 7.0, "{gain}");
    // "Allocate socket specific data structure when used".
    assert_eq!((one_socket.1, all.1), (16 + 192, 16 + 8 * 192));
}
