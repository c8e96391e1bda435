//! The bounds of a model: what the platform may do, as a value for the checker and as text.

use std::fmt;

use antiphon_check::{HeavyFence, Model};

/// How often the platform may show each optional behaviour (counted for each thread), and which
/// machine it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    spurious: u32,
    timeouts: u32,
    expiries: u32,
    crowded: u32,
    sockets: u32,
    fibers: u32,
    apart: u32,
    nodes: Option<u32>,
    block: Option<u32>,
    light: bool,
    heavy_fence: HeavyFence,
    awake: bool,
}

impl Bounds {
    /// No optional behaviour of the platform: no spurious wakes, no `crowded()`, no early end of a
    /// timed wait or a spin. Each model adds the behaviour that it tests.
    pub const PLAIN: Self = Self {
        spurious: 0,
        timeouts: 0,
        expiries: 0,
        crowded: 0,
        sockets: 1,
        fibers: 0,
        apart: 0,
        nodes: None,
        block: None,
        light: false,
        heavy_fence: HeavyFence::Granted,
        awake: false,
    };

    /// Sets how often a thread's parks may return spuriously.
    #[must_use]
    pub const fn spurious(self, spurious: u32) -> Self {
        Self { spurious, ..self }
    }

    /// Sets how often a thread's timed parks may time out though a wake is still possible.
    #[must_use]
    pub const fn timeouts(self, timeouts: u32) -> Self {
        Self { timeouts, ..self }
    }

    /// Sets how often a thread's spins may give up early.
    #[must_use]
    pub const fn expiries(self, expiries: u32) -> Self {
        Self { expiries, ..self }
    }

    /// Sets how often the platform may tell a thread that the machine is crowded.
    #[must_use]
    pub const fn crowded(self, crowded: u32) -> Self {
        Self { crowded, ..self }
    }

    /// Sets the number of sockets of the machine; threads are assigned to them in turn.
    #[must_use]
    pub const fn sockets(self, sockets: u32) -> Self {
        Self { sockets, ..self }
    }

    /// Makes the first `fibers` threads fibers: they may not sleep on words.
    #[must_use]
    pub const fn fibers(self, fibers: u32) -> Self {
        Self { fibers, ..self }
    }

    /// Sets the maximum difference of the counters of CPUs, in ticks.
    #[must_use]
    pub const fn apart(self, apart: u32) -> Self {
        Self { apart, ..self }
    }

    /// Sets the number of waiter nodes that can be taken; by default more than enough.
    #[must_use]
    pub const fn nodes(self, nodes: u32) -> Self {
        Self { nodes: Some(nodes), ..self }
    }

    /// Makes ended threads count as dead: a thread that wants a node searches for theirs once
    /// `block` nodes were handed out.
    #[must_use]
    pub const fn mortal(self, block: u32) -> Self {
        Self { block: Some(block), ..self }
    }

    /// Gives the machine the light unlock, and its heavy fence this result.
    #[must_use]
    pub const fn light(self, heavy_fence: HeavyFence) -> Self {
        Self { light: true, heavy_fence, ..self }
    }

    /// Hides from wakers that the waiter was asleep, so they must allow for a waiter that does not
    /// run.
    #[must_use]
    pub const fn awake(self) -> Self {
        Self { awake: true, ..self }
    }

    /// Returns a model with these bounds.
    pub fn model(&self, name: &str) -> Model {
        let model = Model::new(name)
            .spurious(self.spurious)
            .timeouts(self.timeouts)
            .expiries(self.expiries)
            .crowded(self.crowded)
            .sockets(self.sockets)
            .fibers(self.fibers)
            .apart(self.apart)
            .light(self.light)
            .heavy_fence(self.heavy_fence)
            .asleep(!self.awake);
        // The checker also counts number 0, which no waiter has.
        let model = self.nodes.map_or(model.clone(), |nodes| model.waiters(nodes + 1));
        self.block.map_or(model.clone(), |block| model.mortal(true).arena_block(block))
    }
}

/// No optional behaviour of the platform.
pub const PLAIN: Bounds = Bounds::PLAIN;
/// One spurious wake of each thread.
pub const SPURIOUS: Bounds = PLAIN.spurious(1);
/// One timed park of each thread may time out.
pub const TIMED: Bounds = PLAIN.timeouts(1);
/// A machine of two sockets.
pub const NUMA: Bounds = PLAIN.sockets(2);
/// One spurious wake, one shortened spin and one answer that the machine is crowded, for each
/// thread.
pub const ANY: Bounds = PLAIN.spurious(1).crowded(1).expiries(1);
/// [`ANY`] for types that processes share, which do not ask whether the machine is crowded.
pub const ANY_SHARED: Bounds = PLAIN.spurious(1).expiries(1);

/// Writes the differences from [`Bounds::PLAIN`]: `≤ 1 spurious, ≤ 1 crowded, 2 sockets`.
impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<_> = [
            (self.spurious, "spurious"),
            (self.timeouts, "timeout"),
            (self.expiries, "expired"),
            (self.crowded, "crowded"),
        ]
        .into_iter()
        .filter(|(times, _)| *times > 0)
        .map(|(times, what)| format!("≤ {times} {what}"))
        .collect();
        if self.sockets > 1 {
            words.push(format!("{} sockets", self.sockets));
        }
        match self.fibers {
            0 => {}
            1 => words.push("1 fiber".to_owned()),
            fibers => words.push(format!("{fibers} fibers")),
        }
        if self.apart > 0 {
            words.push(format!("counters ≤ {} apart", self.apart));
        }
        if let Some(nodes) = self.nodes {
            words.push(match nodes {
                0 => "no node".to_owned(),
                1 => "1 node".to_owned(),
                _ => format!("{nodes} nodes"),
            });
        }
        if let Some(block) = self.block {
            words.push(format!("threads die, block of {block}"));
        }
        if self.light {
            words.push("light unlock".to_owned());
        }
        match self.heavy_fence {
            HeavyFence::Granted => {}
            HeavyFence::Refused => words.push("fences refused".to_owned()),
            HeavyFence::Either => words.push("any fence refused".to_owned()),
        }
        if self.awake {
            words.push("any that is woken may not run".to_owned());
        }
        let none = words.is_empty();
        f.write_str(if none { "plain" } else { "" })?;
        f.write_str(&words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_is_said() {
        assert_eq!(Bounds::PLAIN.to_string(), "plain");
        let bounds = Bounds::PLAIN.spurious(1).sockets(2).nodes(0).light(HeavyFence::Refused);
        assert_eq!(
            bounds.to_string(),
            "≤ 1 spurious, 2 sockets, no node, light unlock, fences refused"
        );
    }
}
