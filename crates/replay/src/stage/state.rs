//! The state that all actors of a replay share, and whether they make progress.

use antiphon_platform::WaiterRef;
use antiphon_sim::now;
use antiphon_trace::{Event, What};

use crate::outcome::SiteTimes;

#[derive(Default)]
pub(super) struct State {
    pub(super) tokens: Vec<Token>,
    /// The rest of each pool: the first piece that no actor has taken.
    pub(super) next: Vec<usize>,
    /// Which actors have a lock.
    pub(super) owners: Vec<Vec<usize>>,
    /// The thing that each actor waits for.
    pub(super) waits: Vec<Waits>,
    /// How many steps were done: whether anything goes on.
    pub(super) steps: u64,
    pub(super) takes: u64,
    pub(super) awaits: u64,
    pub(super) fallbacks: u64,
    pub(super) lost_ns: u64,
    pub(super) lived_ns: u64,
    pub(super) end_ns: u64,
    pub(super) readers_writer_wait_ns: u64,
    pub(super) sites: Vec<SiteTimes>,
    /// The events of each actor, if they are wanted.
    pub(super) told: Option<Vec<Vec<Event>>>,
}

/// The thing that an actor waits for, until that is there. An actor that wants a core and has none
/// waits for nothing: it gets one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    No,
    Lock(u32),
    Token,
    /// It is over, and waits for nothing any more.
    Over,
}

/// Something to wait for.
#[derive(Clone, Default)]
pub(super) struct Token {
    /// How often it has to be signalled still.
    pub(super) left: u32,
    /// Actors, and what they sleep on.
    pub(super) waiters: Vec<(usize, WaiterRef)>,
}

impl State {
    /// An actor does something now.
    pub(super) fn tells(&mut self, actor: usize, what: What) {
        if let Some(told) = &mut self.told {
            told[actor].push(Event { at_ns: now(), what });
        }
    }

    /// Whether `actor` would wait for itself, if it waited for that lock.
    pub(super) fn is_circle(&self, actor: usize, lock: u32) -> bool {
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
    pub(super) fn is_stuck(&self) -> bool {
        self.waits.iter().all(|waits| match *waits {
            Waits::No => false,
            // If no actor has it, it is about to be had.
            Waits::Lock(lock) => !self.owners[lock as usize].is_empty(),
            Waits::Token | Waits::Over => true,
        })
    }

    /// Whether `actor`, when all are stuck, is one to go on without its token: it has a lock that
    /// others wait for, or no actor that waits for a token has.
    pub(super) fn is_to_go_on(&self, actor: usize) -> bool {
        let wanted = self.waits.iter().filter_map(|waits| match *waits {
            Waits::Lock(lock) => Some(&self.owners[lock as usize]),
            _ => None,
        });
        let mut keeps_out = wanted.flatten().filter(|&&owner| self.waits[owner] == Waits::Token);
        keeps_out.clone().next().is_none() || keeps_out.any(|&owner| owner == actor)
    }
}
