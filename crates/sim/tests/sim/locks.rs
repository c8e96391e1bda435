//! Tests that the model reproduces the known behaviour of locks on big machines.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Atomic;
use antiphon_sim::work;
use antiphon_sim::{Machine, Memory, Model, Outcome, OwnLine, Simulation, count, finished, think};

use crate::Word;
use crate::toys::{Lock, Mcs, Parking, Tas, Ticket, Ttas};

/// Like [`contend_in`] the usual model.
fn contend<L: Lock>(machine: Machine, threads: usize, seed: u64, limit_ns: u64) -> Outcome {
    contend_in::<L>(Model::default(), machine, threads, seed, limit_ns)
}

/// `threads` take one lock for 50 ns and one line, then think for up to 200 ns.
fn contend_in<L: Lock>(
    model: Model,
    machine: Machine,
    threads: usize,
    seed: u64,
    limit_ns: u64,
) -> Outcome {
    let lock = Rc::new(OwnLine(L::NEW));
    let data = Rc::new(OwnLine((Word::ZERO, Word::ZERO)));
    let outcome = Simulation::new(machine, seed)
        .model(model)
        .threads(threads, {
            let (lock, data) = (Rc::clone(&lock), Rc::clone(&data));
            move |_| {
                while !finished() {
                    lock.lock();
                    assert_eq!(data.0.0.swap(1, Relaxed), 0, "one holder at a time");
                    work(50);
                    data.0.1.store(data.0.1.load(Relaxed) + 1, Relaxed);
                    data.0.0.store(0, Relaxed);
                    lock.unlock();
                    count();
                    think(200);
                }
            }
        })
        .run(limit_ns)
        .unwrap_or_else(|stuck| panic!("{stuck}"));
    assert!(u64::from(data.0.1.load(Relaxed)) >= outcome.total_operations());
    outcome
}

fn operations<L: Lock>(machine: Machine, threads: usize, limit_ns: u64) -> f64 {
    contend::<L>(machine, threads, 1, limit_ns).total_operations() as f64
}

#[test]
fn locks_exclude_and_are_fair_in_turn() {
    for seed in 0..3 {
        let machine = || Machine::two_sockets().shape(2, 4);
        assert!(contend::<Ticket>(machine(), 8, seed, 300_000).fairness() > 0.99);
        assert!(contend::<Mcs>(machine(), 8, seed, 300_000).fairness() > 0.99);
        assert!(contend::<Ttas>(machine(), 8, seed, 300_000).total_operations() > 100);
        assert!(contend::<Parking>(machine(), 8, seed, 300_000).total_operations() > 100);
        // More threads than cores, and slices that end everywhere.
        let tight = || Machine { slice_ns: 3_000, switch_ns: 300, ..machine() };
        assert!(contend::<Ticket>(tight(), 19, seed, 300_000).counts.preemptions > 10);
        assert!(contend::<Mcs>(tight(), 19, seed, 300_000).counts.preemptions > 10);
        assert!(contend::<Parking>(tight(), 19, seed, 300_000).counts.parks > 10);
    }
}

#[test]
fn a_ticket_lock_collapses_across_sockets_and_a_queue_lock_less() {
    let run = |threads| {
        let machine = Machine::eight_sockets;
        (
            operations::<Ticket>(machine(), threads, 300_000),
            operations::<Mcs>(machine(), threads, 300_000),
        )
    };
    let (ticket_socket, _) = run(24);
    let (ticket_all, mcs_all) = run(192);
    assert!(ticket_all < 0.6 * ticket_socket, "{ticket_all} of {ticket_socket}");
    assert!(ticket_all < mcs_all, "{ticket_all} against {mcs_all}");
}

/// An unlock stands in line behind all attempts to take the lock.
#[test]
fn a_test_and_set_lock_collapses_altogether() {
    fn keeps<L: Lock>(memory: Memory) -> f64 {
        let model = Model { memory, ..Model::default() };
        let machine = Machine::eight_sockets;
        let of = |threads| contend_in::<L>(model, machine(), threads, 1, 300_000);
        of(192).total_operations() as f64 / of(1).total_operations() as f64
    }
    let (buffered, unbuffered) = (keeps::<Tas>(Memory::Tso), keeps::<Tas>(Memory::Sc));
    assert!(buffered < 0.05 && unbuffered < 0.05, "{buffered}, {unbuffered}");
    // With buffers, a thread that has unlocked waits for its own store only, finds the line there
    // and takes the lock again: a monopoly, which is why the README trusts no unfair lock.
    let tested = keeps::<Ttas>(Memory::Sc);
    assert!(tested < 0.05, "{tested}");
}

#[test]
fn with_more_threads_than_cores_spinning_in_turn_collapses_and_sleeping_does_not() {
    let machine = || Machine { slice_ns: 200_000, ..Machine::two_sockets().shape(2, 4) };
    let lost = |few: f64, many: f64| few / many;
    let limit_ns = 20_000_000;
    let ticket = lost(
        operations::<Ticket>(machine(), 8, limit_ns),
        operations::<Ticket>(machine(), 16, limit_ns),
    );
    let mcs =
        lost(operations::<Mcs>(machine(), 8, limit_ns), operations::<Mcs>(machine(), 16, limit_ns));
    let parking = lost(
        operations::<Parking>(machine(), 8, limit_ns),
        operations::<Parking>(machine(), 16, limit_ns),
    );
    // The next owner is off its core half of the time, until the other there yields.
    assert!(ticket >= 2.5, "the ticket lock loses {ticket}x");
    assert!(mcs >= 2.5, "the queue lock loses {mcs}x");
    assert!(parking < 3.0, "the parking lock loses {parking}x");
}
