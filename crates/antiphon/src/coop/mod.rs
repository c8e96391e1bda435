//! Loops that are on time while the machine is busy, by whatever the system allows.
//!
//! A player, a game or an instrument has timers that are due at a moment, and work that takes all
//! the CPU it gets. The kernel shares the CPU out fairly, and so has such a program wait when its
//! timer is due: it has had its share. There are ways around that, called tiers:
//!
//! | [`Tier`] | how a timer comes to run | what it needs | what it costs |
//! |---|---|---|---|
//! | T0 | a scheduler in the kernel that knows of it | `sched_ext` | a later release has it |
//! | T1 | [`Booster`]: the loop runs first while it is late | real-time rights | a helper |
//! | T1b | [`Split`]: in a real-time thread of its own | real-time rights | callbacks are `Send` |
//! | T2 | [`Split`]: in a thread of its own that has a short slice | Linux 6.12 | the same |
//! | T3 | [`Domain`]: programs hand the CPU to each other | that all do | as good as they are |
//!
//! Programs of one group, whose share goes to whom it is most important, are that by T3; or by
//! weights ([`Domain::weigh`]), inside of T1: `booster.boost(domain.weigh(group, WEIGHT)?)`.
//!
//! With T1 and T3 a loop's callbacks and its work are never run at the same time, and need no lock
//! between them. [`available`] says what there is here, and why the rest is not; and which is the
//! best, which hangs on whom the program competes with ([`Available::against`]): slices order
//! threads of one control group or session only.
//!
//! ```
//! use antiphon::coop::{Alone, Ask, BoostOptions, Booster, Cooperate, Switched};
//! # use antiphon::generic::{Linux, Platform};
//!
//! let (mut tier, switch) = Switched::new(Alone);
//! if let Err(refused) = switch.boost(BoostOptions::default()) {
//!     eprintln!("not boosted: {refused}");
//! }
//! // A loop: its timers first, then some work; and it says when the next timer is due.
//! let mut wait = |until: Option<u64>| std::thread::yield_now();
//! for _ in 0..10 {
//!     let release_ns = Linux::now(antiphon::coop::Clock::Monotonic) + 1_000_000;
//!     tier.poll(Ask { release_ns: Some(release_ns), importance: Some(0) }, &mut wait);
//! }
//! switch.plain();
//! ```
//!
//! # T3: programs that hand their CPU to each other
//!
//! Each tells when its next timer is due and how important the rest of its work is, is told the
//! same of the others, and gives the CPU away when they are due. No privilege, no reservation, no
//! estimate: the threads that have joined a [`Domain`] hand their CPU to each other, through memory
//! that they share and a futex.
//!
//! ```no_run
//! use antiphon::coop::{Ask, Cooperate as _, Domain, DomainOptions, Group, WEIGHT};
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
//! What to know:
//!
//! - **Only members wait for each other.** A program on that CPU that has not joined competes with
//!   the one member that runs, as one thread with one: the kernel sees no more of them. A control
//!   group whose weight is that of all members gives them their share back.
//! - **A member that does not poll in time** is waited for until the slack after another's release
//!   is over, or that after its slice. Then who is due, or another that watches, takes the CPU from
//!   it; it is demoted (`overrun`, or `slept` where it has gone to sleep by itself, or was stopped)
//!   until it polls, and what it has had is charged to it by the kernel's account. One that was
//!   killed is forgotten. The one that watches is who has handed the CPU over, or another that is
//!   ready; where that one is stopped as well, work that is not due may wait for a period and the
//!   slack, for each of the two. `docs/coop-line.md` has the table.
//! - **One user's affair.** The memory is a file of mode 0600 in a directory of mode 0700, for each
//!   user, name and CPU: another user can neither read nor write it. Who may write it can do with
//!   its members as they like, which they can by signals, too. Whatever stands in it, members read
//!   it within bounds and go on. A file that is cut while it is mapped ends those that touch it
//!   (`SIGBUS`).
//! - **One PID namespace.** Members name each other by the kernel's numbers; who opens a domain
//!   that members of another namespace use is told so.
//! - **Several CPUs** are as many domains. [`Domain::open_lightest`] is the one with the most room,
//!   for a thread that may run on any of them; it stays where it has joined.
//! - **After a `fork`** the child is no member: its polls are those of [`Alone`].
//! - **Programs with another `$XDG_RUNTIME_DIR`**, or without one, have other domains.
//!
//! # Real-time rights, and rtkit
//!
//! T1 and T1b need `CAP_SYS_NICE` or a limit `RLIMIT_RTPRIO`: with the usual priorities, by which
//! [`available`] answers, one of 3. The daemon rtkit has threads of users without those given a
//! priority, and is not asked here:
//!
//! - **T1** raises a loop each time that a timer is overdue, and lowers it. A thread without the
//!   right may lower a priority that it was given, and leave its class, but not have it again; a
//!   test (`coop_rights`) sees the kernel say so. And rtkit answers 25 requests in 20 s, of all
//!   threads of a user (its `--actions-per-burst-max`), each a call over D-Bus.
//! - **T1b** could do with one request, for its one thread. For that the whole process has to have
//!   a limit `RLIMIT_RTTIME`, by which the kernel ends it where such a thread runs for that long
//!   without a sleep: a program has to want that. A limit `RLIMIT_RTPRIO` of the user's, as groups
//!   for audio have it, gives T1, too, and needs no daemon.

mod boosted;
mod booster;
mod domain;
mod error;
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
pub use split::{Split, SplitOptions, SplitTimer, Worker};
pub use switched::{Switch, Switched};
pub use tardiness::Tardiness;
pub use tiers::{Available, Competitors, Tier, Unavailable, available};
pub use weighted::Weighted;
