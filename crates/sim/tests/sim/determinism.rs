//! Tests that the same seed gives the same run: in this process, in others, and concurrently with
//! others.

use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use antiphon_platform::{Atomic, AtomicInteger, Platform};
use antiphon_sim::{Arbitration, Machine, Model, Outcome, OwnLine, Sim, Simulation};
use antiphon_sim::{count, finished, now, think, work};

use crate::toys::{Lock, Mcs, Parking};
use crate::{Word, arena, small, word};

/// A run with many features: two locks, nodes, sleeping, preemption, migration, posted stores,
/// randomness.
fn busy(seed: u64) -> Outcome {
    let machine = Machine { slice_ns: 20_000, ..Machine::two_sockets().shape(2, 4) };
    let locks = Rc::new((OwnLine(Mcs::NEW), OwnLine(Parking::NEW), OwnLine(Word::ZERO)));
    let model = Model { arbitration: Arbitration::Random, balance: true, ..Model::default() };
    Simulation::new(machine, seed)
        .model(model)
        .threads(12, move |_| {
            while !finished() {
                if Sim::random() % 2 == 0 {
                    locks.0.lock();
                    work(100);
                    locks.0.unlock();
                } else {
                    locks.1.lock();
                    work(500);
                    locks.1.unlock();
                }
                locks.2.fetch_add(1, AcqRel);
                count();
                think(300);
            }
        })
        .run(500_000)
        .unwrap_or_else(|stuck| panic!("{stuck}"))
}

#[test]
fn a_seed_is_a_run() {
    let first = busy(1);
    assert!(first.counts.parks > 0 && first.counts.preemptions > 0);
    assert!(first.counts.posted > 0 && first.counts.migrations > 0);
    assert_eq!(first, busy(1));
    assert_ne!(first.trace_hash, busy(2).trace_hash);
}

#[test]
fn starts_and_think_times_are_random_within_bounds() {
    let times = |seed| {
        let times = Rc::new(RefCell::new(Vec::new()));
        let told = Rc::clone(&times);
        let machine = Machine { start_jitter_ns: 1_000, ..small() };
        let switch_ns = machine.switch_ns;
        let simulation = Simulation::new(machine, seed).threads(8, move |_| {
            let begin = now();
            assert!((switch_ns..=switch_ns + 1_000).contains(&begin));
            think(500);
            assert!(now() - begin <= 500);
            told.borrow_mut().extend([begin, now() - begin]);
        });
        let _ = simulation.run(0).expect("all end");
        times.take()
    };
    let mut distinct = times(1);
    assert_ne!(distinct, times(2));
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > 12, "{distinct:?}");
}

#[test]
fn operations_count_until_the_limit() {
    let outcome = Simulation::new(small(), 1)
        .thread(|| {
            for _ in 0..100 {
                work(1_000);
                count();
            }
        })
        .run(small().switch_ns + 50_500)
        .expect("it ends");
    assert_eq!(outcome.operations, [50]);
    assert!(outcome.end_ns > 100_000, "the thread went on to its end");
}

const CHILD: &str = "ANTIPHON_SIM_TEST_CHILD";

#[test]
fn a_seed_is_the_same_run_in_other_processes() {
    if std::env::var_os(CHILD).is_some() {
        println!("{:?}", busy(7));
        return;
    }
    let expected = format!("{:?}", busy(7));
    assert_ne!(expected, format!("{:?}", busy(8)));
    for pad in ["", "x", "a longer value that moves the stack of the process"] {
        let program = std::env::current_exe().expect("this program's path");
        let name = "determinism::a_seed_is_the_same_run_in_other_processes";
        let child = Command::new(program)
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, pad)
            .output()
            .expect("this program runs again");
        assert!(child.status.success());
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(said.contains(&expected), "{expected} is not in {said}");
    }
}

#[test]
fn simulations_beside_each_other_share_nothing() {
    let alone = busy(3);
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(|| busy(3))).collect();
        for other in others {
            assert_eq!(other.join().expect("it ends"), alone);
        }
    });
}

#[test]
fn a_simulation_begins_with_nodes_that_were_never_used() {
    for _ in 0..3 {
        let simulation = Simulation::new(small(), 1).thread(|| {
            assert_eq!(arena().high_water(), 0);
            assert!(arena().resolve_index(1).is_none());
            let id = arena().take().expect("a free node");
            let node = arena().resolve(id).expect("just taken");
            for word in [&node.next, &node.status, &node.wants, &node.token] {
                assert_eq!(word.swap(9, Relaxed), 0);
            }
            assert_eq!(node.handle.swap(9, Relaxed), 0);
            Sim::local(|local| assert_eq!(local.seed.swap(5, Relaxed), 0));
        });
        let _ = simulation.run(0).expect("it ends");
    }
}

#[test]
fn words_that_are_apart_have_new_lines_wherever_they_are() {
    // Side by side in the host's memory or not, and where others were before.
    let run = |apart: bool, gap: usize| {
        let model = Model { apart, ..Model::default() };
        let threads = move |_| {
            for _ in 0..20 {
                let words: Vec<_> = (0..8 * gap).map(|_| Word::ZERO).collect();
                words.iter().step_by(gap).for_each(|word| _ = word.fetch_add(1, Relaxed));
                think(50);
            }
        };
        Simulation::new(small(), 5).model(model).threads(4, threads).run(0).expect("all end")
    };
    assert_eq!(run(true, 1), run(true, 8));
    assert_eq!(run(true, 1).counts.memory_reads, 4 * 20 * 8);
    assert_ne!(run(false, 1).counts, run(false, 8).counts);
}

#[test]
fn lines_are_known_by_first_touch() {
    // The same accesses through memory that the host places elsewhere.
    let run = |skipped: usize| {
        let _elsewhere: Vec<_> = (0..skipped).map(|_| word()).collect();
        let words: Vec<_> = (0..20).map(|_| word()).collect();
        Simulation::new(small(), 5)
            .threads(4, move |number| {
                for word in words.iter().skip(number) {
                    word.fetch_add(1, Relaxed);
                    think(50);
                }
            })
            .run(0)
            .expect("all end")
    };
    assert_eq!(run(0), run(37));
}
