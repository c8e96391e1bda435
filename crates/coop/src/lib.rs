//! Event loops that run their timers on time while the machine is busy, by the means that the
//! system allows.
//!
//! - [`event_loop`]: event loops, one or one for each CPU; an event may be a fiber.
//! - [`available`]: which of the following this machine allows.
//! - [`Scheduled`], [`Booster`], [`Split`], [`Domain`], [`Switched`]: to be on time beside
//!   other programs.
//!
//! A player, a game or an instrument has timers that are due at a given time, and work that takes
//! all the CPU time it gets. The kernel shares the CPU fairly, so such a program has often used up
//! its share when its timer is due, and waits. There are several ways around that, called tiers:
//!
//! | [`Tier`] | how a timer comes to run | what it needs | what it costs |
//! |---|---|---|---|
//! | T0 | [`Scheduled`]: a scheduler in the kernel knows | `antiphon sched` | root starts it |
//! | T1 | [`Booster`]: the loop runs first while it is late | real-time rights | a helper |
//! | T1b | [`Split`]: in a real-time thread of its own | real-time rights | callbacks are `Send` |
//! | T2 | [`Split`]: in a thread of its own that has a short slice | Linux 6.12 | the same |
//! | T3 | [`Domain`]: programs hand the CPU to each other | that all do | as good as they are |
//!
//! Programs of one group may give the group's share to the member whose work is most important: by
//! T3, or by weights ([`Domain::weigh`]) within T1: `booster.boost(domain.weigh(group, WEIGHT)?)`.
//!
//! With T1 and T3 the callbacks of a loop and its work never run at the same time, and need no lock
//! between them. [`available`] returns which tiers this machine has, why the others are missing,
//! and which is best. That depends on the programs with which this one competes
//! ([`Available::against`]): slices order only the threads of one control group or session.
//!
//! ```
//! use antiphon_coop::{Alone, Ask, BoostOptions, Booster, Cooperate, Switched};
//! # use antiphon_coop::event_loop::now_ns;
//!
//! let (mut tier, switch) = Switched::new(Alone);
//! if let Err(refused) = switch.boost(BoostOptions::default()) {
//!     eprintln!("not boosted: {refused}");
//! }
//! // A loop: its timers first, then some work; and it says when the next timer is due.
//! let mut wait = |until: Option<u64>| std::thread::yield_now();
//! for _ in 0..10 {
//!     let release_ns = now_ns() + 1_000_000;
//!     tier.poll(Ask { release_ns: Some(release_ns), importance: Some(0) }, &mut wait);
//! }
//! switch.plain();
//! ```
//!
//! # T3: programs that hand their CPU to each other
//!
//! Each program announces when its next timer is due and how important the rest of its work is,
//! gets the same from the others, and yields the CPU when their timers are due. This needs no
//! privilege, no reservation and no estimate: the threads that have joined a [`Domain`] hand the
//! CPU to each other through memory that they share and a futex.
//!
//! ```no_run
//! use antiphon_coop::{Ask, Cooperate as _, Domain, DomainOptions, Group, WEIGHT};
//!
//! let domain = Domain::open("players", DomainOptions::on(1))?;
//! // From here on this thread runs on CPU 1.
//! let mut member = domain.join(Group::Own, WEIGHT)?;
//! let mut frame_ns = 16_700_000; // of CLOCK_MONOTONIC
//! loop {
//!     // Decode something, show the frame if it is due …
//!     let ask = Ask { release_ns: Some(frame_ns), importance: Some(0) };
//!     let answer = member.poll(ask, &mut |until_ns| {
//!         // … and here wait for files, until then.
//!     });
//!     // Whoever is next needs the CPU by then: a chunk of work should be done.
//!     let budget_until_ns = answer.poll_at_ns;
//! #   frame_ns += budget_until_ns.map_or(0, |_| 1);
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Limitations:
//!
//! - **Only members wait for each other.** A program on that CPU that has not joined competes with
//!   the one member that runs, as one thread with another: the kernel sees no more of the members.
//!   A control group with the weight of all members gives them their share back.
//! - **A member that does not poll in time** is waited for until the slack after the release of
//!   another member is over, or the slack after its slice. Then the member that is due, or the
//!   watcher, takes the CPU from it. The late member is demoted (`overrun`; or `slept`, if it has
//!   gone to sleep by itself, or was stopped) until it polls, and is charged what it has used by
//!   the kernel's account. A member that was killed is forgotten. The watching member is the one
//!   that handed the CPU over, or another that is ready. If that one is stopped as well, work that
//!   is not due may wait for a period and the slack, for each of the two. `docs/coop-line.md` has
//!   the table.
//! - **One user.** The memory is a file of mode 0600 in a directory of mode 0700, for each user,
//!   name and CPU: another user can neither read nor write it. A program that can write it controls
//!   the members, but it can also do so by signals. Whatever the file contains, members read it
//!   within bounds and go on. If the file is truncated while it is mapped, programs that touch it
//!   end (`SIGBUS`).
//! - **One PID namespace.** Members identify each other by the kernel's thread numbers; a program
//!   that opens a domain whose members are in another namespace gets an error.
//! - **Several CPUs** need one domain each. [`Domain::open_lightest`] opens the one with the most
//!   room, for a thread that may run on any of them; the thread stays where it has joined.
//! - **After a `fork`** the child is not a member: its polls behave as [`Alone`].
//! - **Programs with another `$XDG_RUNTIME_DIR`**, or without one, have other domains.
//!
//! # Real-time rights, and rtkit
//!
//! T1 and T1b need `CAP_SYS_NICE` or a limit `RLIMIT_RTPRIO`: with the default priorities, for
//! which [`available`] answers, a limit of 3. The daemon rtkit gives a priority to threads of users
//! without either, and is not used here:
//!
//! - **T1** raises a loop each time a timer is overdue, and lowers it again. A thread without the
//!   right may lower a priority that it was given, and leave its class, but cannot get it back; the
//!   test `coop_rights` checks that the kernel refuses it. And rtkit answers 25 requests in 20 s,
//!   for all threads of a user (its `--actions-per-burst-max`), each a call over D-Bus.
//! - **T1b** would need one request, for its one thread. But then the whole process must have a
//!   limit `RLIMIT_RTTIME`, by which the kernel kills the process if such a thread runs for that
//!   long without a sleep: a program must agree to that. A limit `RLIMIT_RTPRIO` of the user, as
//!   the audio groups of distributions set it, also gives T1, and needs no daemon.

mod boosted;
mod booster;
mod domain;
mod error;
pub mod event_loop;
mod kernel;
mod memory;
mod split;
mod switched;
mod system;
mod tardiness;
mod tiers;
mod weighted;

pub use antiphon_linux::schedule::{Level, Refused, level};
pub use antiphon_platform::Clock;
pub use antiphon_runtime::coop::boost::Counts;
pub use antiphon_runtime::coop::{
    Alone, Answer, Ask, Cooperate, Demotion, Group, Halves, Options, PLACES, Pause, Standing,
    VERSION, WEIGHT,
};
pub use boosted::Boosted;
pub use booster::{BoostOptions, Booster, BoosterStats};
pub use domain::{Domain, DomainOptions, MemberStatus, Membership};
pub use error::{JoinError, OpenError};
pub use kernel::{Scheduled, Served};
pub use split::{Split, SplitOptions, SplitTimer, Worker};
pub use switched::{Switch, Switched};
pub use tardiness::Tardiness;
pub use tiers::{Available, Competitors, Scope, Tier, Unavailable, available};
pub use weighted::Weighted;
