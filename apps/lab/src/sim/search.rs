//! `--search`: locks with non-default parameters, and which of them no other beats.

use std::cmp::Ordering;

use antiphon_platform::{Budget, Platform};
use antiphon_replay::locks::SimLock;
use antiphon_rivals::numa::{CTktMcs, Cna, Hmcs, Malthusian};
use antiphon_sim::Sim;
use antiphon_sync::lock::{Form, ShflMutex, ShflSpin};
use antiphon_sync::policy::{self, Numa, Policy, Waiting};
use serde_json::Value;

/// Groups waiters by socket; no waiter is passed more than `BYPASS` times, and no group is larger.
#[derive(Clone, Copy, Default, PartialEq)]
struct Bounded<const BYPASS: u16>;

impl<const BYPASS: u16> Policy for Bounded<BYPASS> {
    fn shuffles<P: Platform>(self) -> bool {
        Numa.shuffles::<P>()
    }

    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        Numa.groups(shuffler, candidate)
    }

    fn bypass(self) -> u16 {
        BYPASS
    }
}

/// The standard form, but waiters spin for `NS` nanoseconds if there are idle CPUs.
struct Spinning<const NS: u32>;

impl<const NS: u32> Form for Spinning<NS> {
    const LINGER: Budget = Budget::ns(NS);
}

/// Each parameter at several values: the shuffle bound, the time that waiters spin, the budget of a
/// socket, and how seldom CNA serves other sockets.
pub const VARIANTS: [SimLock; 25] = [
    SimLock::mutex::<ShflMutex<Sim, policy::None>>("shfl-mutex+none"),
    SimLock::mutex::<ShflMutex<Sim, Bounded<4>>>("shfl-mutex+bypass-4"),
    SimLock::mutex::<ShflMutex<Sim, Bounded<16>>>("shfl-mutex+bypass-16"),
    SimLock::mutex::<ShflMutex<Sim, Bounded<64>>>("shfl-mutex+bypass-64"),
    SimLock::mutex::<ShflMutex<Sim, Bounded<256>>>("shfl-mutex+bypass-256"),
    SimLock::mutex::<ShflMutex<Sim, Numa, Spinning<2_000>>>("shfl-mutex+spin-2us"),
    SimLock::mutex::<ShflMutex<Sim, Numa, Spinning<20_000>>>("shfl-mutex+spin-20us"),
    SimLock::mutex::<ShflMutex<Sim, Numa, Spinning<300_000>>>("shfl-mutex+spin-300us"),
    SimLock::mutex::<ShflMutex<Sim, Numa, Spinning<1_000_000>>>("shfl-mutex+spin-1ms"),
    SimLock::mutex::<ShflSpin<Sim, Bounded<4>>>("shfl-spin+bypass-4"),
    SimLock::mutex::<ShflSpin<Sim, Bounded<16>>>("shfl-spin+bypass-16"),
    SimLock::mutex::<ShflSpin<Sim, Bounded<64>>>("shfl-spin+bypass-64"),
    SimLock::mutex::<ShflSpin<Sim, Bounded<256>>>("shfl-spin+bypass-256"),
    SimLock::mutex::<CTktMcs<Sim, 8, 4>>("cohort-tkt-mcs+budget-4"),
    SimLock::mutex::<CTktMcs<Sim, 8, 16>>("cohort-tkt-mcs+budget-16"),
    SimLock::mutex::<CTktMcs<Sim, 8, 64>>("cohort-tkt-mcs+budget-64"),
    SimLock::mutex::<CTktMcs<Sim, 8, 256>>("cohort-tkt-mcs+budget-256"),
    SimLock::mutex::<Hmcs<Sim, 8, 4>>("hmcs+budget-4"),
    SimLock::mutex::<Hmcs<Sim, 8, 16>>("hmcs+budget-16"),
    SimLock::mutex::<Hmcs<Sim, 8, 64>>("hmcs+budget-64"),
    SimLock::mutex::<Hmcs<Sim, 8, 256>>("hmcs+budget-256"),
    SimLock::mutex::<Cna<Sim, 0xFF>>("cna+keep-255"),
    SimLock::mutex::<Cna<Sim, 0xFFFF>>("cna+keep-65535"),
    SimLock::mutex::<Malthusian<Sim, 2_000>>("malthusian+spin-2us"),
    SimLock::mutex::<Malthusian<Sim, 30_000>>("malthusian+spin-30us"),
];

/// Marks the rows that no other row of their case and number of threads beats: any row with more
/// work is less fair, or wakes more. This is the Pareto front.
pub fn mark(rows: &mut [Value]) {
    let goods: Vec<_> = rows.iter().map(goods).collect();
    let beaten = |place: usize, rows: &[Value]| {
        let Some(mine) = goods[place] else { return true };
        let same = |other: &usize| {
            ["case", "threads"].iter().all(|key| rows[*other][key] == rows[place][key])
        };
        let others = (0..rows.len()).filter(same).filter_map(|other| goods[other]);
        others.into_iter().any(|other| beats(other, mine))
    };
    let front: Vec<_> = (0..rows.len()).map(|place| !beaten(place, rows)).collect();
    for (row, front) in rows.iter_mut().zip(front) {
        row["front"] = front.into();
    }
}

/// Throughput, fairness and negated wakes: larger is better.
fn goods(row: &Value) -> Option<[f64; 3]> {
    let of = |key: &str| row[key].as_f64();
    Some([of("ops_per_s")?, of("jain")?, -of("wakes_per_op")?])
}

/// Returns whether one row is nowhere worse than the other, and somewhere better.
fn beats(one: [f64; 3], other: [f64; 3]) -> bool {
    let compared = one.iter().zip(&other).map(|(one, other)| one.total_cmp(other));
    let compared: Vec<_> = compared.collect();
    !compared.contains(&Ordering::Less) && compared.contains(&Ordering::Greater)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_front_is_whoever_nobody_beats() {
        let row = |threads: u64, ops: f64, jain: f64, wakes: f64| {
            json!({
                "case": "lock2", "threads": threads, "ops_per_s": ops, "jain": jain,
                "wakes_per_op": wakes,
            })
        };
        let mut rows = [
            row(8, 10.0, 0.5, 0.0),
            row(8, 9.0, 0.5, 0.0),
            row(8, 5.0, 0.9, 0.0),
            row(8, 11.0, 0.4, 1.0),
            row(8, 10.0, 0.5, 0.0),
            row(1, 1.0, 0.1, 0.0),
            json!({ "case": "lock2", "threads": 8, "failed": "stuck" }),
        ];
        mark(&mut rows);
        let front: Vec<_> = rows.iter().map(|row| row["front"] == true).collect();
        assert_eq!(front, [true, false, true, true, true, true, false]);
    }
}
