//! Cooperative fair sharing of a CPU: timers when they are due, and a fair share for every thread.
//!
//! A program that is both on time and hungry (a player, a game, an instrument) has work that is due
//! at a given moment, and work that should be done as soon as possible. With
//! [`poll`](Scheduler::poll), the document's `coop_poll`, it tells the scheduler of its CPU when
//! its next timer is due, and how important its other work is. In return the program learns when
//! others' timers are due, so that it can yield to them. The scheduler reserves nothing, and needs
//! no estimate of a program's demand.
//!
//! ```
//! use antiphon_runtime::coop::{Group, Member, Members, Options, Pick, Scheduler, WEIGHT};
//!
//! let mut cpu = Scheduler::new(Members::new(), Options::default());
//! let player = cpu.join(Member::new(Group::Own, WEIGHT)).unwrap();
//! let hog = cpu.join(Member::new(Group::Own, WEIGHT)).unwrap();
//! // It has a timer at 3 ms, and nothing to do before.
//! cpu.poll(player, 0, Some(3_000_000), None);
//! let Pick::Run { id, until_ns, .. } = cpu.pick(0) else { unreachable!() };
//! assert_eq!((id, until_ns), (hog, 3_000_000));
//! cpu.preempt(hog, 3_000_000);
//! assert!(matches!(cpu.pick(3_000_000), Pick::Run { id, due: true, .. } if id == player));
//! ```
//!
//! # States
//!
//! ```text
//!                    pick                      poll, with work            pick
//!      ┌─────────┐ ◄─────── ┌───────┐ ◄───────────────────────┐     (its release has come)
//!      │ Running │          │ Ready │ ◄─────────────┐         │   ┌─────────┐
//!      └────┬────┘ ───────► └───────┘               │ wake    └── │         │
//!           │   preempt, expire                ┌────┴───┐         │ Waiting │
//!           ├──────── block, poll with nothing │ Asleep │         │         │
//!           │                 └──────────────► └────────┘         └────▲────┘
//!           └───────────── poll, with a release only ──────────────────┘
//! ```
//!
//! | standing | by | until |
//! |---|---|---|
//! | plain | it has never polled | it polls |
//! | cooperative | it polls | it is demoted |
//! | demoted, `overrun` | it runs for its slice and the slack, and others wait | it polls |
//! | demoted, `slept` | it sleeps otherwise than by polling | it polls |
//! | demoted, `share` | it is ahead of the least by more than the threshold | it is not |
//!
//! A cooperative thread whose release time has passed runs first, in order of release times.
//! Otherwise the thread with the least virtual time runs, until the release of a cooperative thread
//! or for `period / N`.
//!
//! # Invariants
//!
//! - COOP-1 (window): the virtual times of threads that want the CPU are less than half of the
//!   circle apart, so their order is right even if they wrap around.
//! - COOP-2 (groups): the threads of a group have one virtual time, which advances when any of them
//!   runs, by the weight of all that want the CPU.
//! - COOP-3: the least virtual time of the threads that want the CPU never decreases.
//! - COOP-4 (use it or lose it): a thread that wants the CPU again starts no earlier than that
//!   time.
//! - COOP-5 (police): a thread that has had more than its share by more than the threshold is not
//!   served on time, so a false release gains at most the threshold, once.
//!
//! | file | contents |
//! |---|---|
//! | `ask` | what a thread and its scheduler tell each other |
//! | [`boost`] | late loops run before all others, without this scheduler |
//! | `member` | a thread, as the scheduler knows it |
//! | `virtual_time` | how much of the CPU a thread has had |
//! | `table` | where the members are |
//! | `scheduler` | events that change their state |
//! | `choice` | which thread runs next |
//! | `options` | the parameters |
//! | `line`, `bits`, `lines` | the same table in memory that processes share |
//! | `relay` | which thread has the CPU, and which holds the table's lock |
//! | `baton`, `section` | a tier without privilege: processes that hand the CPU to each other |
//! | `weighted`, `weights` | processes that the kernel runs, by weights that they choose |
//! | `accounts` | CPU time of threads, as the system reports it |
//! | `domains` | which of several CPUs a thread should share |
//!
//! After Krasic, Saubhasik, Sinha and Goel, "Fair and Timely Scheduling via Cooperative Polling"
//! (EuroSys 2009), §3. The differences here:
//!
//! - A slice ends at the earliest release of the *others*: the running thread dispatches its own
//!   timers.
//! - A thread that ran too long is demoted only if another was kept waiting.
//! - A thread that was demoted for its share is cooperative again as soon as it is no longer ahead,
//!   even without a poll: a thread that sleeps until a release can't poll.
//! - In a group, a member that has not told its importance takes turns with the rest.

mod accounts;
mod ask;
mod baton;
mod bits;
pub mod boost;
mod choice;
mod domains;
mod line;
mod lines;
mod member;
mod options;
mod relay;
mod scheduler;
mod section;
mod table;
#[cfg(test)]
mod tests;
mod virtual_time;
mod weighted;
mod weights;

pub use accounts::{Accounts, Doing, Seen};
pub use ask::{Alone, Answer, Ask, Cooperate, Halves, Pause};
pub use baton::{Baton, NoSeat};
pub use choice::Pick;
pub use domains::Domains;
pub use line::{FAR_NS, Header, Line, MAGIC, Now, PAGE_BYTES, PLACES, Page, Tally, VERSION};
pub use member::{Demotion, Group, Member, Standing, State};
pub use options::Options;
pub use relay::{AtTable, Held, Relay};
pub use scheduler::Scheduler;
pub use table::{Head, Members, Running, Table};
pub use virtual_time::{VirtualTime, WEIGHT};
pub use weighted::{ABSENT_NS, Weigh, Weighted};
pub use weights::MOST_STEPS;
