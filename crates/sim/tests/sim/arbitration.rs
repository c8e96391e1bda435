//! Tests of the order of requests for a contended line.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::AtomicInteger;
use antiphon_sim::{Arbitration, Machine, Model, Simulation, work};

use crate::{small, word};

/// Threads on `cores` add to one word, in this order and 1 ns apart, while the line is on its way
/// to core 0; returns the order in which they did.
fn order(arbitration: Arbitration, machine: Machine, seed: u64, cores: &[u32]) -> Vec<u32> {
    let (shared, order) = (word(), Rc::new(RefCell::new(Vec::new())));
    let model = Model { arbitration, ..Model::default() };
    let mut simulation = Simulation::new(machine, seed).model(model);
    for (nth, &core) in [0].iter().chain(cores).enumerate() {
        let (shared, order) = (Rc::clone(&shared), Rc::clone(&order));
        simulation = simulation.thread_on(core, move || {
            work(1_000 + nth as u64);
            shared.fetch_add(1, Relaxed);
            order.borrow_mut().push(core);
        });
    }
    let _ = simulation.run(0).expect("all end");
    order.borrow()[1..].to_vec()
}

const COMERS: [u32; 7] = [4, 1, 5, 2, 6, 3, 7];

#[test]
fn the_first_to_come_is_served_first() {
    assert_eq!(order(Arbitration::Fifo, small(), 1, &COMERS), COMERS);
}

#[test]
fn the_nearest_is_served_first() {
    let nearest = order(Arbitration::UNBOUNDED, small(), 1, &COMERS);
    assert_eq!(nearest, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn nobody_is_passed_more_often_than_the_bound() {
    let bounded = order(Arbitration::Nearest { bypass: 2 }, small(), 1, &COMERS);
    assert_eq!(bounded, [1, 2, 4, 5, 6, 7, 3]);
    let machine = small().shape(2, 30);
    // All of the first socket come after one of the other.
    let comers: Vec<u32> = [30].into_iter().chain(1..30).collect();
    let place = |arbitration| {
        let order = order(arbitration, machine.clone(), 1, &comers);
        order.iter().position(|&core| core == 30).expect("it is served")
    };
    assert_eq!(place(Arbitration::NEAREST), 16);
    assert_eq!(place(Arbitration::UNBOUNDED), 29);
}

#[test]
fn the_order_is_random_by_the_seed() {
    let random = |seed| order(Arbitration::Random, small(), seed, &COMERS);
    assert_eq!(random(1), random(1));
    assert!((2..6).any(|seed| random(seed) != random(1)));
    let mut sorted = random(1);
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 2, 3, 4, 5, 6, 7]);
}
