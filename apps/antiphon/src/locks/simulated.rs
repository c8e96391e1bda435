//! The behaviour of a lock on a simulated machine with many sockets: which CPUs execute its atomic
//! instructions, how long it stays on a socket, and the cost of shuffling.
//!
//! The same code runs here as on Linux, with the same outcome each time. All rows carry
//! `"model": true`: they are predictions of the simulator's machine, not of any real one.

use antiphon_replay::locks::{Instance, SimLock};
use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;
use antiphon_sim::{Counts, Machine, Outcome, Pace, contend};
use serde_json::{Value, json};

use super::catalogue::LOCKS;

/// Numbers of threads: one alone, those of a socket, those of the machine.
pub const THREADS: [usize; 3] = [1, 24, 192];
const LIMIT_NS: u64 = 2_000_000;
const PACE: Pace = Pace { section_ns: 50, away_ns: 200 };

/// Our locks that this command lists, in the simulator's form; readers-writer locks are taken for
/// writing only.
fn subjects() -> impl Iterator<Item = &'static SimLock> {
    let ours = |subject: &&SimLock| LOCKS.iter().any(|lock| lock.ours && lock.name == subject.name);
    antiphon_replay::locks::LOCKS.iter().filter(ours)
}

fn run(subject: &SimLock, machine: &Machine, threads: usize) -> Result<Outcome, Failure> {
    let take = |lock: &Instance| lock.lock();
    // SAFETY: the lock was taken before it is given back.
    let give = |lock: &Instance| unsafe { lock.unlock() };
    let lock = subject.instance().expect("no lock of this list is delegated to");
    let machine = subject.on(machine);
    contend(machine, threads, PACE, LIMIT_NS, lock, (take, give)).map_err(Failure::measured)
}

/// The number of simulations that [`rows`] runs.
pub fn steps() -> usize {
    subjects().count() * THREADS.len()
}

/// A row for each of our locks and each number of threads.
///
/// # Errors
///
/// A lock that can't go on, which is a defect.
pub fn rows(progress: &mut Progress) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    for subject in subjects() {
        for threads in THREADS {
            progress.step(&format!("simulated, {threads} threads: {}", subject.name));
            rows.push(row(subject, threads)?);
        }
    }
    Ok(rows)
}

fn row(subject: &SimLock, threads: usize) -> Result<Value, Failure> {
    let machine = Machine::eight_sockets();
    let outcome = run(subject, &machine, threads)?;
    let operations = outcome.total_operations() as f64;
    let share = |part: u64, whole: u64| (whole > 0).then(|| round(part as f64 / whole as f64));
    let each = |count: u64| (operations > 0.0).then(|| round(count as f64 / operations));
    let Counts { notes, notes_while_owned, handovers, handovers_within_socket, .. } =
        outcome.counts;
    Ok(json!({
        "model": true, "machine": machine.name, "subject": subject.name, "threads": threads,
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

/// Rounds to three decimals: more are not worth showing of a simulated figure.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uncontended_mutex_takes_two_atomics_and_the_light_one_takes_one() {
        let of = |name: &str| {
            let subject = subjects().find(|subject| subject.name == name).expect("a name");
            row(subject, 1).unwrap_or_else(|_| panic!("{name} is stuck"))
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
