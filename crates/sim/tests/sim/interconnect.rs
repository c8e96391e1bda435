//! The costs that the sockets' caches and the links between them add to an access.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, AtomicInteger};
use antiphon_sim::{Access, Link, Machine, OwnLine, Simulation, known, now, touch, work};

use crate::{small, time, word};

/// Duration of a read on core 6 of a line that cores 0 and 5 have.
fn read_beside(machine: Machine) -> u64 {
    let (shared, took) = (word(), Rc::new(Cell::new(0)));
    let mut simulation = Simulation::new(machine, 1);
    for (nth, core) in [0, 5, 6].into_iter().enumerate() {
        let (shared, took) = (Rc::clone(&shared), Rc::clone(&took));
        simulation = simulation.thread_on(core, move || {
            work(1_000 * nth as u64);
            took.set(time(|| _ = shared.load(Relaxed)));
        });
    }
    let _ = simulation.run(0).expect("all end");
    took.get()
}

#[test]
fn a_cache_that_is_not_inclusive_has_no_copy_of_what_its_cores_share() {
    let m = small();
    let exclusive = Machine { topology: m.topology.clone().with_inclusive(false), ..m.clone() };
    assert_eq!(read_beside(m.clone()), m.cache_ns());
    assert_eq!(read_beside(exclusive), m.transfer_ns(0, 1));
}

/// When the last of four cores of the second socket has a line of its own from the first.
fn four_at_once(machine: Machine) -> u64 {
    let words = Rc::new([const { OwnLine(crate::Word::ZERO) }; 4]);
    let end = Rc::new(Cell::new(0));
    let theirs = Rc::clone(&words);
    let mut simulation = Simulation::new(machine, 1).thread_on(0, move || {
        theirs.iter().for_each(|word| _ = word.fetch_add(1, Relaxed));
    });
    for core in 0..4 {
        let (words, end) = (Rc::clone(&words), Rc::clone(&end));
        simulation = simulation.thread_on(4 + core, move || {
            work(10_000);
            words[core as usize].load(Relaxed);
            end.set(end.get().max(now()));
        });
    }
    let _ = simulation.run(0).expect("all end");
    end.get()
}

#[test]
fn lines_pass_between_two_sockets_one_at_a_time() {
    let spaced = |occupancy_ns| four_at_once(Machine { occupancy_ns, ..small() });
    assert_eq!(spaced(50), spaced(0) + 3 * 50);
}

#[test]
fn a_link_has_so_many_transfers_under_way() {
    let m = small();
    let transfer_ns = m.transfer_ns(0, 4);
    let end = |link| four_at_once(Machine { link, ..m.clone() });
    let last = |transfers| end(Some(Link { line_ns: 1, transfers }));
    let begin = last(4) - transfer_ns - 3;
    // Two at a time, one nanosecond apart; and one by one.
    assert_eq!(last(2), begin + 1 + 2 * transfer_ns);
    assert_eq!(last(1), begin + 4 * transfer_ns);
    assert_eq!(last(1_000), last(4));
    assert_eq!(end(Some(Link { line_ns: m.occupancy_ns, transfers: 4 })), end(None));
}

/// Durations of two concurrent transfers between nodes.
fn two_at_once(machine: &Machine, ways: [[u32; 2]; 2]) -> [u64; 2] {
    let words = Rc::new([const { OwnLine(crate::Word::ZERO) }; 2]);
    let took = Rc::new(Cell::new([0; 2]));
    let mut simulation = Simulation::new(machine.clone(), 1);
    for (nth, [from, to]) in ways.into_iter().enumerate() {
        let (words, theirs, took) = (Rc::clone(&words), Rc::clone(&words), Rc::clone(&took));
        // Two cores a node, so that each has its own.
        simulation = simulation
            .thread_on(2 * from + nth as u32, move || _ = theirs[nth].fetch_add(1, Relaxed))
            .thread_on(2 * to + nth as u32, move || {
                work(10_000 - now());
                let ns = time(|| _ = words[nth].load(Relaxed));
                let mut both = took.get();
                both[nth] = ns;
                took.set(both);
            });
    }
    let _ = simulation.run(0).expect("all end");
    took.get()
}

