//! Programs that must be on time and are hungry share a CPU: `coop_poll` among processes.
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
//! # What to know
//!
//! - **Only members wait for each other.** A program on that CPU that has not joined competes with
//!   the one member that runs, as one thread with one: the kernel sees no more of them. A control
//!   group whose weight is that of all members gives them their share back.
//! - **A member that does not poll in time** is waited for until its slice and the slack are over.
//!   Then whoever wakes first takes the CPU from it; it is demoted (`overrun`, or `slept` where it
//!   has gone to sleep by itself, or was stopped) until it polls, and what it has had is charged to
//!   it by the kernel's account. One that was killed is forgotten. Work that is not due may wait
//!   for a period and the slack before somebody looks.
//! - **One user's affair.** The memory is a file of mode 0600 in a directory of mode 0700, for each
//!   user, name and CPU: another user can neither read nor write it. Who may write it can do with
//!   its members as they like, which they can by signals, too. Whatever stands in it, members read
//!   it within bounds and go on. A file that is cut while it is mapped ends those that touch it
//!   (`SIGBUS`).
//! - **One PID namespace.** Members name each other by the kernel's numbers; who opens a domain
//!   that members of another namespace use is told so.
//! - **After a `fork`** the child is no member: its polls are those of [`Alone`].
//! - **Programs with another `$XDG_RUNTIME_DIR`**, or without one, have other domains.

mod domain;
mod error;
mod memory;
mod system;

pub use antiphon_runtime::coop::{
    Alone, Answer, Ask, Cooperate, Demotion, Group, Options, PLACES, Standing, VERSION, WEIGHT,
};
pub use domain::{Domain, DomainOptions, MemberStatus, Membership};
pub use error::{JoinError, OpenError};
