//! T0: the scheduler in the kernel, and another tier while it is not there.
//!
//! ```text
//!                 connects              it answers, and registers the thread
//!     ┌──────┐ ─────────────► ┌───────┐ ─────────────────────────────────────► ┌───────┐
//!     │ Away │                │ Asked │                                        │ Under │
//!     └──────┘ ◄───────────── └───────┘                                        └───┬───┘
//!         ▲        refused                                                         │
//!         └────────────────────────────────────────────────────────────────────────┘
//!                       the page's time is older than 50 ms
//! ```
//!
//! - KERNEL-1: no poll waits for the scheduler. A connection is begun at one poll, and its answer
//!   is looked for at later ones.
//! - KERNEL-2: the inner tier is polled when the thread is not under the scheduler, and only then.
//!   Before the first poll under the scheduler, its members are told that the thread rests.
//! - KERNEL-3: a child of a fork touches neither the page of its parent nor its connection. It
//!   leaves both alone, goes on by the inner tier, and looks for the scheduler itself. A mark that
//!   the kernel empties at a fork tells it from its parent, however deep it is among children.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_hints::{Connecting, FRESH_NS, Hints, Registered, SOCKET, Thread};

use super::event_loop::now_ns;
use super::{Answer, Ask, Cooperate, Group};

/// How often a loop looks for a scheduler that it has lost, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;
/// How long a loop leaves a scheduler alone that has refused it, or that does not run all threads.
const REFUSED_NS: u64 = 1_000_000_000;

/// A loop that the scheduler in the kernel runs when it is due (`antiphon sched`), and that shares
/// its CPU by the tier `C` while there is no such scheduler.
///
/// It looks for the scheduler from its first poll on. When the scheduler ends, the loop notices
/// within a tenth of a second of CPU time, and goes on by the inner tier. When the scheduler is
/// there again, the loop registers again: it asks each second.
///
/// Event loops do this by themselves with a scheduler that runs all threads (`antiphon sched
/// --full`). One that runs only those that ask for it runs them when no other thread wants the
/// CPU: a program asks for that by this type.
///
/// The child of a fork leaves page and connection to its parent, and looks for the scheduler
/// itself.
///
/// A thread that it starts from a callback inherits the policy `SCHED_EXT`. A loop's own former
/// policy returns when this is dropped, unless the thread was given another one. The thread of a
/// loop of a real-time policy keeps that.
pub struct Scheduled<C> {
    inner: C,
    state: State,
    door: Door,
    /// Whether the scheduler has to run all threads.
    only_whole: bool,
    group: Group,
    served: Served,
    /// Where its event loop reports the same.
    reported: Option<Served>,
}

/// Tells whether a loop is under the scheduler in the kernel. A clone tells the same.
#[derive(Clone, Debug, Default)]
pub struct Served(Arc<AtomicBool>);

impl Served {
    /// Returns whether the loop was under the scheduler at its last poll.
    #[must_use]
    pub fn is_served(&self) -> bool {
        // Relaxed: a report.
        self.0.load(Relaxed)
    }

    /// Tells `tier` to report here, if it looks for the scheduler itself. Returns whether it does.
    pub(crate) fn is_told_by(&self, tier: &mut dyn Cooperate) -> bool {
        tier.reports_to(&self.0)
    }

    fn set(&self, is_served: bool) {
        // Relaxed: a report.
        self.0.store(is_served, Relaxed);
    }
}

/// How the scheduler is reached.
#[derive(Clone, Copy)]
struct Door {
    socket: &'static str,
    register: fn(Arc<Hints>) -> std::io::Result<Registered>,
}

const DOOR: Door = Door { socket: SOCKET, register: Registered::new };

enum State {
    Away { look_ns: u64 },
    Asked(Connecting),
    Under(Registered),
}

impl State {
    /// Returns whether it is of this process (KERNEL-3).
    fn is_own(&self) -> bool {
        match self {
            Self::Away { .. } => true,
            Self::Asked(connecting) => connecting.is_own(),
            Self::Under(seat) => seat.is_own(),
        }
    }
}

/// Returns whether a scheduler may be there: whether its socket exists.
pub(crate) fn may_be_there() -> bool {
    Path::new(SOCKET).exists()
}

/// Returns `tier` under the scheduler, if there is one that runs all threads. A tier that looks for
/// the scheduler itself stays as it is: it knows its group.
pub(crate) fn before(mut tier: Box<dyn Cooperate>, served: &Served) -> Box<dyn Cooperate> {
    served.set(false);
    if served.is_told_by(&mut tier) || !may_be_there() {
        return tier;
    }
    let served = served.clone();
    Box::new(Scheduled { only_whole: true, served, ..Scheduled::over(tier) })
}

impl<C: Cooperate> Scheduled<C> {
    /// Creates a loop that shares its CPU by `inner` where there is no scheduler.
    pub fn over(inner: C) -> Self {
        Self {
            inner,
            state: State::Away { look_ns: 0 },
            door: DOOR,
            only_whole: false,
            group: Group::Own,
            served: Served::default(),
            reported: None,
        }
    }

