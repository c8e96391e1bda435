//! A script on a simulated machine.
//!
//! Each actor is a simulated thread; a lock is a [`Subject`]'s, on lines of its own, and behind it
//! the lines of data that each critical section touches, if any.
//!
//! A replay must never hang, though its threads come to their locks in another order than recorded:
//!
//! - Who waits for a token looks again after 10 ms. If each thread waits for another then, and none
//!   has done anything since, it goes on without: a *fall-back*. One that has a lock which others
//!   wait for goes first, as that is what they came to in another order.
//! - Who would wait for a lock that can't be given back until the caller goes on goes without: the
//!   same. Each circle of owners is closed by the one that asks last, who sees it whole.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use antiphon_platform::{Arena, Clock, Deadline, Platform as _, Waiter, WaiterId, WaiterRef};
use antiphon_sim::{
    Access, Arbitration, Machine, Model, OwnLine, Sim, Simulation, Stuck, now, touch, work,
};

use crate::outcome::{Played, SiteTimes};
use crate::scale::{Actor, Script};
use crate::step::Step;
use crate::subject::{Subject, Taken};

/// How long to wait for a token before one looks whether anything goes on.
const PATIENCE_NS: u64 = 10_000_000;
/// A replay that takes so many times as long as all that is done in it, one after the other, is
/// given up.
const GIVEN_UP: u64 = 100;

/// How a script is played.
#[derive(Clone, Debug)]
pub struct Play {
    /// On which machine.
    pub machine: Machine,
    /// Who has a contended line next there.
    pub arbitration: Arbitration,
    /// All of its randomness.
    pub seed: u64,
    /// How many cache lines of a lock's data each critical section touches.
    pub data_lines: usize,
}

impl Play {
    /// Plays it with the locks of `subject`. Blocks the calling host thread.
    ///
    /// # Errors
    ///
    /// [`Stuck`] if it does not end: a lock that makes no progress on this machine.
    pub fn play(&self, script: &Arc<Script>, subject: &Subject) -> Result<Played, Stuck> {
        let machine = Machine { light: subject.light(), ..self.machine.clone() };
        let overhead_ns = machine.park_ns + machine.wake_latency_ns + machine.wake_jitter_ns / 2;
        let stage = Rc::new(Stage::new(script, subject, self.data_lines, overhead_ns));
        // Recorded threads go where there is room.
        let model = Model { arbitration: self.arbitration, balance: true, ..Model::default() };
        let mut simulation = Simulation::new(machine, self.seed).model(model);
        for actor in 0..script.threads() {
            let stage = Rc::clone(&stage);
            simulation = simulation.thread(move || Player::new(&stage, actor).play());
        }
        let limit_ns = script.busy_ns().saturating_mul(GIVEN_UP).saturating_add(
            // Each wait for a token may end in vain.
            script.awaits().saturating_mul(GIVEN_UP * PATIENCE_NS),
        );
        let outcome = simulation.run(limit_ns)?;
        let mut state = stage.state.borrow_mut();
        Ok(Played {
            end_ns: state.end_ns,
            takes: state.takes,
            awaits: state.awaits,
            wait_ns: state.sites.iter().map(|site| site.wait_ns).sum(),
            lived_ns: state.lived_ns,
            fallbacks: state.fallbacks,
            lost_ns: state.lost_ns,
            sites: std::mem::take(&mut state.sites),
            readers_writer_wait_ns: state.readers_writer_wait_ns,
            counts: outcome.counts,
            trace_hash: outcome.trace_hash,
        })
    }
}

