//! The cost of a timer: `timers [REACH_MS]`, by default with deadlines up to a second away, of
//! which there are 1, 1000 or a million. One is taken away and set anew, or is due and set anew: in
//! a wheel, beside `BTreeMap` and `BinaryHeap`; rounds in turn, medians.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::process::ExitCode;
use std::ptr::NonNull;
use std::time::Instant;

use antiphon_runtime::timer::{Timer, Wheel};

const ROUNDS: usize = 7;
const STEPS: u64 = 1_000_000;

/// Timers by number, however they are kept.
trait Timers {
    fn set(&mut self, number: usize, at_ns: u64);
    /// Takes one that is set away, and sets it for another time.
    fn move_to(&mut self, number: usize, at_ns: u64);
    fn expire(&mut self, now_ns: u64) -> Option<usize>;
}

struct InWheel {
    wheel: Wheel,
    timers: Box<[Timer]>,
}

impl Timers for InWheel {
    fn set(&mut self, number: usize, at_ns: u64) {
        let first = NonNull::from(&*self.timers).cast::<Timer>();
        // SAFETY: a timer of the slice, which is not moved or borrowed mutably; the wheel is used
        // as long as this.
        unsafe { self.wheel.insert(first.add(number), at_ns) };
    }

    fn move_to(&mut self, number: usize, at_ns: u64) {
        self.set(number, at_ns);
    }

    fn expire(&mut self, now_ns: u64) -> Option<usize> {
        let timer = self.wheel.expire(now_ns)?;
        Some((timer.addr().get() - self.timers.as_ptr().addr()) / size_of::<Timer>())
    }
}

/// A map: a caller that takes a timer away knows its deadline.
struct InMap {
    map: BTreeMap<(u64, usize), ()>,
    at_ns: Box<[u64]>,
}

impl Timers for InMap {
    fn set(&mut self, number: usize, at_ns: u64) {
        self.map.insert((at_ns, number), ());
        self.at_ns[number] = at_ns;
    }

    fn move_to(&mut self, number: usize, at_ns: u64) {
        self.map.remove(&(self.at_ns[number], number));
        self.set(number, at_ns);
    }

    fn expire(&mut self, now_ns: u64) -> Option<usize> {
        let first = self.map.first_entry().filter(|first| first.key().0 <= now_ns)?;
        Some(first.remove_entry().0.1)
    }
}

/// A heap: a timer that is taken away stays, and is passed over at its deadline, or thrown out with
/// the others when they are as many as those that are set.
struct InHeap {
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    at_ns: Box<[u64]>,
}

impl Timers for InHeap {
    fn set(&mut self, number: usize, at_ns: u64) {
        self.heap.push(Reverse((at_ns, number)));
        self.at_ns[number] = at_ns;
    }

    fn move_to(&mut self, number: usize, at_ns: u64) {
        self.set(number, at_ns);
        if self.heap.len() > 2 * self.at_ns.len() {
            self.heap.retain(|&Reverse((at_ns, number))| self.at_ns[number] == at_ns);
        }
    }

    fn expire(&mut self, now_ns: u64) -> Option<usize> {
        loop {
            let first = self.heap.peek_mut().filter(|first| first.0.0 <= now_ns)?;
            let Reverse((at_ns, number)) = std::collections::binary_heap::PeekMut::pop(first);
            if self.at_ns[number] == at_ns {
                return Some(number);
            }
        }
    }
}

/// A generator of Marsaglia's, "Xorshift RNGs" (Journal of Statistical Software 8, 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Nanoseconds for a timer that is moved, and for one that expires and is set anew.
fn measure(mut timers: impl Timers, count: usize, reach_ns: u64) -> [f64; 2] {
    let random = &mut Random(0x9e37_79b9_7f4a_7c15);
    let mut now_ns = 1 << 50;
    assert_eq!(timers.expire(now_ns), None);
    for number in 0..count {
        timers.set(number, now_ns + 1 + random.below(reach_ns));
    }
    let expired = timed(|| {
        let mut left = STEPS;
        while left > 0 {
            now_ns += (reach_ns / 2 / count as u64).max(1);
            while let Some(number) = timers.expire(now_ns) {
                timers.set(number, now_ns + 1 + random.below(reach_ns));
                left = left.saturating_sub(1);
            }
        }
    });
    let moved = timed(|| {
        for _ in 0..STEPS {
            let number = random.below(count as u64) as usize;
            timers.move_to(number, now_ns + 1 + random.below(reach_ns));
        }
    });
    [moved, expired]
}

fn timed(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64 / STEPS as f64
}

fn main() -> ExitCode {
    let reach = std::env::args().nth(1).map_or(Ok(1_000), |word| word.parse::<u64>());
    let Some(reach_ns) = reach.ok().filter(|&ms| (1..1 << 30).contains(&ms)) else {
        eprintln!("a number of milliseconds is wanted, from 1 to a milliard");
        return ExitCode::from(2);
    };
    let reach_ns = reach_ns * 1_000_000;
    println!("ns for each              taken away, set     due, set anew");
    for count in [1, 1_000, 1_000_000] {
        let mut rounds = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            let at_ns = || vec![0; count].into_boxed_slice();
            let timers = (0..count).map(|_| Timer::new()).collect();
            rounds[0].push(measure(InWheel { wheel: Wheel::new(), timers }, count, reach_ns));
            let map = InMap { map: BTreeMap::new(), at_ns: at_ns() };
            rounds[1].push(measure(map, count, reach_ns));
            let heap = InHeap { heap: BinaryHeap::new(), at_ns: at_ns() };
            rounds[2].push(measure(heap, count, reach_ns));
        }
        for (name, rounds) in ["Wheel", "BTreeMap", "BinaryHeap"].iter().zip(&mut rounds) {
            let [moved, expired] = [0, 1].map(|which| {
                rounds.sort_by(|one, other| one[which].total_cmp(&other[which]));
                rounds[ROUNDS / 2][which]
            });
            println!("{name:<11}{count:>9}{moved:>17.1}{expired:>18.1}");
        }
    }
    ExitCode::SUCCESS
}
