//! The state that all actors of a replay share, and whether they make progress.

use antiphon_platform::WaiterRef;
use antiphon_sim::now;
use antiphon_trace::{Event, What};

use crate::outcome::SiteTimes;

#[derive(Default)]
pub(super) struct State {
    pub(super) tokens: Vec<Token>,
    /// By pool: the first piece that no actor has taken.
    pub(super) next: Vec<usize>,
    /// The owners of each lock.
    pub(super) owners: Vec<Vec<usize>>,
    /// What each actor waits for.
    pub(super) waits: Vec<Waits>,
    /// Number of steps so far, to detect progress.
    pub(super) steps: u64,
    pub(super) takes: u64,
    pub(super) awaits: u64,
    pub(super) fallbacks: u64,
    pub(super) lost_ns: u64,
    pub(super) lived_ns: u64,
    pub(super) end_ns: u64,
    pub(super) readers_writer_wait_ns: u64,
    pub(super) sites: Vec<SiteTimes>,
    /// The events of each actor, if requested.
    pub(super) told: Option<Vec<Vec<Event>>>,
}

/// What an actor waits for. An actor that is runnable without a core waits for nothing: it will get
/// one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    No,
    Lock(u32),
    Token,
    /// The actor has ended.
    Over,
}

/// A condition that actors wait for.
#[derive(Clone, Default)]
pub(super) struct Token {
    /// Number of signals that are still missing.
    pub(super) left: u32,
    /// Waiting actors, and the nodes that they sleep on.
    pub(super) waiters: Vec<(usize, WaiterRef)>,
}

impl State {
    /// Records an event of an actor at the current time.
    pub(super) fn tells(&mut self, actor: usize, what: What) {
        if let Some(told) = &mut self.told {
            told[actor].push(Event { at_ns: now(), what });
        }
    }

    /// Returns whether `actor` would wait for itself if it waited for that lock.
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

    /// Returns whether each actor waits for another or has ended.
    pub(super) fn is_stuck(&self) -> bool {
        self.waits.iter().all(|waits| match *waits {
            Waits::No => false,
            // If no actor owns the lock, one is about to take it.
            Waits::Lock(lock) => !self.owners[lock as usize].is_empty(),
            Waits::Token | Waits::Over => true,
        })
    }

    /// Returns whether `actor`, when all are stuck, should continue without its token: it owns a
    /// lock that others wait for, or no actor that waits for a token does.
    pub(super) fn is_to_go_on(&self, actor: usize) -> bool {
        let wanted = self.waits.iter().filter_map(|waits| match *waits {
            Waits::Lock(lock) => Some(&self.owners[lock as usize]),
            _ => None,
        });
        let mut keeps_out = wanted.flatten().filter(|&&owner| self.waits[owner] == Waits::Token);
        keeps_out.clone().next().is_none() || keeps_out.any(|&owner| owner == actor)
    }
}
