//! Who runs what next: workers that share tasks, by a policy that is a value.
//!
//! | file | what is in it |
//! |---|---|
//! | `crew` | workers, their queues, and the one that tasks from outside come in by |
//! | `idlers` | workers that have nothing to do, and who wakes them |
//! | `policy` | what a policy decides, and what it may touch |
//! | `scheme` | policies made of an order and a spread |
//! | `order` | in which order a worker runs its tasks |
//! | `surplus` | where tasks go that must not be refused |
//! | `spread` | how tasks come to workers that have none |
//!
//! Nothing here knows what a task is: it is a word that names something. So the same lines schedule
//! closures on Linux, and numbers in the model checker and on a simulated machine.
//!
//! After Modelski's dissertation, whose policies and distributions these are; parking, and what
//! else it leaves out, is after the schedulers of Go and Tokio.

mod crew;
mod idlers;
mod order;
mod policy;
mod scheme;
mod spread;
mod surplus;

pub use crew::{Crew, Worker};
pub use idlers::Idlers;
pub use order::{End, Fifo, Lifo, Order, Reverse, Stochastic, Switch};
pub use policy::{Others, Own, Policy, Victim};
pub use scheme::Scheme;
pub use spread::{Neighbours, Share, Spread, Steal};
