//! The axiom of `fences.rs`, computed from the whole graph as stated there: the reference for the
//! incremental relation.

use crate::clock::Id;
use crate::execution::Execution;
use crate::fences::is_node;
use crate::graph::{Event, Kind, Meta};

/// A node: its first event and the stamp of its last, and whether it is light or heavy.
struct Node {
    first: Id,
    last: usize,
    is_light: bool,
    is_heavy: bool,
}

impl Execution {
    fn nodes(&self) -> Vec<Node> {
        let nodes = self.graph.events.iter().enumerate().filter(|(_, event)| is_node(event));
        nodes
            .map(|(stamp, event)| {
                let next = Id { index: event.id.index + 1, ..event.id };
                let last = self.index.get(next).filter(|&next| {
                    let next = &self.graph.events[next];
                    event.section && next.section && next.is_write()
                });
                Node {
                    first: event.id,
                    last: last.unwrap_or(stamp),
                    is_light: event.is_read() || event.kind == Kind::Light,
                    is_heavy: event.kind == Kind::Heavy,
                }
            })
            .collect()
    }

    /// The place of an access in the coherence order of its location.
    fn place(&self, event: &Event) -> (u16, bool) {
        if event.is_write() { (event.rank, false) } else { (self.rank(event.from), true) }
    }

    /// Returns whether `from` comes before `to` directly.
    fn comes_before(&self, from: &Node, to: &Node) -> bool {
        let is_ordered = if from.is_light || to.is_light {
            from.is_heavy || to.is_heavy
        } else {
            from.first != to.first
        };
        let happens_before = &self.meta[to.last].before;
        let accesses = || self.graph.events.iter().enumerate().filter(|(_, one)| one.is_access());
        let mut after = accesses().filter(|&(stamp, _)| self.meta[stamp].before.covers(from.first));
        let orders = |(_, a): (usize, &Event)| {
            let mut before = accesses().filter(|(_, b)| happens_before.covers(b.id));
            before.any(|(_, b)| a.location == b.location && self.place(a) < self.place(b))
        };
        is_ordered && (happens_before.covers(from.first) || after.any(orders))
    }

    /// All pairs of nodes of which the first comes before the second, directly or indirectly.
    fn all_pairs(&self) -> Vec<(Id, Id)> {
        let nodes = self.nodes();
        let row = |from| nodes.iter().map(|to| self.comes_before(from, to)).collect();
        let mut edges: Vec<Vec<bool>> = nodes.iter().map(row).collect();
        for via in 0..nodes.len() {
            for from in 0..nodes.len() {
                for to in 0..nodes.len() {
                    edges[from][to] |= edges[from][via] && edges[via][to];
                }
            }
        }
        let all = 0..nodes.len();
        let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
        let pairs = pairs.filter(|&(from, to)| edges[from][to]);
        let mut pairs: Vec<_> =
            pairs.map(|(from, to)| (nodes[from].first, nodes[to].first)).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Compares the order of the fences with the axiom, when all events have taken place. In a long
    /// execution, only if their number is a multiple of 16.
    pub(crate) fn compare_fences(&self) {
        let events = self.graph.events.len();
        if events > 40 && !events.is_multiple_of(16) {
            return;
        }
        let plain = self.all_pairs();
        let is_broken = plain.iter().any(|(from, to)| from == to);
        assert_eq!(self.fences.is_broken(), is_broken);
        assert_eq!(self.fences.pairs(), plain);
    }

    /// Returns whether the axiom allows `event`, the current thread's next.
    pub(crate) fn axiom_allows(&mut self, event: Event, meta: Meta) -> bool {
        let graph = self.graph.clone();
        if event.is_write() {
            self.graph.make_room(event.location, event.rank);
        }
        self.index.insert(event.id, self.graph.events.len());
        self.graph.events.push(event);
        self.meta.push(meta);
        let allowed = self.all_pairs().iter().all(|(from, to)| from != to);
        self.meta.pop();
        self.index.remove(event.id);
        self.graph = graph;
        allowed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

    use antiphon_platform::{Atomic, AtomicInteger, Atomics as _, LightUnlock as _};

    use crate::decide::Rng;
    use crate::{Check, FailureKind, Mode, Model, U8, U16, U32};

    struct Shared {
        words: [U32; 3],
        section: U8,
        flag: U16,
    }

    fn perform(rng: &mut Rng, shared: &Shared) {
        let word = &shared.words[rng.below(3)];
        let value = rng.below(3) as u32;
        match rng.below(16) {
            0 | 1 => drop(word.load([Relaxed, Acquire][rng.below(2)])),
            2..=4 => word.store(value, [Relaxed, Release][rng.below(2)]),
            5 => drop(word.fetch_add(1, [Relaxed, AcqRel][rng.below(2)])),
            6..=9 => Check::fence([SeqCst, SeqCst, SeqCst, AcqRel][rng.below(4)]),
            10 => Check::heavy_fence().expect("it is granted"),
            11 => Check::light_fence(),
            12 | 13 => {
                // SAFETY: both words live until the execution has ended.
                unsafe { Check::store_unless(&shared.section, 1 + value as u8, &shared.flag) };
            }
            14 => drop(shared.section.load(Relaxed)),
            _ => shared.flag.store(value as u16, Relaxed),
        }
    }

    /// Runs random programs. `execution.rs` makes the comparisons.
    fn run(seeds: std::ops::Range<u64>, shape: &[usize], mode: impl Fn(u64) -> Mode) -> u64 {
        let mut executions = 0;
        for seed in seeds {
            let model = Model::new("random program").light(true).mode(mode(seed));
            let report = model.executions(3_000).run(|s| {
                let words = [const { U32::ZERO }; 3];
                let shared = s.share(Shared { words, section: U8::ZERO, flag: U16::ZERO });
                for (number, &length) in shape.iter().enumerate() {
                    let mut rng = Rng(seed << 8 | number as u64);
                    s.spawn(move || (0..length).for_each(|_| perform(&mut rng, shared)));
                }
            });
            let failure = report.failure.as_ref().map(|failure| (failure.kind, &failure.what));
            assert!(failure.is_none_or(|(kind, _)| kind == FailureKind::Deadlock), "{failure:?}");
            executions += report.executions + report.discarded;
        }
        executions
    }

    #[test]
    fn the_order_of_fences_is_that_of_the_axiom_in_all_executions() {
        let exhaustive = |_| Mode::Exhaustive;
        let executions = run(0..300, &[4, 4], exhaustive) + run(1000..1200, &[5, 5, 4], exhaustive);
        assert!(executions > 5_000, "{executions}");
    }

    #[test]
    fn the_order_of_fences_is_that_of_the_axiom_in_long_executions() {
        run(2000..2020, &[12, 12, 12], |seed| Mode::Random { seed, executions: 5 });
        run(3000..3020, &[9, 9, 9, 9], |seed| Mode::Pct { seed, depth: 3, executions: 5 });
    }

    #[test]
    fn there_may_be_more_fences_than_a_word_has_bits() {
        run(4000..4002, &[100, 100], |seed| Mode::Random { seed, executions: 1 });
    }
}
