//! Sequential models of the semaphore and the barrier.

use super::{Call, MOST, Sequential};

/// A semaphore with a number of permits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Semaphore {
    /// Number of available permits.
    pub permits: u32,
}

/// The operations on a [`Semaphore`], with a number of permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemaphoreCall {
    /// Waits for all the permits at once; answers `true`.
    Acquire(u32),
    /// Tries; answers whether it got the permits. Fails only if there are fewer.
    ///
    /// A wait until a deadline is the same operation, as long as no permits are reserved for other
    /// waiters.
    Try(u32),
    /// Releases the permits; answers `true`.
    Release(u32),
}

impl Sequential for Semaphore {
    type Operation = SemaphoreCall;
    type Answer = bool;

    fn step(&mut self, call: &SemaphoreCall, &answer: &bool) -> bool {
        let left = match *call {
            SemaphoreCall::Try(wanted) if !answer => return self.permits < wanted,
            SemaphoreCall::Acquire(wanted) | SemaphoreCall::Try(wanted) => {
                self.permits.checked_sub(wanted)
            }
            SemaphoreCall::Release(more) => self.permits.checked_add(more),
        };
        self.permits = left.unwrap_or(self.permits);
        answer && left.is_some()
    }
}

/// A barrier: the threads that have arrived, and those of each complete round that have not left
/// yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    parties: usize,
    here: Vec<usize>,
    rounds: Vec<Round>,
}

/// A round for which all threads have arrived.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    members: Vec<usize>,
    has_leader: bool,
}

/// The two halves of a thread's wait at a [`Barrier`]: other threads may arrive in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierCall {
    /// Arrives; answers `true`.
    Come(usize),
    /// Leaves; answers whether the thread is the leader of its round. A round has one leader.
    Go(usize),
}

impl Barrier {
    /// Creates a barrier for `parties` threads, none of which has arrived.
    #[must_use]
    pub fn new(parties: usize) -> Self {
        Self { parties, here: Vec::new(), rounds: Vec::new() }
    }

    fn come(&mut self, me: usize) {
        self.here.push(me);
        if self.here.len() == self.parties {
            let members = std::mem::take(&mut self.here);
            self.rounds.push(Round { members, has_leader: false });
        }
    }

    /// Lets a thread leave; returns `false` if its round isn't complete, or would have two leaders
    /// or none.
    fn go(&mut self, me: usize, leads: bool) -> bool {
        let has_me = |round: &Round| round.members.contains(&me);
        let Some(place) = self.rounds.iter().position(has_me) else { return false };
        let round = &mut self.rounds[place];
        if leads && std::mem::replace(&mut round.has_leader, true) {
            return false;
        }
        round.members.retain(|&member| member != me);
        if !round.members.is_empty() {
            return true;
        }
        self.rounds.remove(place).has_leader
    }
}

impl Sequential for Barrier {
    type Operation = BarrierCall;
    type Answer = bool;

    fn step(&mut self, call: &BarrierCall, &answer: &bool) -> bool {
        match *call {
            BarrierCall::Come(me) => {
                self.come(me);
                answer
            }
            BarrierCall::Go(me) => self.go(me, answer),
        }
    }
}

/// Converts a history of waits into one for [`Barrier`]. The operation of a wait is its thread; its
/// answer, whether the thread is the leader.
///
/// # Panics
///
/// If there are more than [`MOST`] calls then.
#[must_use]
pub fn in_halves(waits: &[Call<usize, bool>]) -> Vec<Call<BarrierCall, bool>> {
    assert!(2 * waits.len() <= MOST, "a history has at most {MOST} operations");
    let halves = |(place, wait): (usize, &Call<usize, bool>)| {
        let (come, me) = (2 * place, wait.operation);
        let gone = (0..waits.len()).filter(|earlier| wait.after & 1 << earlier != 0);
        let after = gone.fold(0, |set, earlier| set | 2 << (2 * earlier));
        [
            Call { operation: BarrierCall::Come(me), answer: true, after },
            Call { operation: BarrierCall::Go(me), answer: wait.answer, after: after | 1 << come },
        ]
    };
    waits.iter().enumerate().flat_map(halves).collect()
}
