//! Task requests: a worker without tasks asks a worker that has some to hand one over.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 2 per desk | `asked` | the asker, the desk's worker | the seat that asks, plus 1; 0: none |
//! | | `handed` | the worker asked, the taker | 0, [`TAKEN`], or a task for that worker |
//!
//! - DESK-1: a task that was handed over is on one desk until one worker takes it.
//! - DESK-2: a task is handed over when another task is made ready. So the worker then checks for a
//!   resting worker (CREW-2), which finds the task on any desk.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

use super::policy::{Others, Own, Policy};
use crate::lines::Lines;

/// A policy whose workers don't steal. A worker without tasks asks a randomly chosen worker, which
/// hands over its first task when it makes the next one ready. So only its own worker writes to a
/// queue; and a worker that is in a long task, and makes none ready, answers no request: the others
/// check again and again for as long as it has tasks.
///
/// The dissertation's requests, and as slow here as there: prefer stealing, unless your queues
/// can't be stolen from.
pub struct Requests<P: Platform, Y> {
    policy: Y,
    is_sticky: bool,
    desks: Box<[Lines<Desk<P>>]>,
}

struct Desk<P: Platform> {
    asked: P::U32,
    handed: P::U64,
}

/// The value of `handed` while a worker is about to hand a task over. No [`Item`] has this value.
const TAKEN: u64 = 1;

impl<P: Platform, Y: Policy<P>> Requests<P, Y> {
    /// Creates the policy for `workers` workers. Workers beyond these use the wrapped policy, take
    /// tasks that were handed to others and not taken, and are not asked. A worker without tasks
    /// asks another one at its next check.
    pub fn new(policy: Y, workers: usize) -> Self {
        let desk = || Lines(Desk { asked: P::U32::ZERO, handed: P::U64::ZERO });
        Self { policy, is_sticky: false, desks: (0..workers).map(|_| desk()).collect() }
    }

    /// Like [`new`](Self::new), but a worker that has asked one worker asks no other before that
    /// one has answered.
    pub fn sticky(policy: Y, workers: usize) -> Self {
        Self { is_sticky: true, ..Self::new(policy, workers) }
    }

    fn desk(&self, seat: usize) -> Option<&Desk<P>> {
        self.desks.get(seat).map(|desk| &desk.0)
    }

    /// Hands the worker's first task over, if it was asked to.
    #[inline]
    fn answer(&self, own: &Own<'_, Y::Queue>) {
        let asked = self.desk(own.seat()).map(|desk| &desk.asked);
        // Relaxed, both: only the number is used.
        if let Some(asked) = asked.filter(|asked| asked.load(Relaxed) != 0) {
            self.hand(asked.swap(0, Relaxed), own);
        }
    }

    #[cold]
    fn hand(&self, asker: u32, own: &Own<'_, Y::Queue>) {
        let desk = asker.checked_sub(1).and_then(|seat| self.desk(seat as usize));
        // Relaxed: the store below publishes.
        let free =
            desk.filter(|desk| desk.handed.compare_exchange(0, TAKEN, Relaxed, Relaxed).is_ok());
        let Some(desk) = free else { return };
        let word = own.pop_front().map_or(0, Item::word);
        // Release: the accesses before the task became ready; pairs with the acquire in `take`.
        desk.handed.store(word, Release);
    }

    /// DESK-2: takes a task from a desk whose worker is busy, or rests.
    fn left(&self) -> Option<Item> {
        self.desks.iter().find_map(|desk| desk.0.take())
    }

    /// Asks a worker, unless the policy is sticky and a request is pending.
    fn ask(&self, me: usize, last: &mut Option<u32>, others: &Others<'_, Y::Queue>) {
        let name = me as u32 + 1;
        // Relaxed, here and below: as in `answer`.
        if let Some(Desk { asked, .. }) = last.and_then(|last| self.desk(last as usize)) {
            if self.is_sticky && asked.load(Relaxed) == name {
                return;
            }
            // If it names another worker, the request was answered.
            let _: Result<u32, u32> = asked.compare_exchange(name, 0, Relaxed, Relaxed);
        }
        let all = self.desks.len();
        let from = P::random() as usize % all;
        *last = (0..all).map(|step| (from + step) % all).find_map(|seat| {
            let has_some = others.worker(seat).is_some_and(|victim| victim.tasks() > 0);
            let asked = &self.desk(seat)?.asked;
            let asks = has_some && asked.compare_exchange(0, name, Relaxed, Relaxed).is_ok();
            asks.then_some(seat as u32)
        });
    }
}

impl<P: Platform> Desk<P> {
    fn is_empty(&self) -> bool {
        // Relaxed: a thread that relies on it has made a fence.
        self.handed.load(Relaxed) == 0
    }

    fn take(&self) -> Option<Item> {
        // Relaxed: the exchange acquires.
        let word = self.handed.load(Relaxed);
        if word <= TAKEN {
            return None;
        }
        // Acquire: pairs with the release in `hand`.
        self.handed.compare_exchange(word, 0, Acquire, Relaxed).ok().and_then(Item::new)
    }
}

// SAFETY: a task that the policy has handed out goes to one desk, and comes from there once
// (DESK-1).
unsafe impl<P: Platform, Y: Policy<P>> Policy<P> for Requests<P, Y> {
    type Queue = Y::Queue;
    /// The policy's state, and the worker that was asked last.
    type State = (Y::State, Option<u32>);

    fn queue(&self) -> Y::Queue {
        self.policy.queue()
    }

    fn push(
        &self,
        own: &Own<'_, Y::Queue>,
        state: &mut Self::State,
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full> {
        self.policy.push(own, &mut state.0, task, rank)?;
        // DESK-2.
        self.answer(own);
        Ok(())
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full> {
        self.policy.submit(shared, task, rank)
    }

    fn has_tasks(&self) -> bool {
        self.desks.iter().any(|desk| !desk.0.is_empty()) || self.policy.has_tasks()
    }

    fn take_left(&self) -> Option<Item> {
        self.left().or_else(|| self.policy.take_left())
    }

    fn pop(&self, own: &Own<'_, Y::Queue>, state: &mut Self::State) -> Option<Item> {
        // First, because a worker that always has its own tasks would leave it there.
        let handed = self.desk(own.seat()).and_then(Desk::take);
        handed.or_else(|| self.policy.pop(own, &mut state.0))
    }

    fn steal(
        &self,
        own: &Own<'_, Y::Queue>,
        (state, last): &mut Self::State,
        others: &Others<'_, Y::Queue>,
    ) -> Stolen {
        let Some(desk) = self.desk(own.seat()) else {
            return match self.policy.steal(own, state, others) {
                got @ Stolen::Got(_) => got,
                nothing => self.left().map_or(nothing, Stolen::Got),
            };
        };
        if let Some(task) = desk.take() {
            return Stolen::Got(task);
        }
        // Relaxed: as in `answer`. The worker has no task, which is the answer.
        if desk.asked.load(Relaxed) != 0 {
            desk.asked.store(0, Relaxed);
        }
        self.ask(own.seat(), last, others);
        self.left().map_or(Stolen::Empty, Stolen::Got)
    }

    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        self.policy.overflow(shared, task)
    }

    fn idle(&self) -> Budget {
        self.policy.idle()
    }
}
