//! What a simulated machine of many sockets says of a lock: who does its atomic instructions, how
//! long it stays on a socket, what shuffling takes.
//!
//! The same code runs here as on Linux, with the same outcome each time. All rows carry
//! `"model": true`: they are predictions of the simulator's machine, not of any real one.

use core::cmp::Ordering;

use antiphon_platform::{Platform, Waiter};
use antiphon_sim::{Counts, Machine, Outcome, Pace, Sim, contend};
use antiphon_sync::lock::classic::{Clh, Futex, Mcs, McsStp, Tas, Ticket, Ttas};
use antiphon_sync::lock::{
    GroupReaders, GroupWriters, Lock, Published, Recursive, ShflMutex, ShflRwLock, ShflSpin,
};
use antiphon_sync::policy::{self, Distance, Numa, Policy, Priority, Then, WakeUp};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::progress::Progress;

/// Alone, a socket, the machine.
pub const THREADS: [usize; 3] = [1, 24, 192];
const LIMIT_NS: u64 = 2_000_000;
const PACE: Pace = Pace { section_ns: 50, away_ns: 200 };

/// As `Q`; and each waiter that a shuffler looks at is noted.
#[derive(Clone, Copy, Default, PartialEq)]
struct Noted<Q>(Q);

impl<Q: Policy> Policy for Noted<Q> {
    fn shuffles<P: Platform>(self) -> bool {
        self.0.shuffles::<P>()
    }

    fn notes<P: Platform>(self) -> bool {
        self.0.notes::<P>()
    }

    fn on_wait<P: Platform>(self, me: &Waiter<P>) {
        self.0.on_wait(me);
    }

    fn groups<P: Platform>(self, shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool {
        antiphon_sim::note();
        self.0.groups(shuffler, candidate)
    }

    fn sorts(self) -> bool {
        self.0.sorts()
    }

    fn compare<P: Platform>(
        self,
        shuffler: &Waiter<P>,
        one: &Waiter<P>,
        other: &Waiter<P>,
    ) -> Ordering {
        antiphon_sim::note();
        self.0.compare(shuffler, one, other)
    }

    fn strict(self) -> bool {
        self.0.strict()
    }

    fn bypass(self) -> u16 {
        self.0.bypass()
    }

    fn wakes(self) -> bool {
        self.0.wakes()
    }
}

type Sorted = Noted<Numa>;
type Run = fn(Machine, usize) -> Result<Outcome, Failure>;

/// A readers-writer lock is had for writing only.
const LOCKS: [(&str, Run); 19] = [
    ("shfl-mutex", run::<ShflMutex<Sim, Sorted>>),
    ("shfl-mutex+light", light::<ShflMutex<Sim, Sorted>>),
    ("shfl-mutex+published", run::<ShflMutex<Sim, Sorted, Published>>),
    ("shfl-mutex+none", run::<ShflMutex<Sim, Noted<policy::None>>>),
    ("shfl-mutex+distance", run::<ShflMutex<Sim, Noted<Distance>>>),
    ("shfl-mutex+priority", run::<ShflMutex<Sim, Noted<Then<Priority, Numa>>>>),
    ("shfl-mutex+wake-up", run::<ShflMutex<Sim, Noted<Then<Numa, WakeUp>>>>),
    ("shfl-spin", run::<ShflSpin<Sim, Sorted>>),
    ("tas", run::<Tas<Sim>>),
    ("ttas", run::<Ttas<Sim>>),
    ("ticket", run::<Ticket<Sim>>),
    ("mcs", run::<Mcs<Sim>>),
    ("mcs-stp", run::<McsStp<Sim>>),
    ("clh", run::<Clh<Sim>>),
    ("futex", run::<Futex<Sim>>),
    ("shfl-rwlock", run::<ShflRwLock<Sim, Sorted>>),
    ("shfl-rwlock+recursive", run::<ShflRwLock<Sim, Sorted, Recursive>>),
    ("shfl-rwlock+group-readers", run::<ShflRwLock<Sim, Noted<GroupReaders>>>),
    ("shfl-rwlock+group-writers", run::<ShflRwLock<Sim, Noted<GroupWriters>>>),
];

fn run<L: Lock>(machine: Machine, threads: usize) -> Result<Outcome, Failure> {
    // SAFETY: what is given back was taken.
    let unlock = |lock: &L| unsafe { lock.unlock() };
    contend(machine, threads, PACE, LIMIT_NS, L::NEW, (L::lock, unlock)).map_err(Failure::measured)
}

fn light<L: Lock>(machine: Machine, threads: usize) -> Result<Outcome, Failure> {
    run::<L>(Machine { light: true, ..machine }, threads)
}

/// How many simulations [`rows`] takes.
pub const STEPS: usize = LOCKS.len() * THREADS.len();

/// A row for each of our locks and each number of threads.
///
/// # Errors
///
/// A lock that can't go on, which none may.
pub fn rows(progress: &mut Progress) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    for (subject, run) in LOCKS {
        for threads in THREADS {
            progress.step(&format!("simulated, {threads} threads: {subject}"));
            rows.push(row(subject, threads, run)?);
        }
    }
    Ok(rows)
}

fn row(subject: &str, threads: usize, run: Run) -> Result<Value, Failure> {
    let machine = Machine { light: false, ..Machine::eight_sockets() };
    let name = machine.name.clone();
    let outcome = run(machine, threads)?;
    let operations = outcome.total_operations() as f64;
    let share = |part: u64, whole: u64| (whole > 0).then(|| round(part as f64 / whole as f64));
    let each = |count: u64| (operations > 0.0).then(|| round(count as f64 / operations));
    let Counts { notes, notes_while_owned, handovers, handovers_within_socket, .. } =
        outcome.counts;
    Ok(json!({
        "model": true, "machine": name, "subject": subject, "threads": threads,
        "ops_per_s": operations * 1e9 / LIMIT_NS as f64,
        "jain": round(outcome.fairness()),
        "remote_transfers_per_op": each(outcome.counts.remote_transfers),
        "atomics_per_op": {
            "owner": each(outcome.counts.owner_atomics),
            "others": each(outcome.counts.other_atomics),
        },
        "shuffle_steps_per_op": each(notes),
        "shuffled_while_held": share(notes_while_owned, notes),
        "stays_on_socket": share(handovers_within_socket, handovers),
    }))
}

/// Three digits behind the point are more than a simulated figure is worth.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uncontended_mutex_takes_two_atomics_and_the_light_one_takes_one() {
        let of = |name: &str| {
            let (_, run) = LOCKS.iter().find(|(known, _)| *known == name).expect("a name");
            row(name, 1, *run).unwrap_or_else(|_| panic!("{name} is stuck"))
        };
        let (mutex, light) = (of("shfl-mutex"), of("shfl-mutex+light"));
        let near = |value: &Value, wanted: f64| {
            value.as_f64().is_some_and(|seen| (seen - wanted).abs() < 0.01)
        };
        assert!(near(&mutex["atomics_per_op"]["owner"], 1.0), "{mutex}");
        assert!(near(&light["atomics_per_op"]["owner"], 0.0), "{light}");
        assert!(near(&light["atomics_per_op"]["others"], 1.0), "{light}");
        assert_eq!(mutex["model"], true);
        assert_eq!(mutex, of("shfl-mutex"), "the same each time");
    }
}
