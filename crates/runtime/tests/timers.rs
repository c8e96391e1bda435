//! Tests a timer wheel against a sorted map, and the wake-ups that it costs a sleeper.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use antiphon_runtime::timer::{Timer, Wheel};

/// Depth of the wheel and width of a digit, for choosing times at which it could be wrong.
const LEVELS: u32 = 11;
const BITS: u32 = 6;

/// A structure that a timer is part of.
#[repr(C)]
struct Node {
    timer: Timer,
    id: usize,
}

/// A wheel, the nodes whose timers are in it, and a model of what it should do.
struct Pair {
    wheel: Wheel,
    nodes: Vec<NonNull<Node>>,
    /// The timers that are set: late timers first, then by deadline, then in the order in which
    /// they were set.
    model: BTreeMap<(bool, u64, u64), usize>,
    /// The place of each timer in the model.
    keys: Vec<Option<(bool, u64, u64)>>,
    /// Deadlines before this are late.
    passed_ns: u64,
    sets: u64,
}

impl Pair {
    fn new(nodes: usize) -> Self {
        let node = |id| NonNull::from(Box::leak(Box::new(Node { timer: Timer::new(), id })));
        let (wheel, model, keys) = (Wheel::new(), BTreeMap::new(), vec![None; nodes]);
        Self { wheel, nodes: (0..nodes).map(node).collect(), model, keys, passed_ns: 0, sets: 0 }
    }

    fn timer(&self, id: usize) -> &Timer {
        // SAFETY: the node lives until the drop, and is shared.
        unsafe { &self.nodes[id].as_ref().timer }
    }

    fn insert(&mut self, id: usize, at_ns: u64) {
        // SAFETY: the node lives as long as the wheel is used, by one thread.
        unsafe { self.wheel.insert(self.nodes[id].cast(), at_ns) };
        self.forget(id);
        self.sets += 1;
        let late = at_ns < self.passed_ns;
        let key = (!late, if late { 0 } else { at_ns }, self.sets);
        self.model.insert(key, id);
        self.keys[id] = Some(key);
        assert_eq!(self.timer(id).at_ns(), at_ns);
        self.compare();
    }

    fn remove(&mut self, id: usize) {
        // SAFETY: the node lives as long as the wheel is used, by one thread.
        unsafe { self.wheel.remove(self.nodes[id].cast()) };
        self.forget(id);
        assert!(!self.timer(id).is_set());
        self.compare();
    }

    fn forget(&mut self, id: usize) {
        if let Some(key) = self.keys[id].take() {
            self.model.remove(&key);
        }
    }

    /// Takes the next due timer, which wheel and model must agree on.
    fn expire(&mut self, now_ns: u64) -> Option<usize> {
        let out = self.wheel.expire(now_ns);
        let next = self.model.first_entry();
        let expected = next.filter(|next| !next.key().0 || next.key().1 <= now_ns);
        // SAFETY: it is the timer of a node, and the pointer is valid for the whole node.
        let id = out.map(|timer| unsafe { timer.cast::<Node>().as_ref() }.id);
        assert_eq!(id, expected.as_ref().map(|next| *next.get()), "at {now_ns}");
        match expected.map(|next| next.remove_entry()) {
            Some(((true, at_ns, _), _)) => self.passed_ns = at_ns,
            Some(_) => {}
            None => self.passed_ns = self.passed_ns.max(now_ns),
        }
        if let Some(id) = id {
            self.keys[id] = None;
            assert!(!self.timer(id).is_set());
        }
        self.compare();
        id
    }

    /// Takes all due timers, until the wheel returns a later time.
    fn expire_all(&mut self, now_ns: u64) -> usize {
        let out = std::iter::from_fn(|| self.expire(now_ns)).count();
        assert!(self.wheel.next_ns().is_none_or(|next| next > now_ns), "after {now_ns}");
        out
    }

    fn compare(&self) {
        assert_eq!(self.wheel.len(), self.model.len());
        assert_eq!(self.wheel.is_empty(), self.model.is_empty());
        let at = |&id: &usize| self.timer(id).at_ns();
        let earliest = match self.model.keys().next() {
            Some((false, ..)) => self.late().map(|(_, id)| at(id)).min(),
            _ => self.model.values().next().map(at),
        };
        let next = self.wheel.next_ns();
        assert_eq!(next.is_some(), earliest.is_some());
        assert!(next <= earliest, "{next:?} is after {earliest:?}");
        if self.model.len() <= 8 {
            assert_eq!(next, earliest, "of few");
        }
    }

