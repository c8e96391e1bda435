//! The scheduler: workers that share tasks, by a policy that is passed as a value.
//!
//! | file | contents |
//! |---|---|
//! | `crew`, `worker` | workers, their queues, and the shared queue of tasks from outside |
//! | `put` | submission of a task: its rank, and what happens if there is no room |
//! | `seats` | which worker has which queue; how a worker in a long task loses its queue |
//! | `watch` | the watchdog: it finds workers in long tasks |
//! | `asked` | the queue that a policy accessed last |
//! | `counters` | the counters of workers |
//! | `idlers` | workers without work, and their wake-ups |
//! | `policy` | the decisions of a policy, and what it may access |
//! | `scheme` | policies made of an order, a spread and a kind of queue |
//! | `slot` | first in, first out, with a slot for the newest task |
//! | `ranked` | earliest deadline first; priorities that grow with age |
//! | `staged` | a queue for each kind of task |
//! | `boxed` | a policy that is chosen at run time |
//! | `swap`, `several` | several policies, of which one is active and may be replaced at any time |
//! | `named` | policies by name |
//! | `lazy` | policies that wake no worker for a few short tasks |
//! | `look` | the present activity of workers, for observers |
//! | `order` | the order in which a worker runs its tasks |
//! | `surplus` | the queue of tasks that must not be refused |
//! | `spill` | the queue of tasks that do not fit in a worker's queue |
//! | `tickets` | busy workers announce themselves |
//! | `requests` | workers hand tasks over on request |
//! | `spread` | how tasks reach workers without tasks |
//!
//! Nothing here depends on what a task is: it is a word that names something. So the same code
//! schedules closures on Linux, and numbers in the model checker and on a simulated machine.
//!
//! The policies and distributions are those of Modelski's dissertation. Parking, and other parts
//! that it leaves out, follow the schedulers of Go and Tokio.

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
