//! Our policies, by name: an order and a spread, or one whose tasks are all in one place.
//!
//! | name | what it is |
//! |---|---|
//! | `fifo/…`, `lifo/…`, `stochastic-64/…`, `switch-16/…`, `reverse-8/…` | an order |
//! | `adaptive/…` | `lifo` until some have waited for a millisecond, then these |
//! | `lifo-slot/…` | `fifo`, but for the task that was made ready last; of the first two spreads |
//! | `…/steal-half`, `…/steal-one`, `…/neighbours-N` | a spread; of a bounded queue |
//! | `…/overflow` | `steal-half`; what finds no room is put into the pool's queue first |
//! | `…/shallow` | `steal-half`, of queues with room for 8 at most |
//! | `…/lazy`, `…/lazy-shallow` | none is shared while they are made more seldom than each 10 µs |
//! | `staged` | a queue for each stage, the last first |
//! | `edf` | the earliest deadline first, of all |
//! | `levels` | the most urgent first; each level is worth a millisecond of waiting |
//!
//! A worker that has no room for a task that it makes runs it at once.

use std::sync::LazyLock;

use antiphon::pool::{
    Pool,
    policy::{
        Adaptive, Aging, Deadlines, Fifo, Lazy, Lifo, LifoSlot, Neighbours, Policy, Ranked,
        Reverse, Scheme, Share, Staged, Steal, Stochastic, Switch,
    },
};
use antiphon_linux::Linux;
use antiphon_runtime::sched::{Order, Spread};

use super::runner::Kind;
use crate::bounded::Bounded;

const ORDERS: [&str; 6] = ["fifo", "lifo", "stochastic-64", "switch-16", "reverse-8", "adaptive"];
const SPREADS: [&str; 9] = [
    "steal-half",
    "steal-one",
    "neighbours-13",
    "neighbours-15",
    "neighbours-20",
    "overflow",
    "shallow",
    "lazy",
    "lazy-shallow",
];
const OTHERS: [&str; 5] =
    ["lifo-slot/steal-half", "lifo-slot/steal-one", "staged", "edf", "levels"];

/// How many tasks a queue has room for at first.
const AT_FIRST: usize = 1024;
/// How many tasks there is room for with the spread `shallow`.
const SHALLOW: usize = 8;
/// About what a wake costs.
const WAKE_NS: u64 = 10_000;
/// The age from which `adaptive` passes over a task no more.
const AGE_NS: u64 = 1_000_000;
/// The worth of a level of urgency.
const LEVEL_NS: u64 = 1_000_000;
/// The number of stages, and of levels, of tasks. A task that names no level has the last one.
const STAGES: usize = 4;
/// The due time of a task that names none.
const USUAL_NS: u64 = 1_000_000;

/// The meaning of a task's rank to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// Nothing.
    None,
    /// Its stage.
    Stages,
    /// How urgent it is.
    Levels,
    /// The time when the task is to be done.
    Deadlines,
}

impl Ranks {
    fn of(self, kind: Kind) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Stages => Some(kind.stage),
            Self::Levels => Some(kind.level),
            Self::Deadlines => Some(kind.due_ns),
        }
    }

    /// Spawns a task of some kind in a pool of such a policy.
    pub fn spawn<Y: Policy<Linux> + 'static>(
        self,
        pool: &Pool<Y>,
        kind: Kind,
        work: impl FnOnce() + Send + 'static,
    ) {
        drop(match self.of(kind) {
            Some(rank) => pool.spawn_ranked(rank, work),
            None => pool.spawn(work),
        });
    }
}

/// Work that takes a policy of whatever type.
pub trait Take {
    /// The result of taking it.
    type Output;

    /// Does it; `make` makes a policy each time.
    fn take<Y: Policy<Linux> + 'static>(self, make: impl Fn() -> Y, ranks: Ranks) -> Self::Output;
}

/// All of them.
pub fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let of = |order| SPREADS.map(|spread| format!("{order}/{spread}"));
        let schemes = ORDERS.into_iter().flat_map(of).map(|name| &*name.leak());
        schemes.chain(OTHERS).collect()
    });
    &NAMES
}

