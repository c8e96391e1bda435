//! What a thread and its scheduler tell each other: `coop_poll` (§3.1).

use alloc::boxed::Box;

/// What a thread tells when it gives the CPU away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// When its earliest timer is due, in nanoseconds of the monotonic clock.
    pub release_ns: Option<u64>,
    /// The least user virtual time of its best-effort work: the less, the more important. `None`
    /// if it has no such work.
    pub importance: Option<u64>,
}

/// What it is told when it goes on: what others would have it know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The earliest release of all others that are cooperative.
    pub release_ns: Option<u64>,
    /// The least user virtual time of the others of its group that are ready.
    pub importance: Option<u64>,
    /// When it is to poll again: when its slice ends. `None` where nobody else wants the CPU, or
    /// nobody here knows.
    pub poll_at_ns: Option<u64>,
}

/// How a thread gives its CPU away, and has it again: a tier, by what the system allows.
pub trait Cooperate {
    /// `coop_poll`: tells others what `ask` says, lets them run, and returns when it is the
    /// caller's turn: since its release has come, its work is the most important of its group and
    /// it is the group's turn, or `wait` has returned early.
    ///
    /// Where the caller has no best-effort work, it sleeps by a call of `wait`, which is given the
    /// time until when (`None`: for good) and returns then or when something else is to be done, as
    /// a file that is ready. Where it has, `wait` may be called with a time that has passed, to see
    /// whether something is. Others run meanwhile.
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer;

    /// The caller goes on, and its earliest release is another one than it has told: since it has
    /// dispatched a timer, say. For tiers that watch it from another thread or process; the others
    /// do nothing. Quick, and never blocks.
    fn tell(&mut self, _release_ns: Option<u64>) {}
}

impl<C: Cooperate + ?Sized> Cooperate for Box<C> {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        (**self).poll(ask, wait)
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        (**self).tell(release_ns);
    }
}

/// Nobody to cooperate with: the kernel shares the CPU out as it likes.
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

/// A poll in two halves, for who can't hand over how it waits: because its wait may be cancelled,
/// and so unwinds, or because it is another language's.
///
/// `before`, a wait until [`Pause::until_ns`], and `after` are a [`poll`](Cooperate::poll). A
/// thread that never comes to the second half, as its wait was the last thing it did, is late for
/// its turn like any other that does not poll.
pub trait Halves: Cooperate {
    /// Tells others what `ask` says, and lets them run if the caller has work. Blocks for that
    /// long.
    fn before(&mut self, ask: Ask) -> Pause;

    /// Returns when it is the caller's turn. Blocks until then.
    fn after(&mut self, pause: Pause) -> Answer;
}

/// What is between the halves of a poll: the caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Pause {
    /// Until when, at the most; a time that has passed: it looks, and no more; `None`: for good.
    pub until_ns: Option<u64>,
    pub(super) ask: Ask,
    pub(super) then: Then,
}

/// What the second half is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing: nobody knows of the caller.
    Goes,
    /// Nothing: it has had its turn.
    HasTurn,
    /// It waits for its turn.
    WantsTurn,
}

impl Pause {
    /// What was asked.
    #[must_use]
    pub const fn ask(&self) -> Ask {
        self.ask
    }

    pub(super) const fn alone(ask: Ask) -> Self {
        let until_ns = if ask.importance.is_some() { Some(0) } else { ask.release_ns };
        Self { until_ns, ask, then: Then::Goes }
    }
}
