//! The exchange between a thread and its scheduler: `coop_poll` (§3.1).

use alloc::boxed::Box;

/// The message of a thread to its scheduler when it gives the CPU away.
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
    /// When the thread is to poll again: the end of its slice. `None` where no other thread wants
    /// the CPU, or this tier does not know.
    pub poll_at_ns: Option<u64>,
}

/// The way in which a thread gives its CPU away and gets it back: a tier, by what the system
/// allows.
pub trait Cooperate {
    /// `coop_poll`: tells others what `ask` says, lets them run, and returns when it is the
    /// caller's turn. It is that when the caller's release time has passed, or its work is the most
    /// important of its group and it is the group's turn, or `wait` has returned early.
    ///
    /// Where the caller has no best-effort work, it sleeps by a call of `wait`. That is given the
    /// time until when to sleep (`None`: for good), and returns then, or when something else is to
    /// be done, as for a file that is ready. Where the caller has such work, `wait` may be called
    /// with a time that has passed, to see whether something is to be done. Others run meanwhile.
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer;

    /// Says that the caller goes on, and that its earliest release is now another one than it has
    /// told, for example because it has dispatched a timer. For tiers that watch the caller from
    /// another thread or process; the others do nothing. Quick, and never blocks.
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

/// No thread to cooperate with: the kernel shares the CPU out as it likes.
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

/// A poll in two halves, for a caller that can't hand over how it waits: because its wait may be
/// cancelled, and so unwinds, or because the wait is another language's.
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

/// The state between the halves of a poll, in which the caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Pause {
    /// Until when the caller waits, at most. A time that has passed: it only looks; `None`: for
    /// good.
    pub until_ns: Option<u64>,
    pub(super) ask: Ask,
    pub(super) then: Then,
}

/// The task of the second half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing: no other thread knows of the caller.
    Goes,
    /// Nothing: the caller has had its turn.
    HasTurn,
    /// To wait for the caller's turn.
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