/// Takes the policy `name`, with room for `capacity` tasks for each of `workers` workers.
///
/// # Errors
///
/// If there is none.
pub fn with<T: Take>(
    name: &str,
    workers: usize,
    capacity: usize,
    take: T,
) -> Result<T::Output, String> {
    let slot = |share| LifoSlot::new(Steal { share }).capacity(capacity.min(AT_FIRST), capacity);
    let room = (capacity * workers).clamp(64, 1 << 20);
    Ok(match name {
        "lifo-slot/steal-half" => take.take(|| slot(Share::Half), Ranks::None),
        "lifo-slot/steal-one" => take.take(|| slot(Share::One), Ranks::None),
        "staged" => take.take(|| Staged::<Linux>::new(STAGES, room), Ranks::Stages),
        "edf" => {
            let key = Deadlines { usual_ns: USUAL_NS };
            take.take(|| Ranked::<Linux, _>::new(key, 1, room), Ranks::Deadlines)
        }
        "levels" => {
            let key = Aging { level_ns: LEVEL_NS, usual: STAGES as u64 - 1 };
            take.take(|| Ranked::<Linux, _>::new(key, 1, room), Ranks::Levels)
        }
        _ => match name.split_once('/') {
            Some(parts) => return ordered(parts, capacity, take),
            None => return Err(unknown(name)),
        },
    })
}

/// Says that there is none of this name.
pub fn unknown(name: &str) -> String {
    format!("no subject '{name}'")
}

fn ordered<T: Take>(
    (order, spread): (&str, &str),
    capacity: usize,
    take: T,
) -> Result<T::Output, String> {
    match order {
        "fifo" => spread_out(Fifo, spread, capacity, take),
        "lifo" => spread_out(Lifo, spread, capacity, take),
        "stochastic-64" => spread_out(Stochastic { first: 64 }, spread, capacity, take),
        "switch-16" => spread_out(Switch { every: 16 }, spread, capacity, take),
        "reverse-8" => spread_out(Reverse { every: 8 }, spread, capacity, take),
        "adaptive" => spread_out(Adaptive { age_ns: AGE_NS }, spread, capacity, take),
        _ => Err(unknown(order)),
    }
}

fn spread_out<O: Order + Copy + 'static, T: Take>(
    order: O,
    spread: &str,
    capacity: usize,
    take: T,
) -> Result<T::Output, String> {
    let half = Steal { share: Share::Half };
    let near = |range| Neighbours { range, share: Share::Half };
    let (all, few) = (capacity, capacity.min(SHALLOW));
    Ok(match spread {
        "steal-half" => bounded(order, half, all, take),
        "steal-one" => bounded(order, Steal { share: Share::One }, all, take),
        "neighbours-13" => bounded(order, near(13), all, take),
        "neighbours-15" => bounded(order, near(15), all, take),
        "neighbours-20" => bounded(order, near(20), all, take),
        "overflow" => take.take(|| scheme(order, half, all), Ranks::None),
        "shallow" => bounded(order, half, few, take),
        "lazy" => take.take(|| Lazy::new(scheme(order, half, all), WAKE_NS), Ranks::None),
        "lazy-shallow" => take.take(|| Lazy::new(scheme(order, half, few), WAKE_NS), Ranks::None),
        _ => return Err(unknown(spread)),
    })
}

fn scheme<O, S>(order: O, spread: S, capacity: usize) -> Scheme<O, S> {
    Scheme::new(order, spread).capacity(capacity.min(AT_FIRST), capacity)
}

fn bounded<O: Order + Copy + 'static, S: Spread + Copy + 'static, T: Take>(
    order: O,
    spread: S,
    capacity: usize,
    take: T,
) -> T::Output {
    take.take(|| Bounded(scheme(order, spread, capacity)), Ranks::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Have;

    impl Take for Have {
        type Output = Ranks;

        fn take<Y: Policy<Linux> + 'static>(self, make: impl Fn() -> Y, ranks: Ranks) -> Ranks {
            drop(make());
            ranks
        }
    }

    #[test]
    fn each_name_is_a_policy() {
        for name in names() {
            assert!(with(name, 2, 16, Have).is_ok(), "{name}");
        }
        assert_eq!(with("edf", 2, 16, Have), Ok(Ranks::Deadlines));
        for wrong in ["", "fifo", "fifo/", "fifo/fifo", "lifo-slot/shallow", "edf/steal-half"] {
            assert!(with(wrong, 2, 16, Have).is_err(), "{wrong}");
        }
    }
}