/// What all actors share.
struct Stage {
    script: Arc<Script>,
    locks: Vec<Box<dyn Taken>>,
    data: Vec<Vec<OwnLine<[u64; 8]>>>,
    /// What the system takes of a sleep before and after it.
    overhead_ns: u64,
    /// Not borrowed across a simulated step.
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    tokens: Vec<Token>,
    /// What is left in each pool: the first that nobody has taken.
    next: Vec<usize>,
    /// Which actors have a lock.
    owners: Vec<Vec<usize>>,
    /// What an actor waits for.
    waits: Vec<Waits>,
    /// How many steps were done: whether anything goes on.
    steps: u64,
    takes: u64,
    awaits: u64,
    fallbacks: u64,
    lost_ns: u64,
    lived_ns: u64,
    end_ns: u64,
    readers_writer_wait_ns: u64,
    sites: Vec<SiteTimes>,
}

/// What an actor waits for, until that is there. Who wants a core and has none waits for nothing:
/// it gets one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    No,
    Lock(u32),
    Token,
    /// It is over, and waits for nothing any more.
    Over,
}

/// Something to wait for.
#[derive(Clone, Default)]
struct Token {
    /// How often it has to be signalled still.
    left: u32,
    /// Actors, and what they sleep on.
    waiters: Vec<(usize, WaiterRef)>,
}

impl Stage {
    fn new(script: &Arc<Script>, subject: &Subject, lines: usize, overhead_ns: u64) -> Self {
        let plan = &script.plan;
        let lines = |_| (0..lines).map(|_| OwnLine([0; 8])).collect();
        let token = |&left: &u32| Token { left, waiters: Vec::new() };
        let state = State {
            tokens: script.tokens.iter().map(token).collect(),
            next: vec![0; script.pools.len()],
            owners: vec![Vec::new(); plan.locks.len()],
            waits: vec![Waits::No; script.threads()],
            sites: vec![SiteTimes::default(); plan.sites],
            ..State::default()
        };
        Self {
            script: Arc::clone(script),
            locks: plan.locks.iter().map(|lock| subject.make(lock.kind)).collect(),
            data: plan.locks.iter().map(lines).collect(),
            overhead_ns,
            state: RefCell::new(state),
        }
    }
}

impl State {
    /// Whether `actor` would wait for itself, if it waited for that lock.
    fn is_circle(&self, actor: usize, lock: u32) -> bool {
        let mut seen = vec![lock];
        let mut at = 0;
        while let Some(&lock) = seen.get(at) {
            for &owner in &self.owners[lock as usize] {
                if owner == actor {
                    return true;
                }
                if let Waits::Lock(next) = self.waits[owner]
                    && !seen.contains(&next)
                {
                    seen.push(next);
                }
            }
            at += 1;
        }
        false
    }

    /// Whether each actor waits for another, or is over.
    fn is_stuck(&self) -> bool {
        self.waits.iter().all(|waits| match *waits {
            Waits::No => false,
            // If nobody has it, it is about to be had.
            Waits::Lock(lock) => !self.owners[lock as usize].is_empty(),
            Waits::Token | Waits::Over => true,
        })
    }

    /// Whether `actor`, when all are stuck, is one to go on without its token: it has a lock that
    /// others wait for, or nobody who waits for a token has.
    fn is_to_go_on(&self, actor: usize) -> bool {
        let wanted = self.waits.iter().filter_map(|waits| match *waits {
            Waits::Lock(lock) => Some(&self.owners[lock as usize]),
            _ => None,
        });
        let mut keeps_out = wanted.flatten().filter(|&&owner| self.waits[owner] == Waits::Token);
        keeps_out.clone().next().is_none() || keeps_out.any(|&owner| owner == actor)
    }
}

/// A lock that an actor has.
struct Held {
    lock: u32,
    site: u32,
    shared: bool,
    since_ns: u64,
}

/// An actor, as it plays.
struct Player<'a> {
    stage: &'a Stage,
    actor: usize,
    id: WaiterId,
    /// What it sleeps on, other than for locks.
    node: &'static Waiter<Sim>,
    name: WaiterRef,
    held: Vec<Held>,
}

