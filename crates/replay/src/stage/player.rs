//! An actor, as it plays.

use antiphon_platform::{Arena, Clock, Deadline, Platform as _, Waiter, WaiterId, WaiterRef};
use antiphon_sim::{Access, Sim, now, touch, work};
use antiphon_trace::What;

use super::state::Waits;
use super::{PATIENCE_NS, Stage};
use crate::locks::Seat;
use crate::scale::Actor;
use crate::step::Step;

/// Placeholder for the object and the site of a wait in a simulated trace, which a step does not
/// have.
const UNTOLD: u32 = u32::MAX;

/// The nodes, of which each actor takes one to sleep on.
fn arena() -> &'static Arena<Sim> {
    // SAFETY: a player takes one node and gives it back; it writes to none.
    unsafe { Sim::arena() }
}

/// A lock that an actor holds.
struct Held {
    lock: u32,
    site: u32,
    /// For a lock held to read.
    seat: Option<Seat>,
    since_ns: u64,
}

/// An actor, as it plays.
pub(super) struct Player<'a> {
    stage: &'a Stage,
    actor: usize,
    id: WaiterId,
    /// The node that the actor sleeps on, other than for locks.
    node: &'static Waiter<Sim>,
    name: WaiterRef,
    held: Vec<Held>,
}

impl<'a> Player<'a> {
    pub(super) fn new(stage: &'a Stage, actor: usize) -> Self {
        let arena = arena();
        let id = arena.take().expect("a node for each thread");
        let node = arena.resolve(id).expect("a node that was taken");
        let name = arena.reference(id.index()).expect("a node in use");
        Self { stage, actor, id, node, name, held: Vec::new() }
    }

    pub(super) fn play(mut self) {
        let script = &self.stage.script;
        let began_ns = match &script.actors[self.actor] {
            Actor::Steps(steps) => {
                // A thread that is not created yet does not wait: it does not exist.
                let (first, rest) = match steps.split_first() {
                    Some((first @ Step::Await { took_ns: 0, .. }, rest)) => (Some(*first), rest),
                    _ => (None, &steps[..]),
                };
                first.into_iter().for_each(|first| self.step(first));
                let began_ns = now();
                rest.iter().for_each(|&step| self.step(step));
                began_ns
            }
            &Actor::Pool(pool) => {
                let began_ns = now();
                while let Some(piece) = self.next_piece(pool) {
                    script.pools[pool][piece].iter().for_each(|&step| self.step(step));
                }
                began_ns
            }
        };
        let end_ns = now();
        let mut state = self.stage.state.borrow_mut();
        state.tells(self.actor, What::Ends);
        state.lived_ns += end_ns - began_ns;
        state.end_ns = state.end_ns.max(end_ns);
        state.waits[self.actor] = Waits::Over;
        drop(state);
        arena().give(self.id);
    }

