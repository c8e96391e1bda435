//! The dissertation's scheduler, with its defects, on our deque.
//!
//! - A worker without tasks tries for ever to steal from a random victim: it never sleeps, and
//!   takes tasks from outside in only 3 % of its attempts.
//! - The victim is drawn from all workers, and a worker that draws itself takes the next one, which
//!   so has twice the weight. Among neighbours, drawing itself is an attempt without success.
//! - A worker without room for a task tries again until there is room.

use std::cell::Cell;
use std::sync::Arc;

use antiphon_platform::Platform;
use antiphon_sim::{OwnLine, Sim, work};
use antiphon_sync::queue::{Deque, Full, Item, RelaxedQueue, Stolen, WorkQueue};

use super::team::{Counted, Member, Tally, Team};

/// Workers that share tasks as in the dissertation.
pub struct Published {
    last_first: bool,
    /// Number of neighbours from which the victim is drawn; `None` to draw from all.
    range: Option<usize>,
    queues: Vec<OwnLine<Counted<Deque<Sim>>>>,
    outside: OwnLine<RelaxedQueue<Sim>>,
    /// Set by the experiment without cost: in a program, the thread that ends the others costs
    /// nothing either.
    closed: Cell<bool>,
}

/// A worker of the scheduler.
pub struct Domain<'a> {
    team: &'a Published,
    me: usize,
}

/// Time from one attempt to push to the next.
const AGAIN_NS: u64 = 50;
/// Time of an attempt to steal, besides its accesses: a random draw, and some calls of OCaml.
const ATTEMPT_NS: u64 = 500;

impl Published {
    pub fn new(
        last_first: bool,
        range: Option<usize>,
        workers: usize,
        room: usize,
        tally: &Arc<Tally>,
    ) -> Self {
        let queue = || OwnLine(Counted::new(Deque::new(room, room), tally));
        Self {
            last_first,
            range,
            queues: (0..workers).map(|_| queue()).collect(),
            outside: OwnLine(RelaxedQueue::new(64)),
            closed: Cell::new(false),
        }
    }

    /// Returns the victim of worker `me`; `None` if it drew itself.
    fn victim(&self, me: usize) -> Option<usize> {
        let (all, drawn) = (self.queues.len(), Sim::random() as usize);
        let victim = match self.range {
            None => {
                let victim = drawn % (all - 1);
                if victim == me { me + 1 } else { victim }
            }
            Some(range) => (me + all * range + drawn % (range + 1) - range / 2) % all,
        };
        (victim != me).then_some(victim)
    }
}

impl Team for Published {
    type Member<'a> = Domain<'a>;

    fn member(&self, me: usize) -> Domain<'_> {
        Domain { team: self, me }
    }

    fn close(&self) {
        self.closed.set(true);
    }
}

impl Domain<'_> {
    fn own(&self) -> &Counted<Deque<Sim>> {
        &self.team.queues[self.me]
    }

    fn pop(&self) -> Option<Item> {
        // SAFETY: a seat has one member, and only that member calls this.
        unsafe { if self.team.last_first { self.own().pop_back() } else { self.own().pop_front() } }
    }

    fn steal(&self) -> Option<Item> {
        if Sim::random() % 100 < 3 {
            return self.team.outside.pop();
        }
        let victim = &self.team.queues[self.team.victim(self.me)?];
        // SAFETY: a seat has one member, and only that member calls this; its own queue is empty,
        // and is not the victim's.
        match unsafe { victim.steal_into(self.own(), |there| there.div_ceil(2)) } {
            Stolen::Got(task) => Some(task),
            Stolen::Empty | Stolen::Retry => None,
        }
    }
}

impl Member for Domain<'_> {
    fn push(&mut self, task: Item, _: u64) -> Result<(), Full> {
        // SAFETY: a seat has one member, as in `pop`.
        unsafe { self.own().push(task) }
    }

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(task) = self.pop().or_else(|| self.steal()) {
                return Some(task);
            }
            if self.team.closed.get() {
                return None;
            }
            work(ATTEMPT_NS);
        }
    }

    fn meanwhile(&mut self) -> Option<Item> {
        work(AGAIN_NS);
        None
    }
}