    /// Shares a part of the CPU with the threads of this user that are in the same group, under the
    /// scheduler: it goes to the one whose work is most important. 0 is no number of a group there.
    #[must_use]
    pub fn sharing(self, group: Group) -> Self {
        Self { group, ..self }
    }

    /// Returns what tells whether the loop is under the scheduler.
    #[must_use]
    pub fn served(&self) -> Served {
        self.served.clone()
    }

    /// Returns the inner tier.
    pub fn inner(&mut self) -> &mut C {
        &mut self.inner
    }

    /// Looks for the scheduler, if it is time (KERNEL-1).
    fn look(&mut self) {
        match &self.state {
            State::Away { look_ns } => {
                let now_ns = now_ns();
                if now_ns >= *look_ns {
                    self.state = match Connecting::begin(Path::new(self.door.socket)) {
                        Ok(connecting) => State::Asked(connecting),
                        Err(_) => State::Away { look_ns: now_ns + LOOK_NS },
                    };
                }
            }
            State::Asked(connecting) => match connecting.answer() {
                Ok(None) => {}
                Ok(Some(hints)) => self.enter(hints),
                Err(_) => self.away(REFUSED_NS),
            },
            State::Under(_) => {}
        }
    }

    fn enter(&mut self, hints: Hints) {
        if self.only_whole && !hints.is_whole() {
            return self.away(REFUSED_NS);
        }
        match (self.door.register)(Arc::new(hints)) {
            Ok(registered) => {
                // KERNEL-2.
                self.inner.rest();
                registered.thread().share(match self.group {
                    Group::Own => 0,
                    Group::Number(number) => number,
                });
                self.state = State::Under(registered);
                self.report(true);
            }
            Err(_) => self.away(REFUSED_NS),
        }
    }

    fn away(&mut self, for_ns: u64) {
        self.state = State::Away { look_ns: now_ns() + for_ns };
        self.report(false);
    }

    fn report(&self, is_served: bool) {
        self.served.set(is_served);
        if let Some(reported) = &self.reported {
            reported.set(is_served);
        }
    }
}

/// Polls under the scheduler. Returns `None` if it is gone.
fn poll_under(seat: &Registered, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Option<Answer> {
    let thread = seat.thread();
    // 0 says that there is no work.
    thread.poll(ask.release_ns, ask.importance.map(|importance| importance.max(1)));
    if ask.importance.is_none() {
        wait(ask.release_ns);
    } else {
        // No system call while no thread is due: two loads and a reading of the clock.
        let (now_ns, told) = (now_ns(), thread.answer());
        let is_less_important = told.importance.zip(ask.importance).is_some_and(|(a, b)| a < b);
        let is_due = told.next_release_ns.is_some_and(|at| at <= now_ns);
        if now_ns >= told.until_ns || is_due || is_less_important {
            std::thread::yield_now();
        }
    }
    // KERNEL-3: the wait may have forked.
    if !seat.is_own() || !thread.is_served(now_ns()) {
        return None;
    }
    Some(told_by(thread))
}

/// Returns what the scheduler tells the thread at present: it may have had another turn since its
/// last poll.
fn told_by(thread: Thread<'_>) -> Answer {
    let told = thread.answer();
    // By then the scheduler has written again, or is gone.
    let poll_at_ns = told.until_ns.min(thread.seen_ns().saturating_add(FRESH_NS));
    Answer {
        release_ns: told.next_release_ns,
        importance: told.importance,
        poll_at_ns: Some(poll_at_ns),
    }
}

impl<C: Cooperate> Cooperate for Scheduled<C> {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        // KERNEL-3.
        if !self.state.is_own() {
            self.away(0);
        }
        self.look();
        if let State::Under(seat) = &self.state {
            return poll_under(seat, ask, wait).unwrap_or_else(|| {
                self.away(LOOK_NS);
                // The inner tier has been told nothing yet.
                Answer { poll_at_ns: Some(0), ..Answer::default() }
            });
        }
        self.inner.poll(ask, wait)
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        match &self.state {
            State::Under(seat) if seat.is_own() => seat.thread().tell(release_ns),
            _ => self.inner.tell(release_ns),
        }
    }

    fn present(&self) -> Option<Answer> {
        match &self.state {
            State::Under(seat) if seat.is_own() => Some(told_by(seat.thread())),
            _ => self.inner.present(),
        }
    }

    fn rest(&mut self) {
        self.away(0);
        self.inner.rest();
    }

    fn reports_to(&mut self, flag: &Arc<AtomicBool>) -> bool {
        self.reported = Some(Served(flag.clone()));
        self.report(self.served.is_served());
        true
    }
}

impl<C: fmt::Debug> fmt::Debug for Scheduled<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduled")
            .field("served", &self.served.is_served())
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
