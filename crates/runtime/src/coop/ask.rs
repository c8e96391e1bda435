//! The exchange between a thread and its scheduler: `coop_poll` (§3.1).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::AtomicBool;

/// A thread's message to its scheduler when it gives the CPU away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// When the thread's earliest timer is due, in nanoseconds of the monotonic clock.
    pub release_ns: Option<u64>,
    /// The least user virtual time of the thread's best-effort work: the less, the more important.
    /// `None` if it has no such work.
    pub importance: Option<u64>,
}

/// The state of the other threads, which a thread receives when it continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The earliest release of all other cooperative threads.
    pub release_ns: Option<u64>,
    /// The least user virtual time of the other threads of its group that are ready.
    pub importance: Option<u64>,
    /// When the thread must poll again: the end of its slice. `None` if no other thread wants the
    /// CPU, or if this tier does not know.
    pub poll_at_ns: Option<u64>,
}

/// How a thread gives its CPU away and gets it back: a tier, depending on what the system permits.
pub trait Cooperate {
    /// `coop_poll`: publishes `ask`, lets other threads run, and returns when it is the caller's
    /// turn. That is when the caller's release time has passed, or its work is the most important
    /// of its group and it is the group's turn, or `wait` has returned early.
    ///
    /// A caller without best-effort work sleeps in a call of `wait`. Its argument is the time until
    /// which to sleep (`None`: no limit); it returns then, or when there is other work, such as a
    /// file that is ready. For a caller with best-effort work, `wait` may be called with a time
    /// that has passed, to check for other work. Others run meanwhile.
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer;

    /// Publishes a new earliest release while the caller continues to run, for example because it
    /// has dispatched a timer. For tiers that watch the caller from another thread or process; the
    /// others do nothing. Quick, and never blocks.
    fn tell(&mut self, _release_ns: Option<u64>) {}

    /// Returns what the caller would learn from a poll now, for tiers that change it while the
    /// caller runs; `None`: the answer of the last poll is in force. Quick, and never blocks.
    fn present(&self) -> Option<Answer> {
        None
    }

    /// Reports that the caller shares its CPU in another way until its next poll: others need not
    /// wait for it. Gives away what the tier has lent it. For tiers whose members wait for each
    /// other; the others do nothing. Never waits for a turn.
    fn rest(&mut self) {}

    /// Reports through `flag` from now on whether a scheduler in the kernel runs the caller when it
    /// is due, if the tier looks for one by itself. Returns whether it does: an event loop then
    /// puts no other tier of that kind before this one.
    fn reports_to(&mut self, _flag: &Arc<AtomicBool>) -> bool {
        false
    }
}

impl<C: Cooperate + ?Sized> Cooperate for Box<C> {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        (**self).poll(ask, wait)
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        (**self).tell(release_ns);
    }

    fn present(&self) -> Option<Answer> {
        (**self).present()
    }

    fn rest(&mut self) {
        (**self).rest();
    }

    fn reports_to(&mut self, flag: &Arc<AtomicBool>) -> bool {
        (**self).reports_to(flag)
    }
}

/// A tier without cooperation: the kernel alone shares the CPU out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Cooperate for Alone {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        wait(Pause::alone(ask).until_ns);
        Answer::default()
    }
}

impl Halves for Alone {
    fn before(&mut self, ask: Ask) -> Pause {
        Pause::alone(ask)
    }

    fn after(&mut self, _: Pause) -> Answer {
        Answer::default()
    }
}

/// A poll in two halves, for a caller that can't pass its wait as a closure: because the wait may
/// be cancelled, and so unwinds, or because it is written in another language.
///
/// `before`, a wait until [`Pause::until_ns`], and `after` together are one
/// [`poll`](Cooperate::poll). A thread that never reaches the second half, because its wait was its
/// last action, is late for its turn like any other thread that does not poll.
pub trait Halves: Cooperate {
    /// Publishes `ask`, and lets others run if the caller has work. Blocks for that long.
    fn before(&mut self, ask: Ask) -> Pause;

    /// Returns when it is the caller's turn. Blocks until then.
    fn after(&mut self, pause: Pause) -> Answer;
}

/// The state between the halves of a poll, in which the caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Pause {
    /// The latest time at which the wait ends. A time that has passed: the caller only checks;
    /// `None`: no limit.
    pub until_ns: Option<u64>,
    pub(super) ask: Ask,
    pub(super) then: Then,
}

/// What the second half has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing: no other thread knows of the caller.
    Goes,
    /// Nothing: the caller has had its turn.
    HasTurn,
    /// Wait for the caller's turn.
    WantsTurn,
}

impl Pause {
    /// The ask that began this pause.
    #[must_use]
    pub const fn ask(&self) -> Ask {
        self.ask
    }

    pub(super) const fn alone(ask: Ask) -> Self {
        let until_ns = if ask.importance.is_some() { Some(0) } else { ask.release_ns };
        Self { until_ns, ask, then: Then::Goes }
    }
}
