//! The decider: it chooses among the ways in which an execution can continue.

use crate::graph::Graph;

/// A small, fast pseudo-random generator (SplitMix64's step).
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// The strategy for alternatives.
#[derive(Debug)]
pub(crate) enum Way {
    /// Take the first, and keep the others for later executions.
    Explore,
    /// Take the first; there are no later executions.
    First,
    /// Take a random one. The running thread continues with a chance of `sticky` in 64, so that
    /// some executions have long runs of one thread and others switch all the time.
    Random { rng: Rng, sticky: usize, running: usize },
    /// Random, with threads by priority; `changes` are event counts at which the running thread
    /// gets the lowest priority.
    Pct { rng: Rng, priorities: Vec<u64>, changes: Vec<usize> },
    /// Take them in turn, for each order of threads; the path has pairs (alternative taken, number
    /// of alternatives).
    Enumerate { path: Vec<(usize, usize)>, depth: usize },
}

#[derive(Debug)]
pub(crate) struct Decider {
    pub(crate) way: Way,
    /// Graphs to run later.
    pub(crate) later: Vec<Graph>,
    pub(crate) what_failed: Option<String>,
}

impl Decider {
    pub(crate) fn new(way: Way) -> Self {
        Self { way, later: Vec::new(), what_failed: None }
    }

    pub(crate) fn explores(&self) -> bool {
        matches!(self.way, Way::Explore)
    }

    /// Returns whether a scheduler picks the thread of each event.
    pub(crate) fn schedules(&self) -> bool {
        !matches!(self.way, Way::Explore | Way::First)
    }

    /// Picks one of `n` ways to continue; the first is the canonical one.
    pub(crate) fn pick(&mut self, n: usize) -> usize {
        match &mut self.way {
            Way::Explore | Way::First => 0,
            _ if n == 1 => 0,
            Way::Random { rng, .. } | Way::Pct { rng, .. } => {
                // The canonical way is the most likely one on real hardware: taken half of the
                // time.
                if rng.next() % 2 == 0 { 0 } else { rng.below(n) }
            }
            Way::Enumerate { .. } => self.enumerate(n),
        }
    }

    /// Picks the thread of `runnable` to continue with, after `events` events.
    pub(crate) fn schedule(&mut self, runnable: &[usize], events: usize) -> usize {
        match &mut self.way {
            Way::Random { rng, sticky, running } => {
                if !runnable.contains(running) || rng.below(64) >= *sticky {
                    *running = runnable[rng.below(runnable.len())];
                }
                *running
            }
            Way::Pct { rng, priorities, changes } => {
                let most = *runnable.iter().max().expect("somebody can run");
                while priorities.len() <= most {
                    priorities.push(rng.next() | 1 << 63);
                }
                let first = |priorities: &[u64]| {
                    let best = runnable.iter().max_by_key(|&&thread| priorities[thread]);
                    *best.expect("somebody can run")
                };
                if let Some(at) = changes.iter().position(|&change| change <= events) {
                    changes.swap_remove(at);
                    let thread = first(priorities);
                    priorities[thread] = at as u64;
                }
                first(priorities)
            }
            Way::Enumerate { .. } => runnable[self.enumerate(runnable.len())],
            Way::Explore | Way::First => runnable[0],
        }
    }

    fn enumerate(&mut self, n: usize) -> usize {
        let Way::Enumerate { path, depth } = &mut self.way else { return 0 };
        if n == 1 {
            return 0;
        }
        if *depth == path.len() {
            path.push((0, n));
        }
        let (taken, of) = path[*depth];
        assert_eq!(of, n, "the model is not deterministic");
        *depth += 1;
        taken
    }

    /// Moves to the next path of an enumeration; returns whether there is one.
    pub(crate) fn advance(&mut self) -> bool {
        let Way::Enumerate { path, depth } = &mut self.way else { return false };
        *depth = 0;
        while let Some((taken, of)) = path.pop() {
            if taken + 1 < of {
                path.push((taken + 1, of));
                return true;
            }
        }
        false
    }

    pub(crate) fn failed(&mut self, what: String) {
        self.what_failed.get_or_insert(what);
    }
}
