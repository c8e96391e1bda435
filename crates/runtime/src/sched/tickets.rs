//! Tickets: busy workers announce themselves, and workers without tasks steal from them.

use antiphon_platform::{Budget, Platform};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

use super::policy::{Others, Own, Policy};
use super::spread::Share;

/// A policy whose workers leave a ticket, with their number, every `every` tasks that they make
/// ready. A worker without tasks first draws tickets, and steals from the workers that they name.
/// So among a hundred workers it need not try many to find one that has tasks.
///
/// A ticket is a hint: the tasks that it was left for may be gone. So a worker that has drawn a few
/// without success uses the wrapped policy. These are the dissertation's busy-to-free tickets.
pub struct Tickets<P: Platform, Y> {
    policy: Y,
    every: u32,
    share: Share,
    /// Each ticket names a seat.
    tickets: RelaxedQueue<P>,
}

/// The number of tickets that a worker draws.
const DRAWS: usize = 4;

impl<P: Platform, Y: Policy<P>> Tickets<P, Y> {
    /// Creates the policy. It leaves a ticket every `every` tasks (0 counts as 1); a worker that
    /// draws one steals `share` of the tasks. There are at most `tickets` tickets, rounded up to a
    /// power of two.
    ///
    /// # Panics
    ///
    /// If `tickets` is above 2³¹.
    pub fn new(policy: Y, every: u32, share: Share, tickets: usize) -> Self {
        Self { policy, every, share, tickets: RelaxedQueue::new(tickets) }
    }

    /// Leaves a ticket, if it is due, and there is room.
    fn leave(&self, seat: usize, made: &mut u32) {
        *made = made.wrapping_add(1);
        if made.is_multiple_of(self.every.max(1))
            && let Some(ticket) = ticket(seat)
        {
            // A full queue has enough tickets.
            let _: Result<(), Full> = self.tickets.push(ticket);
        }
    }
}

/// The least word that is an [`Item`], and the distance between items.
const LEAST: u64 = 4096;
const STEP: u64 = 8;

fn ticket(seat: usize) -> Option<Item> {
    Item::new(LEAST + STEP * seat as u64)
}

fn seat(ticket: Item) -> usize {
    ((ticket.word() - LEAST) / STEP) as usize
}

// SAFETY: the wrapped policy's contract.
unsafe impl<P: Platform, Y: Policy<P>> Policy<P> for Tickets<P, Y> {
    type Queue = Y::Queue;
    /// The policy's state, and how many tasks the worker has made ready.
    type State = (Y::State, u32);

    fn queue(&self) -> Y::Queue {
        self.policy.queue()
    }

    fn push(
        &self,
        own: &Own<'_, Y::Queue>,
        (state, made): &mut Self::State,
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full> {
        self.policy.push(own, state, task, rank)?;
        self.leave(own.seat(), made);
        Ok(())
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full> {
        self.policy.submit(shared, task, rank)
    }

    fn has_tasks(&self) -> bool {
        self.policy.has_tasks()
    }

    fn take_left(&self) -> Option<Item> {
        self.policy.take_left()
    }

    fn pop(&self, own: &Own<'_, Y::Queue>, state: &mut Self::State) -> Option<Item> {
        self.policy.pop(own, &mut state.0)
    }

    fn steal(
        &self,
        own: &Own<'_, Y::Queue>,
        state: &mut Self::State,
        others: &Others<'_, Y::Queue>,
    ) -> Stolen {
        for _ in 0..DRAWS {
            let Some(ticket) = self.tickets.pop() else { break };
            let victim = others.worker(seat(ticket));
            let told = victim.map_or(Stolen::Empty, |victim| self.share.take(own, victim));
            if let Stolen::Got(_) = told {
                return told;
            }
        }
        self.policy.steal(own, &mut state.0, others)
    }

    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        self.policy.overflow(shared, task)
    }

    fn idle(&self) -> Budget {
        self.policy.idle()
    }
}
