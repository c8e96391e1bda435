//! The scheduler: workers that share tasks, by a policy that is a value.
//!
//! | file | what is in it |
//! |---|---|
//! | `crew`, `worker` | workers, their queues, and the shared queue of tasks from outside |
//! | `put` | how a task is put in: its rank, and what happens if there is no room |
//! | `seats` | which worker has which queue; how a worker in a long task loses its queue |
//! | `watch` | the watchdog: it finds workers in long tasks |
//! | `asked` | which queues a policy has looked at |
//! | `counters` | what workers count |
//! | `idlers` | workers without work, and their wake-ups |
//! | `policy` | what a policy decides, and what it may touch |
//! | `scheme` | policies made of an order, a spread and a kind of queue |
//! | `slot` | first in, first out, with a slot for the last |
//! | `ranked` | earliest deadline first; priorities that grow with age |
//! | `staged` | a queue for each kind of task |
//! | `boxed` | a policy that is chosen while the program runs |
//! | `swap`, `several` | policies of which one is in charge, and another at any time |
//! | `named` | policies by name |
//! | `lazy` | policies that wake no worker for a few short tasks |
//! | `look` | what workers do now, for observers |
//! | `order` | in which order a worker runs its tasks |
//! | `surplus` | the queue of tasks that must not be refused |
//! | `spill` | the queue of tasks that do not fit in a worker's queue |
//! | `tickets` | busy workers announce themselves |
//! | `requests` | workers hand tasks over on request |
//! | `spread` | how tasks reach workers without tasks |
//!
//! Nothing here knows what a task is: it is a word that names something. So the same code schedules
//! closures on Linux, and numbers in the model checker and on a simulated machine.
//!
//! The policies and distributions are those of Modelski's dissertation. Parking, and the rest that
//! it leaves out, follows the schedulers of Go and Tokio.

mod asked;
mod boxed;
mod counters;
mod crew;
mod idlers;
mod lazy;
mod look;
mod named;
mod order;
mod policy;
mod put;
mod ranked;
mod requests;
mod scheme;
mod seats;
mod several;
mod slot;
mod spill;
mod spread;
mod staged;
mod surplus;
mod swap;
mod tickets;
mod watch;
mod worker;

pub use boxed::{AnyQueue, AnyState, BoxedPolicy};
pub use counters::Stats;
pub use crew::Crew;
pub use idlers::Idlers;
pub use lazy::{Lazy, Made};
pub use look::{Look, State, Working};
pub use named::UnknownPolicy;
pub use order::{Adaptive, Ask, End, Fifo, Lifo, Mark, Order, Reverse, Stochastic, Switch};
pub use policy::{Others, Own, Policy, Victim};
pub use put::{Put, Room, Wake};
pub use ranked::{Aging, Deadlines, Key, Ranked};
pub use requests::Requests;
pub use scheme::{Asked, Deques, InBlocks, Queues, Scheme};
pub use several::Several;
pub use slot::LifoSlot;
pub use spill::Spill;
pub use spread::{ByWeight, Neighbours, Share, Spread, Steal};
pub use staged::Staged;
pub use swap::{Charge, Swap};
pub use tickets::Tickets;
pub use watch::{Hog, Long, Watchdog};
pub use worker::Worker;
