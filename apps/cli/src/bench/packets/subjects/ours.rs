//! Our pools: an order and a spread, with room for so many tasks and no more.
//!
//! A worker that has no room for a task that it makes runs it at once; with the spread `overflow`
//! it puts it into the pool's queue first, where all find it. `shallow` has room for 8 at most,
//! whatever there is for the others: who makes tasks runs them itself sooner. `lazy` shares none
//! while they are made more seldom than each 10 µs; both are as `steal-half` otherwise.

use antiphon::generic::Linux;
use antiphon::pool::{
    Fifo, Lazy, Lifo, Neighbours, Order as TaskOrder, Policy, Pool, Reverse, Scheme, Share, Spread,
    Steal, Stochastic, Switch,
};

use super::super::measure::{Counted, Figures, Order, Repetition};
use super::super::work::Runner;
use super::unknown;
use crate::bench::rounds::Outcome;
use crate::bounded::Bounded;

const ORDERS: [&str; 5] = ["fifo", "lifo", "stochastic-64", "switch-16", "reverse-8"];
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
/// Room for so many tasks, of the spread `shallow`.
const SHALLOW: usize = 8;
/// About what a wake costs.
const WAKE_NS: u64 = 10_000;

/// All of them, as `order/spread`.
pub fn names() -> Vec<&'static str> {
    let of = |order| SPREADS.map(|spread| format!("{order}/{spread}"));
    // Asked for once.
    ORDERS.into_iter().flat_map(of).map(|name| &*name.leak()).collect()
}

/// Has the pool of an order and a spread carry out a repetition.
pub fn with(
    (order, spread): (&str, &str),
    how: &Order,
    repetition: Repetition<'_>,
) -> Result<Outcome<Figures>, String> {
    match order {
        "fifo" => ordered(Fifo, spread, how, repetition),
        "lifo" => ordered(Lifo, spread, how, repetition),
        "stochastic-64" => ordered(Stochastic { first: 64 }, spread, how, repetition),
        "switch-16" => ordered(Switch { every: 16 }, spread, how, repetition),
        "reverse-8" => ordered(Reverse { every: 8 }, spread, how, repetition),
        _ => Err(unknown(order)),
    }
}

fn ordered<O: TaskOrder + 'static>(
    order: O,
    spread: &str,
    how: &Order,
    repetition: Repetition<'_>,
) -> Result<Outcome<Figures>, String> {
    let half = Steal { share: Share::Half };
    let near = |range| Neighbours { range, share: Share::Half };
    match spread {
        "steal-half" => bounded(order, half, how, repetition),
        "steal-one" => bounded(order, Steal { share: Share::One }, how, repetition),
        "neighbours-13" => bounded(order, near(13), how, repetition),
        "neighbours-15" => bounded(order, near(15), how, repetition),
        "neighbours-20" => bounded(order, near(20), how, repetition),
        "overflow" => run(scheme(order, half, how), how, repetition),
        "shallow" => bounded(order, half, &shallow(how), repetition),
        "lazy" => run(Lazy::new(scheme(order, half, how), WAKE_NS), how, repetition),
        "lazy-shallow" => {
            let policy = Lazy::new(scheme(order, half, &shallow(how)), WAKE_NS);
            run(policy, how, repetition)
        }
        _ => Err(unknown(spread)),
    }
}

fn shallow(how: &Order) -> Order {
    Order { capacity: how.capacity.min(SHALLOW), ..how.clone() }
}

fn scheme<O, S>(order: O, spread: S, how: &Order) -> Scheme<O, S> {
    Scheme::new(order, spread).capacity(how.capacity, how.capacity)
}

fn bounded<O: TaskOrder + 'static, S: Spread + 'static>(
    order: O,
    spread: S,
    how: &Order,
    repetition: Repetition<'_>,
) -> Result<Outcome<Figures>, String> {
    run(Bounded(scheme(order, spread, how)), how, repetition)
}

fn run<Y: Policy<Linux> + 'static>(
    policy: Y,
    how: &Order,
    repetition: Repetition<'_>,
) -> Result<Outcome<Figures>, String> {
    let pool = Pool::with_policy(how.cell.workers, policy).map_err(|error| error.to_string())?;
    // The process ends before it does.
    let pool: &'static Pool<Y> = Box::leak(Box::new(pool));
    Ok(repetition.on(pool, || {
        let stats = pool.stats();
        Some(Counted {
            spawner_retries: stats.refused,
            steal_attempts: stats.searches,
            steal_hits: stats.steals,
            trace: how.trace.then(|| timeline(pool)),
        })
    }))
}

fn timeline<Y: Policy<Linux> + 'static>(pool: &Pool<Y>) -> String {
    let mut text = Vec::new();
    pool.recording().write_trace(&mut text).expect("memory can be written to");
    String::from_utf8(text).expect("JSON is text")
}

impl<Y: Policy<Linux> + 'static> Runner for Pool<Y> {
    fn spawn(&'static self, work: impl FnOnce() + Send + 'static) {
        drop(self.spawn(work));
    }
}
