//! Who runs what next: workers that share tasks, by a policy that is a value.
//!
//! | file | what is in it |
//! |---|---|
//! | `crew`, `worker` | workers, their queues, and the one that tasks from outside come in by |
//! | `seats` | which worker has which queue, and how that is taken from one in a long task |
//! | `watch` | who looks for workers in long tasks |
//! | `asked` | whose queue a policy has looked at |
//! | `counters` | what workers count |
//! | `idlers` | workers that have nothing to do, and who wakes them |
//! | `policy` | what a policy decides, and what it may touch |
//! | `scheme` | policies made of an order, a spread and a kind of queue |
//! | `slot` | first in, first out, with a slot for the last |
//! | `ranked` | earliest deadline first; priorities that grow with age |
//! | `staged` | a queue for each kind of task |
//! | `boxed` | a policy that is chosen while the program runs |
//! | `swap`, `several` | policies of which one is in charge, and another at any time |
//! | `named` | policies by name |
//! | `lazy` | policies that wake nobody for few short tasks |
//! | `look` | what workers do now, for who looks from outside |
//! | `order` | in which order a worker runs its tasks |
//! | `surplus` | where tasks go that must not be refused |
//! | `spill` | a queue for what workers have no room for |
//! | `tickets` | workers that are busy, and say so |
//! | `requests` | workers that hand over what others have asked for |
//! | `spread` | how tasks come to workers that have none |
//!
//! Nothing here knows what a task is: it is a word that names something. So the same lines schedule
//! closures on Linux, and numbers in the model checker and on a simulated machine.
//!
//! After Modelski's dissertation, whose policies and distributions these are; parking, and what
//! else it leaves out, is after the schedulers of Go and Tokio.

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
