//! The cost of moving a cache line between two CPUs: half a round trip of a word.
//!
//! Published core-to-core figures measure the same, and it is a machine file's `transfer`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_linux::ticks;
use antiphon_report::failure::Failure;
use antiphon_sim::Topology;

use crate::pinned::{Figure, Switches, on_each};
use crate::ticks::Ticks;

/// Round trips in a window, which lasts some ten microseconds.
const TRIPS: u64 = 100;
/// Maximal number of pairs for each distance.
const PAIRS: usize = 64;

/// Two CPUs and the cost of a line between them.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Place of the first CPU.
    pub from: usize,
    /// Place of the second CPU.
    pub to: usize,
    /// Their class of distance in the topology.
    pub class: usize,
    /// Nanoseconds in one direction.
    pub ns: Option<Figure>,
}

/// Returns the pairs of `places` to measure: all, or enough of each distance.
pub fn pairs(topology: &Topology, places: &[usize]) -> Vec<Pair> {
    let mut by_class = vec![Vec::new(); topology.classes().len()];
    for (number, &from) in places.iter().enumerate() {
        for &to in &places[number + 1..] {
            let class = topology.class(from as u32, to as u32);
            by_class[class].push(Pair { from, to, class, ns: None });
        }
    }
    let some = |all: Vec<Pair>| {
        let step = all.len().div_ceil(PAIRS).max(1);
        all.into_iter().step_by(step)
    };
    by_class.into_iter().flat_map(some).collect()
}

/// The word that two CPUs exchange, on cache lines that hold nothing else.
#[repr(align(128))]
struct Word(AtomicU64);

/// Measures one pair.
///
/// # Errors
///
/// If one of the CPUs can't be used.
pub fn measure(watch: Ticks, pair: &mut Pair, windows: usize) -> Result<(), Failure> {
    // Even: the first thread's turn; odd: the second's.
    let word = Word(AtomicU64::new(0));
    let turn = |mine: u64| {
        // By compare-and-swap, as in the published matrices; it requests the line for writing.
        while word.0.compare_exchange(mine, mine + 1, Acquire, Relaxed).is_err() {}
    };
    let seen = on_each(&[pair.from, pair.to], |number| {
        let mut seen = Vec::with_capacity(windows);
        let mut mine = number as u64;
        for _ in 0..windows {
            let before = Switches::now();
            // The other thread may still be starting: this turn is not counted.
            turn(mine);
            let begin = ticks();
            for trip in 1..=TRIPS {
                turn(mine + 2 * trip);
            }
            let ns = watch.ns(begin, ticks()) / (2 * TRIPS) as f64;
            mine += 2 * (TRIPS + 1);
            seen.push((Switches::now() == before).then_some(ns));
        }
        seen
    })?;
    // Both threads' windows are the same round trips: a disturbed thread delays the other.
    let both: Vec<_> =
        seen[0].iter().zip(&seen[1]).map(|(one, other)| one.and(*other).and(*one)).collect();
    pair.ns = Figure::of(&both);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_sim::Machine;

    #[test]
    fn each_distance_has_its_pairs_and_not_too_many() {
        let topology = Machine::eight_sockets().topology;
        let places: Vec<_> = (0..topology.cpus() as usize).collect();
        let pairs = pairs(&topology, &places);
        for class in 0..topology.classes().len() {
            let of = pairs.iter().filter(|pair| pair.class == class);
            let count = of.count();
            assert!((1..=PAIRS).contains(&count), "{count} of class {class}");
        }
        let two = super::pairs(&topology, &places[..2]);
        assert_eq!(two.len(), 1);
    }
}
