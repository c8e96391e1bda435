//! Tests many short tasks from outside, while all workers sleep: a worker that is awake takes the
//! next task, and does not leave it to a worker that is being woken. All times are simulated: each
//! run is the same.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_runtime::sched::{Crew, Fifo, Put, Scheme, Share, Steal};
use antiphon_sim::{Sim, Simulation, known, work};
use antiphon_sync::queue::Item;

const TASKS: u64 = 400;
const WORKERS: usize = 8;
/// The time to run a task; the next constant is the time to make one.
const TASK_NS: u64 = 2_000;
const MAKE_NS: u64 = 100;
/// Time after which the workers sleep deeply, and take long to wake.
const LATER_NS: u64 = 5_000_000;

#[test]
fn short_tasks_from_outside_do_not_have_a_wake_each() {
    let machine = known("epyc-2x64c").expect("it is shipped").machine.clone();
    let scheme = Scheme::new(Fifo, Steal { share: Share::Half });
    let crew = Rc::new(Crew::<Sim, _>::new(scheme, WORKERS, TASKS as usize));
    let ran = Rc::new(Cell::new(0));
    let (here, done) = (crew.clone(), ran.clone());
    let outcome = Simulation::new(machine, 1)
        .threads(WORKERS + 1, move |number| {
            let Some(seat) = number.checked_sub(1) else {
                work(LATER_NS);
                for number in 0..TASKS {
                    work(MAKE_NS);
                    let item = Item::new(8 * (512 + number)).expect("a word for an item");
                    here.submit(item, Put::PLAIN).expect("room");
                }
                return here.close();
            };
            let mut worker = here.worker(seat).expect("a seat");
            while worker.next_task().is_some() {
                work(TASK_NS);
                done.set(done.get() + 1);
            }
        })
        .run(u64::MAX / 2)
        .expect("nobody waits for ever");
    assert_eq!(ran.get(), TASKS);
    assert!(outcome.counts.wakes < TASKS / 4, "{} wakes", outcome.counts.wakes);
}
