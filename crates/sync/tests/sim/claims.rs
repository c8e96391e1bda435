//! Claims of the ShflLock documents that a simulated machine can show. Entries of
//! `docs/claims.toml` name these tests.

use std::cell::RefCell;
use std::rc::Rc;

use crate::common::contention::{Pace, contend};
use antiphon_sim::{Machine, OwnLine, Sim, Simulation, work};
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};
use antiphon_sync::policy::{None, Numa};

fn unlock(lock: &impl Lock) {
    // SAFETY: each caller owns it.
    unsafe { lock.unlock() }
}

/// Returns the sockets of the owners, in order, of a lock that is held until all of them wait. They
/// join a queue of alternating sockets.
fn served<L: Lock>(threads: usize) -> Vec<u32> {
    let machine = Machine::two_sockets().shape(2, 8).without_jitter();
    let shared = Rc::new((OwnLine(L::NEW), RefCell::new(Vec::new())));
    let result = Rc::clone(&shared);
    let mut simulation = Simulation::new(machine, 1);
    for nth in 0..=threads {
        let shared = Rc::clone(&shared);
        let socket = nth as u32 % 2;
        simulation = simulation.thread_on(socket * 8 + nth as u32 / 2, move || {
            work(1 + 1_000 * nth as u64);
            shared.0.lock();
            if nth > 0 {
                shared.1.borrow_mut().push(socket);
            }
            // The first owner stays until all have come and were sorted, the others as long as a
            // hand-off takes.
            work(if nth == 0 { 1_000 * (threads as u64 + 10) } else { 500 });
            unlock(&shared.0.0);
        });
    }
    let _ = simulation.run(0).unwrap_or_else(|stuck| panic!("{stuck}"));
    result.1.take()
}

/// `000_…`, "NUMA-aware SHFLLOCK in action": the waiters of two sockets queue alternately and are
/// served socket by socket.
#[test]
fn waiters_in_turn_are_served_socket_by_socket() {
    assert_eq!(served::<ShflSpin<Sim, None>>(10), [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    let sorted = served::<ShflSpin<Sim, Numa>>(10);
    let changes = sorted.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // The first came before there was anything to sort, and the last is never moved.
    assert!(changes <= 3, "{sorted:?}");
}

/// `000_…`, "Minimal scheduler intervention": more threads than cores, and hardly any thread is put
/// to sleep or woken for an operation.
#[test]
fn a_crowd_is_seldom_put_to_sleep_or_woken() {
    let pace = Pace { section_ns: 100, away_ns: 300 };
    let machine = Machine::two_sockets().shape(1, 2);
    let crowd = contend::<ShflMutex<Sim>>(machine, 32, pace, 20_000_000);
    let operations = crowd.total_operations();
    let (parks, wakes) = (crowd.counts.parks, crowd.counts.wakes);
    assert!(20 * parks < operations, "{parks} sleeps in {operations} operations");
    assert!(20 * wakes < operations, "{wakes} wakes in {operations} operations");
}
