//! Our policies, by name: an order and a spread, or a policy that keeps all tasks in one place.
//!
//! | name | what it is |
//! |---|---|
//! | `fifo/…`, `lifo/…`, `stochastic-64/…`, `switch-16/…`, `reverse-8/…` | an order |
//! | `adaptive/…` | `lifo` until tasks have waited for a millisecond, then these first |
//! | `lifo-slot/…` | `fifo`, except for the task made ready last; with the first two spreads |
//! | `…/steal-half`, `…/steal-one`, `…/neighbours-N` | a spread; queues are bounded |
//! | `…/overflow` | `steal-half`; a task without room is first put into the pool's queue |
//! | `…/shallow` | `steal-half`, with queues that hold at most 8 tasks |
//! | `…/lazy`, `…/lazy-shallow` | no sharing while tasks come more than 10 µs apart |
//! | `staged` | a queue for each stage, the last first |
//! | `edf` | the earliest deadline of all tasks first |
//! | `levels` | the most urgent first; each level is worth a millisecond of waiting |
//!
//! A worker without room for a task that it makes runs the task at once.

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

/// Initial capacity of a queue, in tasks.
const AT_FIRST: usize = 1024;
/// Capacity of a queue with the spread `shallow`, in tasks.
const SHALLOW: usize = 8;
/// Approximate cost of a wake-up.
const WAKE_NS: u64 = 10_000;
/// Age from which `adaptive` no longer passes over a task.
const AGE_NS: u64 = 1_000_000;
/// Waiting time that one level of urgency is worth.
const LEVEL_NS: u64 = 1_000_000;
/// Number of stages, and of levels, of tasks. A task without a level has the last one.
const STAGES: usize = 4;
/// Due time of a task that names none.
const USUAL_NS: u64 = 1_000_000;

/// What a task's rank means to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// The policy ignores ranks.
    None,
    /// The rank is a stage.
    Stages,
    /// The rank is a level of urgency.
    Levels,
    /// The rank is the time by which the task should be done.
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

    /// Spawns a task of this kind in a pool of such a policy.
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

/// An operation on a policy of any type.
pub trait Take {
    /// The result of the operation.
    type Output;

    /// Runs the operation; `make` makes a new policy each time.
    fn take<Y: Policy<Linux> + 'static>(self, make: impl Fn() -> Y, ranks: Ranks) -> Self::Output;
}

/// Returns the names of all policies.
pub fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let of = |order| SPREADS.map(|spread| format!("{order}/{spread}"));
        let schemes = ORDERS.into_iter().flat_map(of).map(|name| &*name.leak());
        schemes.chain(OTHERS).collect()
    });
    &NAMES
}

/// Runs the operation on policy `name`, with room for `capacity` tasks for each of `workers`
/// workers.
///
/// # Errors
///
/// If no such policy exists.
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

/// The error for an unknown name.
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
