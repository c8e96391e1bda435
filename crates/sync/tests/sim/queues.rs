//! Tests of queues on simulated machines, for interleavings that are too rare with real threads.

use std::rc::Rc;

use antiphon_sim::{Machine, Sim, Simulation, think};
use antiphon_sync::queue::{Item, Lot, MultiQueue};

fn item(number: u64) -> Item {
    Item::new(8 * (512 + number)).expect("a word for an item")
}

/// A thread that finds no room goes to the queue that another thread has made meanwhile, even if
/// that is the last.
#[test]
fn a_multi_queue_that_grows_is_full_when_there_is_no_room() {
    for seed in 0..1_000 {
        let queue = Rc::new(MultiQueue::<Sim>::growing(1, 2, 2));
        for number in 0..2 {
            assert!(queue.push(item(number), &mut Lot::new(0)).is_ok());
        }
        let puts = |number| {
            let queue = Rc::clone(&queue);
            move || {
                think(1_000);
                let pushed = queue.push(item(number), &mut Lot::new(number));
                assert!(pushed.is_ok(), "seed {seed}: there is room for both");
            }
        };
        let simulation = Simulation::new(Machine::two_sockets().without_jitter(), seed);
        let _ = simulation.thread(puts(2)).thread(puts(3)).run(0).expect("both end");
    }
}