    fn late(&self) -> impl Iterator<Item = (&(bool, u64, u64), &usize)> {
        self.model.range(..(true, 0, 0))
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for &node in &self.nodes {
            // SAFETY: the node came from a box, and the wheel is no longer used.
            drop(unsafe { Box::from_raw(node.as_ptr()) });
        }
    }
}

/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA
/// 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns a number of at most `most` bits, short ones as often as long ones.
    fn of_bits(&mut self, most: u32) -> u64 {
        match self.below(u64::from(most) + 1) {
            0 => 0,
            bits => self.next() >> (64 - bits),
        }
    }
}

/// Returns times near each digit's first and last values.
fn edges() -> Vec<u64> {
    let units = (0..LEVELS).map(|level| 1_u64 << (BITS * level));
    let near = |edge: u64| [edge.wrapping_sub(1), edge, edge.saturating_add(1)];
    let mut edges: Vec<_> = units
        .flat_map(|unit| [1, 63].map(|digit| unit.saturating_mul(digit)))
        .chain([u64::MAX])
        .flat_map(near)
        .collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[test]
fn any_steps_are_as_a_sorted_map_has_them() {
    let (seeds, steps) = if cfg!(miri) { (4, 150) } else { (200, 3_000) };
    for seed in 0..seeds {
        let random = &mut Random(seed);
        // Reach of deadlines and jumps, in bits, and number of timers.
        let reach = [8, 14, 20, 34, 50, 63][seed as usize % 6];
        let nodes = [3, 20, 300][seed as usize / 6 % 3];
        let mut pair = Pair::new(nodes);
        let mut now = random.of_bits(reach);
        for _ in 0..steps {
            let id = random.below(nodes as u64) as usize;
            match random.below(16) {
                0..7 => pair.insert(id, now.saturating_add(random.of_bits(reach))),
                7 => pair.insert(id, now.saturating_sub(random.of_bits(reach))),
                8 => pair.insert(id, pair.timer((id + 1) % nodes).at_ns()),
                9..12 => pair.remove(id),
                12 => {
                    now = now.saturating_add(random.of_bits(reach.saturating_sub(4)));
                    (0..random.below(4)).for_each(|_| _ = pair.expire(now));
                }
                13 => {
                    now = now.max(pair.wheel.next_ns().unwrap_or(0));
                    pair.expire_all(now);
                }
                14 => {
                    now = now.saturating_add(random.of_bits(reach.saturating_sub(4)));
                    pair.expire_all(now);
                }
                // Backwards, which no real clock goes.
                _ => _ = pair.expire(now.saturating_sub(random.of_bits(reach))),
            }
        }
        while let Some(next) = pair.wheel.next_ns() {
            pair.expire_all(next);
        }
    }
}

#[test]
fn each_boundary_is_exact_from_each_other() {
    let edges = edges();
    let step = if cfg!(miri) { 7 } else { 1 };
    for &begin in edges.iter().step_by(step) {
        for &at in edges.iter().filter(|&&at| at > begin).step_by(step) {
            let mut pair = Pair::new(3);
            assert_eq!(pair.expire(begin), None);
            pair.insert(0, at);
            pair.insert(1, at - 1);
            pair.insert(2, at.saturating_add(1));
            if at - 1 > begin {
                assert_eq!(pair.expire_all(at - 2), 0, "{begin}: {at}");
            }
            assert_eq!(pair.expire_all(at - 1), 1, "{begin}: {at}");
            assert_eq!(pair.expire_all(at), if at == u64::MAX { 2 } else { 1 }, "{begin}: {at}");
            assert_eq!(pair.expire_all(u64::MAX), usize::from(at < u64::MAX));
        }
    }
}

#[test]
fn a_crowd_on_both_sides_of_a_boundary_is_in_order() {
    let levels = if cfg!(miri) { 1..3 } else { 1..LEVELS };
    for level in levels {
        let edge = 1_u64 << (BITS * level);
        for begin in [0, edge - 1, edge / 2 + 1] {
            let mut pair = Pair::new(64);
            assert_eq!(pair.expire(begin), None);
            // 37 has no common factor with 64: all from 32 before to 31 after, in disorder.
            for id in 0..64 {
                pair.insert(id, edge + (37 * id as u64) % 64 - 32);
            }
            assert_eq!(pair.expire_all(edge - 2), 31, "late ones too");
            assert_eq!(pair.expire_all(edge - 1), 1);
            assert_eq!(pair.expire_all(edge), 1);
            assert_eq!(pair.expire_all(edge + 30), 30);
            assert_eq!(pair.expire_all(edge + 31), 1);
        }
    }
}

#[test]
fn the_same_nanosecond_is_in_the_order_of_setting() {
    let mut pair = Pair::new(30);
    for id in 0..10 {
        pair.insert(id, 1 << 40);
    }
    // Set when the wheel is nearer.
    assert_eq!(pair.expire((1 << 40) - 5_000), None);
    (10..20).for_each(|id| pair.insert(id, 1 << 40));
    assert_eq!(pair.expire((1 << 40) - 1), None);
    (20..30).for_each(|id| pair.insert(id, 1 << 40));
    for id in 0..30 {
        assert_eq!(pair.expire(1 << 40), Some(id));
    }
    assert_eq!(pair.expire(u64::MAX), None);
}

#[test]
fn a_deadline_that_is_passed_is_due_at_once() {
    let mut pair = Pair::new(12);
    assert_eq!(pair.expire(1_000), None);
    pair.insert(0, 999);
    pair.insert(1, 5);
    pair.insert(2, 1_000);
    assert_eq!(pair.wheel.next_ns(), Some(5));
    assert_eq!(pair.expire(1_000), Some(0), "as they were set");
    pair.remove(1);
    assert_eq!(pair.expire(1_000), Some(2));
    assert_eq!(pair.wheel.next_ns(), None);
    (0..12).for_each(|id| pair.insert(id, 10 + id as u64));
    assert_eq!(pair.wheel.next_ns(), Some(0), "many");
    // At any given time.
    assert_eq!(pair.expire_all(0), 12);
}

#[test]
fn the_last_nanosecond_is_a_deadline_like_others() {
    let mut pair = Pair::new(2);
    pair.insert(0, u64::MAX);
    assert_eq!(pair.expire_all(u64::MAX - 1), 0);
    pair.insert(1, u64::MAX);
    assert_eq!(pair.expire(u64::MAX), Some(0));
    assert_eq!(pair.expire(u64::MAX), Some(1));
    pair.insert(0, u64::MAX);
    assert_eq!(pair.expire(u64::MAX), Some(0));
}

#[test]
fn a_sleeper_wakes_for_nothing_but_once_a_level() {
    let (count, most) = if cfg!(miri) { (40, 30) } else { (1_000, 60) };
    for reach in (6..most).step_by(6) {
        for seed in 0..4 {
            let random = &mut Random(seed);
            let mut pair = Pair::new(count);
            // Far away, and close to each other.
            for id in 0..count {
                pair.insert(id, (1 << 62) + random.of_bits(reach));
            }
            let mut vain = 0;
            while let Some(next) = pair.wheel.next_ns() {
                vain += usize::from(pair.expire_all(next) == 0);
            }
            // Each unneeded wake-up moves more than eight timers a level down.
            let levels = (LEVELS - 1) as usize;
            assert!(vain * 8 < count * levels, "{vain} of {count} timers within {reach} bits");
        }
    }
    // With few timers nearby, only when it is time.
    let mut pair = Pair::new(8);
    for id in 0..8 {
        pair.insert(id, (1 << 62) + 100_000 * id as u64);
    }
    while let Some(next) = pair.wheel.next_ns() {
        assert_eq!(pair.expire_all(next), 1);
    }
}

#[test]
fn a_timer_that_is_not_set_is_removed_without_effect() {
    let mut pair = Pair::new(2);
    assert_eq!((pair.timer(0).is_set(), pair.timer(0).at_ns()), (false, 0));
    pair.remove(0);
    pair.insert(1, 70);
    pair.remove(0);
    assert_eq!(pair.expire(70), Some(1));
    pair.remove(1);
    pair.insert(1, 71);
    assert!(pair.timer(1).is_set());
    assert_eq!(pair.expire(71), Some(1));
}
