//! The semaphore and the barrier as one thread sees them.

use super::{Call, MOST, Sequential};

/// Permits, as many as are there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Semaphore {
    /// How many there are.
    pub permits: u32,
}

/// The operations on a [`Semaphore`], with a number of permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemaphoreCall {
    /// Waits until they are had, all together; answers `true`.
    Acquire(u32),
    /// Tries; answers whether they were had. Fails only if there are fewer.
    ///
    /// Waiting until a deadline is the same, as long as no permits are kept for other waiters.
    Try(u32),
    /// Gives them; answers `true`.
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

/// A barrier: the threads that have come, and those of each complete round that have not gone yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    parties: usize,
    here: Vec<usize>,
    rounds: Vec<Round>,
}

/// A round for which all have come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    members: Vec<usize>,
    has_leader: bool,
}

/// The two halves of a wait at a [`Barrier`], by a thread: another may come in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierCall {
    /// Comes; answers `true`.
    Come(usize),
    /// Goes on; answers whether the thread is the leader of its round, which has one.
    Go(usize),
}

impl Barrier {
    /// A barrier for `parties` threads, none of which has come.
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

    /// Goes on; `false` if its round isn't complete, or would have two leaders or none.
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

/// The history of a [`Barrier`] from that of its waits, each of which is known by its thread and
/// has answered whether it leads.
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