impl<'a> Player<'a> {
    fn new(stage: &'a Stage, actor: usize) -> Self {
        let arena: &Arena<Sim> = Sim::arena();
        let id = arena.take().expect("a node for each thread");
        let node = arena.resolve(id).expect("a node that was taken");
        let name = arena.reference(id.index()).expect("a node in use");
        Self { stage, actor, id, node, name, held: Vec::new() }
    }

    fn play(mut self) {
        let script = &self.stage.script;
        let began_ns = match &script.actors[self.actor] {
            Actor::Steps(steps) => {
                // A thread that is not made yet does not wait: it is not there.
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
        state.lived_ns += end_ns - began_ns;
        state.end_ns = state.end_ns.max(end_ns);
        state.waits[self.actor] = Waits::Over;
        drop(state);
        Sim::arena().give(self.id);
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

    /// Is away for `ns`, and what the system takes for it is part of that.
    fn sleeps(&self, ns: u64) {
        let until_ns = now().saturating_add(ns.saturating_sub(self.stage.overhead_ns));
        while now() < until_ns {
            self.parks(until_ns);
        }
    }

    fn parks(&self, until_ns: u64) {
        // Why it has returned does not matter: the caller looks.
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
            state.waits[self.actor] = Waits::Lock(lock);
        }
        let subject = &self.stage.locks[lock as usize];
        if shared {
            subject.read()
        } else {
            subject.lock()
        }
        let since_ns = now();
        {
            let mut state = self.stage.state.borrow_mut();
            state.waits[self.actor] = Waits::No;
            state.owners[lock as usize].push(self.actor);
            state.takes += 1;
            let waited_ns = since_ns - from_ns;
            if self.stage.script.plan.locks[lock as usize].is_readers_writer() {
                state.readers_writer_wait_ns += waited_ns;
            }
            let times = &mut state.sites[site as usize];
            times.takes += 1;
            times.wait_ns += waited_ns;
        }
        self.held.push(Held { lock, site, shared, since_ns });
        let data = &self.stage.data[lock as usize];
        touch(&data[..], if shared { Access::Read } else { Access::Write });
    }

    fn gives(&mut self, lock: u32) {
        let Some(at) = self.held.iter().rposition(|held| held.lock == lock) else {
            // It went without.
            return;
        };
        let Held { site, shared, since_ns, .. } = self.held.remove(at);
        {
            let mut state = self.stage.state.borrow_mut();
            state.sites[site as usize].hold_ns += now() - since_ns;
            let owners = &mut state.owners[lock as usize];
            let me = owners.iter().position(|&owner| owner == self.actor);
            owners.swap_remove(me.expect("an owner"));
        }
        let subject = &self.stage.locks[lock as usize];
        // SAFETY: it stood in `held`, so this thread has taken it that way and not given it back.
        unsafe { if shared { subject.unlock_read() } else { subject.unlock() } }
    }

    fn awaits(&self, token: u32) {
        let token = token as usize;
        let mut steps = {
            let mut state = self.stage.state.borrow_mut();
            state.awaits += 1;
            if state.tokens[token].left == 0 {
                return;
            }
            state.tokens[token].waiters.push((self.actor, self.name));
            state.waits[self.actor] = Waits::Token;
            state.steps
        };
        let from_ns = now();
        let mut until_ns = from_ns.saturating_add(PATIENCE_NS);
        loop {
            self.parks(until_ns);
            let mut state = self.stage.state.borrow_mut();
            if state.tokens[token].left == 0 {
                return;
            }
            if now() < until_ns {
                continue;
            }
            if state.steps == steps && state.is_stuck() && state.is_to_go_on(self.actor) {
                state.fallbacks += 1;
                state.lost_ns += now() - from_ns;
                // It goes on, and whoever waits for it may.
                state.steps += 1;
                state.waits[self.actor] = Waits::No;
                state.tokens[token].waiters.retain(|&(actor, _)| actor != self.actor);
                return;
            }
            steps = state.steps;
            until_ns = now().saturating_add(PATIENCE_NS);
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