    fn next_piece(&self, pool: usize) -> Option<usize> {
        let mut state = self.stage.state.borrow_mut();
        let next = state.next[pool];
        state.next[pool] += 1;
        (next < self.stage.script.pools[pool].len()).then_some(next)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Compute { ns } => work(ns),
            Step::Block { ns } => self.sleeps(ns),
            Step::Lock { lock, site, shared } => self.takes(lock, site, shared),
            Step::Unlock { lock } => self.gives(lock),
            Step::Await { token, .. } => self.awaits(token),
            Step::Signal { token } => self.signals(token),
        }
        self.stage.state.borrow_mut().steps += 1;
    }

    /// Sleeps for `ns`, including the time that the system adds.
    fn sleeps(&self, ns: u64) {
        let until_ns = now().saturating_add(ns.saturating_sub(self.stage.overhead_ns));
        while now() < until_ns {
            self.parks(until_ns);
        }
    }

    fn parks(&self, until_ns: u64) {
        // The reason of the return does not matter: the caller checks again.
        let _ = Sim::park(self.node, Some(Deadline { clock: Clock::Monotonic, ns: until_ns }));
    }

    fn takes(&mut self, lock: u32, site: u32, shared: bool) {
        let from_ns = now();
        {
            let mut state = self.stage.state.borrow_mut();
            if !self.held.is_empty() && state.is_circle(self.actor, lock) {
                state.fallbacks += 1;
                return;
            }
            if !state.owners[lock as usize].is_empty() {
                let lock = self.stage.script.plan.locks[lock as usize].traced;
                state.tells(self.actor, What::Waits { lock, site });
            }
            state.waits[self.actor] = Waits::Lock(lock);
        }
        let subject = &self.stage.locks[lock as usize];
        let seat = if shared {
            Some(subject.read())
        } else {
            subject.lock();
            None
        };
        let since_ns = now();
        {
            let mut state = self.stage.state.borrow_mut();
            state.waits[self.actor] = Waits::No;
            state.owners[lock as usize].push(self.actor);
            state.takes += 1;
            let waited_ns = since_ns - from_ns;
            let traced = self.stage.script.plan.locks[lock as usize].traced;
            let taken = What::Takes { lock: traced, site, shared, tried: false };
            state.tells(self.actor, taken);
            if self.stage.script.plan.locks[lock as usize].is_readers_writer() {
                state.readers_writer_wait_ns += waited_ns;
            }
            let times = &mut state.sites[site as usize];
            times.takes += 1;
            times.wait_ns += waited_ns;
        }
        self.held.push(Held { lock, site, seat, since_ns });
        let data = &self.stage.data[lock as usize];
        touch(&data[..], if shared { Access::Read } else { Access::Write });
    }

    fn gives(&mut self, lock: u32) {
        let Some(at) = self.held.iter().rposition(|held| held.lock == lock) else {
            // The actor continued without this lock.
            return;
        };
        let Held { site, seat, since_ns, .. } = self.held.remove(at);
        {
            let mut state = self.stage.state.borrow_mut();
            state.sites[site as usize].hold_ns += now() - since_ns;
            let traced = self.stage.script.plan.locks[lock as usize].traced;
            state.tells(self.actor, What::Releases { lock: traced });
            let owners = &mut state.owners[lock as usize];
            let me = owners.iter().position(|&owner| owner == self.actor);
            owners.swap_remove(me.expect("an owner"));
        }
        let subject = &self.stage.locks[lock as usize];
        match seat {
            // SAFETY: it was in `held`, so this thread got this seat and has not left.
            Some(seat) => unsafe { subject.unlock_read(seat) },
            // SAFETY: it was in `held`, so this thread has taken the lock and not released it.
            None => unsafe { subject.unlock() },
        }
    }

    fn awaits(&self, token: u32) {
        let token = token as usize;
        let mut steps = {
            let mut state = self.stage.state.borrow_mut();
            state.awaits += 1;
            if state.tokens[token].left == 0 {
                return;
            }
            state.tells(self.actor, What::Sleeps { condition: UNTOLD, site: UNTOLD });
            state.tokens[token].waiters.push((self.actor, self.name));
            state.waits[self.actor] = Waits::Token;
            state.steps
        };
        let from_ns = now();
        // Doubled each time without progress: other threads may compute for a very long time.
        let mut patience_ns = PATIENCE_NS;
        let mut until_ns = from_ns.saturating_add(patience_ns);
        loop {
            self.parks(until_ns);
            let mut state = self.stage.state.borrow_mut();
            if state.tokens[token].left == 0 {
                state.tells(self.actor, What::Wakes { condition: UNTOLD, notified: true });
                return;
            }
            if now() < until_ns {
                continue;
            }
            if state.steps == steps && state.is_stuck() && state.is_to_go_on(self.actor) {
                state.fallbacks += 1;
                state.lost_ns += now() - from_ns;
                state.tells(self.actor, What::Wakes { condition: UNTOLD, notified: false });
                // This actor continues, and then threads that wait for it may.
                state.steps += 1;
                state.waits[self.actor] = Waits::No;
                state.tokens[token].waiters.retain(|&(actor, _)| actor != self.actor);
                return;
            }
            let quiet = state.steps == steps;
            patience_ns = if quiet { patience_ns.saturating_mul(2) } else { PATIENCE_NS };
            steps = state.steps;
            until_ns = now().saturating_add(patience_ns);
        }
    }

    fn signals(&self, token: u32) {
        let waiters = {
            let mut state = self.stage.state.borrow_mut();
            let token = &mut state.tokens[token as usize];
            token.left = token.left.saturating_sub(1);
            let due = token.left == 0;
            let waiters = if due { std::mem::take(&mut token.waiters) } else { Vec::new() };
            for &(actor, _) in &waiters {
                state.waits[actor] = Waits::No;
            }
            waiters
        };
        waiters.into_iter().for_each(|(_, waiter)| Sim::unpark(waiter));
    }
}
