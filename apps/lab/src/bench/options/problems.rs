//! The problems of chains of tasks: values of options, and scores of alignments.

use antiphon_report::stats::Random;

use super::alignment::{Pair, Rows};
use super::binomial::{Call, Lattice};
use super::cases::Kernel;

/// The problem of a chain.
pub struct Problem {
    /// Number of steps.
    depth: usize,
    of: Of,
    /// The answer computed by a single thread.
    answer: f64,
}

enum Of {
    Call(Call),
    Pair(Pair),
}

/// A chain in progress.
pub enum Chain<'a> {
    /// A lattice, folded from its leaves.
    Lattice(Lattice),
    /// A table, computed from its first row.
    Rows(Rows<'a>),
}

/// Number of different pairs of sequences of each length.
const PAIRS: usize = 4;

impl Problem {
    /// Makes the problems of a kernel, of `depth` steps each.
    pub fn all(kernel: Kernel, depth: usize, strike: f64, seed: u64) -> Vec<Self> {
        let mut random = Random(seed ^ depth as u64);
        let all: Vec<_> = match kernel {
            Kernel::Binomial => vec![Of::Call(Call::published(strike))],
            Kernel::SmithWaterman => {
                (0..PAIRS).map(|_| Of::Pair(Pair::drawn(depth, &mut random))).collect()
            }
        };
        all.into_iter().map(|of| Self { depth, answer: solved(&of, depth), of }).collect()
    }

    /// Returns the number of tasks: one for each step, and one for the leaves of a lattice.
    pub fn tasks(&self) -> u64 {
        self.depth as u64 + u64::from(matches!(self.of, Of::Call(_)))
    }

    /// Runs the first task. Returns whether another follows.
    pub fn begin(&self) -> (Chain<'_>, bool) {
        begin(&self.of, self.depth)
    }

    /// Returns whether a finished chain has found the expected answer.
    pub fn is_answer(&self, chain: &Chain<'_>) -> bool {
        chain.answer().to_bits() == self.answer.to_bits()
    }
}

fn begin(of: &Of, depth: usize) -> (Chain<'_>, bool) {
    match of {
        Of::Call(call) => (Chain::Lattice(Lattice::new(call, depth)), true),
        Of::Pair(pair) => {
            let mut rows = Rows::new(pair);
            let more = rows.next();
            (Chain::Rows(rows), more)
        }
    }
}

fn solved(of: &Of, depth: usize) -> f64 {
    let (mut chain, mut more) = begin(of, depth);
    while more {
        more = chain.step();
    }
    chain.answer()
}

impl Chain<'_> {
    /// Runs the next task. Returns whether another follows.
    pub fn step(&mut self) -> bool {
        match self {
            Self::Lattice(lattice) => lattice.fold(),
            Self::Rows(rows) => rows.next(),
        }
    }

    fn answer(&self) -> f64 {
        match self {
            Self::Lattice(lattice) => lattice.value(),
            Self::Rows(rows) => rows.best().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_so_many_tasks_and_finds_its_answer() {
        for (kernel, tasks) in [(Kernel::Binomial, 21), (Kernel::SmithWaterman, 20)] {
            for problem in Problem::all(kernel, 20, 100.0, 1) {
                let (mut chain, mut more) = problem.begin();
                assert!(!problem.is_answer(&chain));
                let mut done = 1;
                while more {
                    more = chain.step();
                    done += 1;
                }
                assert_eq!((done, problem.tasks()), (tasks, tasks));
                assert!(problem.is_answer(&chain));
            }
        }
    }
}
