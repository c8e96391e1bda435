//! What the sockets' caches and the ways between them add to an access.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, AtomicInteger};
use antiphon_sim::{Access, Machine, OwnLine, Simulation, now, touch, work};

use crate::{small, time, word};

/// How long a read on core 6 takes of a line that cores 0 and 5 have.
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

/// Whether an owner that wants its line again so much later than another still finds it there.
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

/// Who has a line keeps it until the next request has come to it.
#[test]
fn an_owner_hits_until_it_is_asked_for_the_line() {
    let transfer_ns = small().transfer_ns(0, 4);
    let hits = |late_ns| (0..50).filter(|&seed| still_there(late_ns, seed)).count();
    assert!(hits(1) >= 45);
    assert!((10..=40).contains(&hits(transfer_ns * 2 / 5)));
    assert_eq!(hits(transfer_ns * 4 / 5 + 1), 0);
}
