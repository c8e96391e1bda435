//! The order in which the program takes its locks: how many it holds at once, which it takes within
//! which, and which in both orders.
//!
//! | figure | counts | over all |
//! |---|---|---|
//! | depth | locks that the thread held after an acquisition, this one included | acquisitions |
//! | nest | locks that a thread took from the first one until it held none again | such spans |
//!
//! The thesis counts the locks that a system call of Linux takes, 4 on average and 12 at most. A
//! program has no such entry; the span between two states without a lock is the closest equivalent.

use std::collections::BTreeMap;

use antiphon_record::{Edge, Snapshot};
use serde_json::{Value, json};

use super::home::Home;
use super::names::{self, Variables};
use crate::symbols::Symbols;

/// The order of locks in a run.
#[derive(Default)]
pub struct Order {
    /// Mean and largest depth; `None` without a profile.
    pub depth: Option<(f64, u64)>,
    /// Mean and largest nest.
    pub nests: Option<(f64, u64)>,
    /// The locks that were taken within others.
    pub steps: Vec<Step>,
    /// Circles of locks, each as consecutive steps.
    pub inversions: Vec<Vec<Step>>,
}

/// One lock taken while another was held.
#[derive(Clone, Debug)]
pub struct Step {
    /// The process of both locks.
    pub pid: u32,
    /// The lock that was held.
    pub held: Place,
    /// The lock that was taken.
    pub taken: Place,
    /// Number of times that the lock was taken so.
    pub count: u64,
}

/// A lock, and where it was taken.
#[derive(Clone, Debug)]
pub struct Place {
    /// The lock.
    pub address: u64,
    /// The global variable that is or contains the lock, if there is one.
    pub variable: Option<String>,
    /// Where the lock was initialised, if that is known and there is no variable.
    pub initialised: Option<String>,
    /// The kind of the lock.
    pub kind: &'static str,
    /// The site where the lock was taken when this step first happened.
    pub site: String,
    /// The site where the lock was first taken at all, which identifies its sort.
    pub first_site: String,
}

impl Place {
    /// The name of the lock in a table: its variable, or its address.
    pub fn name(&self) -> String {
        self.variable.clone().unwrap_or_else(|| format!("{:#x}", self.address))
    }
}

impl Order {
    /// Reads the order from a recording.
    pub fn new(snapshot: &Snapshot, variables: &Variables, symbols: &mut Symbols) -> Self {
        let mut step = |edge: &Edge| Step {
            pid: names::pid(snapshot, snapshot.locks[edge.held].process),
            held: place(snapshot, edge.held, edge.rows[0], variables, symbols),
            taken: place(snapshot, edge.taken, edge.rows[1], variables, symbols),
            count: edge.count,
        };
        let steps: Vec<Step> = snapshot.edges.iter().map(&mut step).collect();
        let cycles = snapshot.inversions();
        let inversions = cycles
            .iter()
            .map(|cycle| cycle.iter().map(|&edge| steps[edge].clone()).collect())
            .collect();
        Self { depth: snapshot.depth(), nests: snapshot.nests(), steps, inversions }
    }

    /// The inversions, grouped by call sites: the number in each group, and its first one.
    pub fn by_site(&self) -> Vec<(usize, &[Step])> {
        let mut groups = BTreeMap::<Vec<(&str, &str)>, (usize, &[Step])>::new();
        for steps in &self.inversions {
            let mut sites: Vec<_> =
                steps.iter().map(|step| (&*step.held.site, &*step.taken.site)).collect();
            // The step at which a circle begins does not matter.
            sites.sort_unstable();
            groups.entry(sites).or_insert((0, steps)).0 += 1;
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
        groups
    }

    /// The value of `order` in the JSON report.
    pub fn json(&self) -> Value {
        let first = |of: Option<(f64, u64)>| of.map(|(mean, _)| mean);
        let second = |of: Option<(f64, u64)>| of.map(|(_, max)| max);
        json!({
            "depth_mean": first(self.depth), "depth_max": second(self.depth),
            "nest_mean": first(self.nests), "nest_max": second(self.nests),
            "edges": self.steps.iter().map(step_object).collect::<Vec<_>>(),
            "inversions": self.inversions.iter().map(|steps| inversion(steps)).collect::<Vec<_>>(),
        })
    }
}

fn place(
    snapshot: &Snapshot,
    lock: usize,
    row: Option<usize>,
    variables: &Variables,
    symbols: &mut Symbols,
) -> Place {
    let home = Home::of(snapshot, lock, variables, symbols);
    let lock = &snapshot.locks[lock];
    let site = row.and_then(|row| snapshot.rows.get(row)).and_then(|row| row.site);
    Place {
        address: lock.address,
        variable: home.variable().map(str::to_owned),
        initialised: home.initialised(),
        kind: lock.kind.name(),
        site: names::site(snapshot, site, symbols).label(),
        first_site: names::site(snapshot, lock.first_site, symbols).label(),
    }
}

fn step_object(step: &Step) -> Value {
    let place = |place: &Place| {
        json!({
            "lock": format!("{:#x}", place.address), "variable": place.variable,
            "initialised": place.initialised,
            "kind": place.kind, "site": place.site,
        })
    };
    json!({
        "pid": step.pid, "held": place(&step.held), "taken": place(&step.taken),
        "count": step.count,
    })
}

fn inversion(steps: &[Step]) -> Value {
    let locks = steps.iter().map(|step| format!("{:#x}", step.held.address));
    json!({
        "locks": locks.collect::<Vec<_>>(),
        "sites": steps.iter().map(|step| &step.held.first_site).collect::<Vec<_>>(),
        "counts": steps.iter().map(|step| step.count).collect::<Vec<_>>(),
        "steps": steps.iter().map(step_object).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step from one lock to another, taken at sites named `at`.
    pub fn step(held: u64, taken: u64, at: &str) -> Step {
        let place = |address: u64| Place {
            address,
            variable: None,
            initialised: None,
            kind: "mutex",
            site: format!("{at}_{address}"),
            first_site: format!("first_{address}"),
        };
        Step { pid: 1, held: place(held), taken: place(taken), count: 3 }
    }

    #[test]
    fn inversions_of_the_same_sites_are_one() {
        let circle = |a: u64, b: u64, at: &str| vec![step(a, b, at), step(b, a, at)];
        let mut turned = circle(1, 2, "f");
        turned.rotate_left(1);
        let inversions = vec![circle(3, 4, "g"), circle(1, 2, "f"), turned];
        let order = Order { inversions, ..Order::default() };
        let counts: Vec<usize> = order.by_site().iter().map(|&(count, _)| count).collect();
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn both_sites_of_both_orders_are_in_the_report() {
        let inversions = vec![vec![step(16, 32, "f"), step(32, 16, "g")]];
        let order = Order { inversions, ..Order::default() }.json();
        let inversion = &order["inversions"][0];
        assert_eq!((&inversion["locks"][0], &inversion["counts"][1]), (&"0x10".into(), &3.into()));
        assert_eq!(inversion["sites"][1], "first_32");
        let steps = &inversion["steps"];
        for (step, lock, site) in [(0, "held", "f_16"), (0, "taken", "f_32"), (1, "held", "g_32")] {
            assert_eq!(steps[step][lock]["site"], site);
        }
        assert_eq!(order["nest_mean"], Value::Null);
    }
}
