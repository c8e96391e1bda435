//! Tests of the placement of memory, and of the cost of a detour through a line's home.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, AtomicInteger};
use antiphon_sim::{Access, Outcome};
use antiphon_sim::{Machine, Model, OwnLine, Placement, Simulation, now, touch, work};

use crate::{Word, small, time, word};

/// Eight sockets of two cores, up to two hops apart.
fn eight() -> Machine {
    Machine { idle: vec![], ..Machine::eight_sockets().shape(8, 2).without_jitter() }
}

fn on(machine: Machine, placement: Placement) -> Simulation {
    Simulation::new(machine, 1).model(Model { placement, ..Model::default() })
}

/// How long a core of that socket takes to read a line that no cache has, from each node's memory.
fn from_memory(machine: &Machine, socket: u32, placement: Placement) -> u64 {
    let took = Rc::new(Cell::new(0));
    let told = Rc::clone(&took);
    let (fresh, cores) = (word(), machine.cores() / machine.topology.nodes());
    let simulation = on(machine.clone(), placement)
        .thread_on(socket * cores, move || told.set(time(|| _ = fresh.load(Relaxed))));
    let _ = simulation.run(0).expect("it ends");
    took.get()
}

#[test]
fn a_miss_costs_by_the_distance_of_the_memory() {
    let m = eight();
    for socket in 0..8 {
        let near = m.topology.memory_ns(2 * socket, socket);
        for placement in [Placement::Near, Placement::FirstTouch, Placement::On(socket)] {
            assert_eq!(from_memory(&m, socket, placement), near);
        }
        let far = m.topology.memory_ns(2 * socket, 0);
        assert_eq!(from_memory(&m, socket, Placement::On(0)), far);
        // The first page of all.
        assert_eq!(from_memory(&m, socket, Placement::Interleaved), far);
    }
    assert!(from_memory(&m, 2, Placement::On(0)) > from_memory(&m, 1, Placement::On(0)));
}

/// How long a core of one socket takes to write a line that a core of another has written.
fn handed(machine: &Machine, from: u32, to: u32, placement: Placement) -> u64 {
    let (shared, took) = (word(), Rc::new(Cell::new(0)));
    let (other, told) = (Rc::clone(&shared), Rc::clone(&took));
    let simulation = on(machine.clone(), placement)
        .thread_on(from, move || _ = shared.fetch_add(1, Relaxed))
        .thread_on(to, move || {
            work(10_000);
            told.set(time(|| _ = other.fetch_add(1, Relaxed)));
        });
    let _ = simulation.run(0).expect("both end");
    took.get()
}

#[test]
fn a_line_goes_by_its_home_if_that_is_on_neither_side() {
    let m = eight();
    let direct = |from, to| m.transfer_ns(from, to);
    let memory = |on: u32, of| m.topology.memory_ns(2 * on, of);
    // Cores 0 and 2 are of sockets 0 and 1, one hop apart; cores 0 and 4 of 0 and 2, two.
    for (from, to) in [(0, 2), (0, 4), (4, 0)] {
        let by = |placement| handed(&m, from, to, placement);
        for near in [Placement::Near, Placement::FirstTouch, Placement::On(from / 2)] {
            assert_eq!(by(near), direct(from, to), "{near:?}");
        }
        assert_eq!(by(Placement::On(to / 2)), direct(from, to));
        for home in (0..8).filter(|&home| home != from / 2 && home != to / 2) {
            let there_and_back = |one, other| memory(one, other) - memory(one, one);
            let detour = there_and_back(from / 2, home) + there_and_back(home, to / 2)
                - there_and_back(from / 2, to / 2);
            let seen = by(Placement::On(home));
            assert_eq!(seen, direct(from, to) + detour / 2, "{from} to {to} by {home}");
            assert!(seen > direct(from, to) || (from, to) != (0, 2));
        }
    }
}

#[test]
fn what_a_cache_shares_needs_no_home() {
    let m = eight();
    assert_eq!(handed(&m, 0, 1, Placement::On(7)), m.transfer_ns(0, 1));
}

#[test]
fn readers_and_who_invalidates_their_copies_go_by_the_home_too() {
    let m = eight();
    let took = |placement| {
        let (shared, took) = (word(), Rc::new(Cell::new([0; 2])));
        let mut simulation = on(m.clone(), placement);
        for (nth, core) in [0, 2, 4].into_iter().enumerate() {
            let (shared, took) = (Rc::clone(&shared), Rc::clone(&took));
            simulation = simulation.thread_on(core, move || {
                work(10_000 * nth as u64);
                let read = time(|| _ = shared.load(Relaxed));
                work(10_000);
                took.set([read, time(|| _ = shared.fetch_add(1, Relaxed))]);
            });
        }
        let _ = simulation.run(0).expect("all end");
        took.get()
    };
    let (near, far) = (took(Placement::On(0)), took(Placement::On(7)));
    assert!(near.iter().zip(far).all(|(&near, far)| near < far), "{near:?}, {far:?}");
}

/// Two sockets touch a line each, and then 200 of their own in turns.
fn turns(placement: Placement) -> Outcome {
    let lines = Rc::new([const { OwnLine(Word::ZERO) }; 400]);
    let mut simulation = on(small(), placement);
    for (nth, core) in [0, 4].into_iter().enumerate() {
        let lines = Rc::clone(&lines);
        simulation = simulation.thread_on(core, move || {
            work(1_000 * nth as u64);
            for line in lines[200 * nth..].iter().take(200) {
                line.load(Relaxed);
                work(10_000 - now() % 10_000 + 1_000 * nth as u64);
            }
        });
    }
    simulation.run(0).expect("both end")
}

/// Both sockets' lines are on the pages that were there when they came: 64 of the 400 lines are on
/// each, half of them of the socket that did not come first.
#[test]
fn a_page_is_of_who_touches_it_first() {
    let (m, ends) = (small(), |placement| turns(placement).end_ns);
    // The last to touch is of the second socket, and the last page is the first one's.
    let far_ns = m.topology.memory_ns(4, 0) - m.topology.memory_ns(4, 1);
    assert!(far_ns > 0);
    assert_eq!(ends(Placement::FirstTouch), ends(Placement::On(0)));
    assert_eq!(turns(Placement::FirstTouch), turns(Placement::FirstTouch));
    // The seventh page, from 0.
    assert_eq!(ends(Placement::Interleaved), ends(Placement::On(0)));
}

#[test]
fn far_memory_comes_over_the_link() {
    let m = Machine { occupancy_ns: 50, ..small() };
    let took = |placement| {
        let data = Rc::new(OwnLine([0_u8; 4 * 64]));
        let took = Rc::new(Cell::new(0));
        let told = Rc::clone(&took);
        let simulation = on(m.clone(), placement)
            .thread_on(4, move || told.set(time(|| touch(&data.0, Access::Read))));
        let _ = simulation.run(0).expect("it ends");
        took.get()
    };
    assert_eq!(took(Placement::On(1)), m.memory_ns(4) + 3 * m.hit_ns);
    assert_eq!(took(Placement::On(0)), m.topology.memory_ns(4, 0) + 3 * 50);
}

#[test]
#[should_panic(expected = "no node 2: there are 2, from 0")]
fn a_node_that_is_not_there_has_no_pages() {
    let _ = on(small(), Placement::On(2)).thread(|| ()).run(0);
}