#[test]
fn a_way_of_two_hops_is_made_of_links_that_others_use_too() {
    let m = Machine { idle: vec![], ..Machine::eight_sockets().shape(8, 2).without_jitter() };
    let narrow = Machine { link: Some(Link { line_ns: 1, transfers: 1 }), ..m.clone() };
    let hops = m.topology.hops().to_vec();
    // From socket 0 to 2, which is two hops away, by the one that is a hop from both.
    let alone = [m.transfer_ns(0, 4), m.transfer_ns(0, 2)];
    let delayed = |stop: u32| {
        let seen = two_at_once(&narrow, [[0, 2], [stop, 2]]);
        assert_eq!(two_at_once(&m, [[0, 2], [stop, 2]]), alone, "a way of its own");
        assert_eq!(two_at_once(&narrow, [[2, 0], [stop, 2]]), alone, "the other direction");
        seen != alone
    };
    let last = (0..8).filter(|&stop| hops[stop][2] == 1);
    let seen: Vec<_> = last.map(|stop| (hops[0][stop] == 1, delayed(stop as u32))).collect();
    assert!(seen.iter().all(|(between, delayed)| between == delayed), "{seen:?}");
    assert!(seen.iter().any(|&(between, _)| between) && seen.len() == 3, "{seen:?}");
}

/// A route is as long as its hops say, and each step of it is one that has nothing between.
#[test]
fn links_are_enough_for_all_ways_of_the_machines() {
    for name in ["8s-192c", "opteron-64c", "ladder-64c", "numa-1024c", "e7-8895v3-4s"] {
        let known = known(name).expect("a preset").machine.clone().without_jitter();
        let machine = Machine { link: Some(Link { line_ns: 1, transfers: 1 }), ..known };
        let (nodes, cpus) = (machine.topology.nodes(), machine.cores());
        let first = |node| (0..cpus).find(|&cpu| machine.socket_of(cpu) == node).expect("a CPU");
        let from = first(0);
        for to in (1..nodes).map(first) {
            let shared = word();
            let other = Rc::clone(&shared);
            let expected_ns = machine.transfer_ns(from, to);
            let simulation = Simulation::new(machine.clone(), 1)
                .thread_on(from, move || _ = shared.fetch_add(1, Relaxed))
                .thread_on(to, move || {
                    work(100_000);
                    assert_eq!(time(|| _ = other.load(Relaxed)), expected_ns);
                });
            let _ = simulation.run(0).expect("both end");
        }
    }
}

#[test]
fn so_many_lines_of_a_touch_are_under_way_at_a_time() {
    let m = small();
    let data = Rc::new(OwnLine([0_u8; 25 * 64]));
    let other = Rc::clone(&data);
    let simulation = Simulation::new(m.clone(), 1)
        .thread_on(0, move || touch(&other.0, Access::Write))
        .thread_on(4, move || {
            work(10_000);
            let took = time(|| touch(&data.0, Access::Read));
            assert_eq!(took, 3 * m.transfer_ns(0, 4) + (9 + 9 + 4) * m.occupancy_ns);
        });
    let _ = simulation.run(0).expect("both end");
}

/// Whether an owner that wants its line again `late_ns` later than another still finds it there.
fn still_there(late_ns: u64, seed: u64) -> bool {
    let m = small();
    let (shared, hit) = (word(), Rc::new(Cell::new(false)));
    let (other, told) = (Rc::clone(&shared), Rc::clone(&hit));
    let transfer_ns = m.transfer_ns(0, 4);
    let simulation = Simulation::new(m.clone(), seed)
        .thread_on(0, move || {
            shared.fetch_add(1, Relaxed);
            work(10_000 - now() + late_ns);
            let took = time(|| _ = shared.fetch_add(1, Relaxed));
            told.set(took == m.rmw_ns);
            assert!(told.get() || took == 2 * transfer_ns - late_ns, "{took} ns");
        })
        .thread_on(4, move || {
            work(10_000 - now());
            assert_eq!(time(|| _ = other.fetch_add(1, Relaxed)), transfer_ns);
        });
    let _ = simulation.run(0).expect("both end");
    hit.get()
}

/// The owner of a line keeps it until the next request has come to it.
#[test]
fn an_owner_hits_until_it_is_asked_for_the_line() {
    let transfer_ns = small().transfer_ns(0, 4);
    let hits = |late_ns| (0..50).filter(|&seed| still_there(late_ns, seed)).count();
    assert!(hits(1) >= 45);
    assert!((10..=40).contains(&hits(transfer_ns * 2 / 5)));
    assert_eq!(hits(transfer_ns * 4 / 5 + 1), 0);
}
