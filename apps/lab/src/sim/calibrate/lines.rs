//! The cost of a line from one CPU to another: half a round trip of two that exchange a word.
//!
//! That is what published core-to-core figures measure, and what a machine file's `transfer` is.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_linux::ticks;
use antiphon_report::failure::Failure;
use antiphon_sim::Topology;

use crate::pinned::{Figure, Stopwatch, Switches, on_each};

/// Round trips in a window: some ten microseconds.
const TRIPS: u64 = 100;
/// Pairs of each distance at most.
const PAIRS: usize = 64;

/// Two CPUs and what a line takes between them.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// One.
    pub from: usize,
    /// The other.
    pub to: usize,
    /// The class of distance of the topology that they are at.
    pub class: usize,
    /// Nanoseconds one way.
    pub ns: Option<Figure>,
}

/// The pairs of `places` to measure: all, or as many of each distance as are enough.
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

/// The word that two CPUs exchange, on lines of its own.
#[repr(align(128))]
struct Word(AtomicU64);

/// Measures one pair.
///
/// # Errors
///
/// If one of the CPUs can't be used.
pub fn measure(watch: Stopwatch, pair: &mut Pair, windows: usize) -> Result<(), Failure> {
    // Even: the first thread's turn; odd: the other's.
    let word = Word(AtomicU64::new(0));
    let turn = |mine: u64| {
        // As for the published matrices: by compare-and-swap, which asks for the line to write it.
        while word.0.compare_exchange(mine, mine + 1, Acquire, Relaxed).is_err() {}
    };
    let seen = on_each(&[pair.from, pair.to], |number| {
        let mut seen = Vec::with_capacity(windows);
        let mut mine = number as u64;
        for _ in 0..windows {
            let before = Switches::now();
            // The other may still be in its call: not counted.
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
    // Windows of both are the same round trips: a thread that was disturbed delayed the other.
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
