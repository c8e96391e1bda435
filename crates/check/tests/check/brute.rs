//! Tests of the reduced exploration against an enumeration of all interleavings, on random
//! programs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use antiphon_check::{Check, FailureKind, Mode, Model, Report, U8, U16, U32};
use antiphon_platform::{
    Arena, Atomic, AtomicInteger, Atomics as _, Budget, LightUnlock as _, Platform, WaiterId,
    WaiterRef,
};

/// The nodes.
fn arena() -> &'static Arena<Check> {
    // SAFETY: each thread writes only to nodes that it has taken.
    unsafe { Check::arena() }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Load(usize, Ordering),
    Store(usize, u32, Ordering),
    Swap(usize, u32, Ordering),
    Add(usize, Ordering),
    Exchange(usize, u32, u32, Ordering),
    Await(usize, u32, Ordering),
    Spin(usize, u32, Ordering),
    Fence(Ordering),
    Park,
    Unpark(usize),
    Choose,
    /// Raises the flag of the sections.
    Raise,
    Heavy,
    Section(u8),
    /// Reads the word of the sections.
    LoadSection,
}

/// The state that a program's threads share.
struct Shared {
    words: [U32; 2],
    section: U8,
    flag: U16,
    waiters: Vec<WaiterRef>,
}

/// A deterministic stream of numbers (xorshift).
struct Numbers(Cell<u64>);

impl Numbers {
    fn below(&self, n: usize) -> usize {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        (x >> 11) as usize % n
    }

    fn of<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Operations around sections and parking.
    fn special(&self, threads: usize) -> Operation {
        match self.below(11) {
            0 => Operation::Park,
            1 => Operation::Unpark(self.below(threads)),
            2 => Operation::Choose,
            3 => Operation::Raise,
            4 | 5 => Operation::Heavy,
            6 | 7 => Operation::Section(1 + self.below(2) as u8),
            8 | 9 => Operation::LoadSection,
            _ => self.operation(false),
        }
    }

    /// `waits`: with operations that may block.
    fn operation(&self, waits: bool) -> Operation {
        let word = self.below(2);
        let value = self.below(3) as u32;
        let reads = [Relaxed, Acquire];
        let writes = [Relaxed, Release];
        let both = [Relaxed, Acquire, Release, AcqRel];
        match self.below(if waits { 15 } else { 11 }) {
            0..=2 => Operation::Load(word, self.of(&reads)),
            3..=5 => Operation::Store(word, value, self.of(&writes)),
            6 => Operation::Swap(word, value, self.of(&both)),
            7 => Operation::Add(word, self.of(&both)),
            8 => Operation::Exchange(word, value, self.below(3) as u32, self.of(&both)),
            9 | 10 => Operation::Fence(self.of(&[Acquire, Release, SeqCst, SeqCst, SeqCst])),
            11 | 12 => Operation::Await(word, value, self.of(&reads)),
            _ => Operation::Spin(word, value, self.of(&reads)),
        }
    }
}

fn perform(operation: Operation, me: usize, shared: &Shared) -> u32 {
    let words = &shared.words;
    match operation {
        Operation::Load(word, order) => words[word].load(order),
        Operation::Store(word, value, order) => {
            words[word].store(value, order);
            0
        }
        Operation::Swap(word, value, order) => words[word].swap(value, order),
        Operation::Add(word, order) => words[word].fetch_add(1, order),
        Operation::Exchange(word, old, new, order) => {
            match words[word].compare_exchange(old, new, order, Relaxed) {
                Ok(seen) => seen,
                Err(seen) => seen + 10,
            }
        }
        Operation::Await(word, value, order) => words[word].wait_while(order, |v| v == value),
        Operation::Spin(word, value, order) => {
            words[word].spin_while(order, Budget::ns(1), |v| v == value).unwrap_or_else(|v| v + 20)
        }
        Operation::Fence(order) => {
            Check::fence(order);
            0
        }
        Operation::Park => {
            let node = WaiterId::from_bits(shared.waiters[me].index)
                .and_then(|id| arena().resolve_any(id))
                .expect("it was handed out");
            let _ = Check::park(node, None);
            0
        }
        Operation::Unpark(whom) => {
            Check::unpark(shared.waiters[whom]);
            0
        }
        Operation::Choose => antiphon_check::choose(2) as u32,
        Operation::Raise => {
            shared.flag.store(1, Relaxed);
            0
        }
        Operation::Heavy => {
            Check::heavy_fence().expect("it is granted");
            0
        }
        Operation::Section(value) => {
            // SAFETY: both words live until the execution has ended.
            u32::from(unsafe { Check::store_unless(&shared.section, value, &shared.flag) })
        }
        Operation::LoadSection => shared.section.load(Relaxed).into(),
    }
}

fn run(
    mode: Mode,
    expiries: u32,
    program: &[Vec<Operation>],
) -> (BTreeSet<(Vec<u32>, u64)>, Report) {
    let all = RefCell::new(BTreeSet::new());
    let report = Model::new("random program").expiries(expiries).light(true).mode(mode).run(|s| {
        let waiters = (program.iter())
            .map(|_| {
                let id = arena().take().expect("there are nodes enough");
                arena().reference(id.index()).expect("it is in use")
            })
            .collect();
        let words = [const { U32::ZERO }; 2];
        let shared = s.share(Shared { words, section: U8::ZERO, flag: U16::ZERO, waiters });
        let seen = s.share(RefCell::new(vec![Vec::new(); program.len()]));
        for (number, thread) in program.iter().enumerate() {
            s.spawn(move || {
                for &operation in thread {
                    let value = perform(operation, number, shared);
                    seen.borrow_mut()[number].push(value);
                }
            });
        }
        let all = &all;
        s.finally(move || {
            let fingerprint = antiphon_check::fingerprint();
            let mut outcome = seen.borrow().concat();
            outcome.extend(shared.words.iter().map(|word| word.load(Relaxed)));
            outcome.push(shared.section.load(Relaxed).into());
            all.borrow_mut().insert((outcome, fingerprint));
        });
    });
    (all.into_inner(), report)
}

/// The waits of a program's threads.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    /// No waits.
    None,
    /// Only parks, among sections and choices.
    Special,
    /// Waits that may always give up.
    Free,
    /// Waits that may give up once, and after that only when nothing else can happen. Their later
    /// steps are also explored in other contexts, so there may be more outcomes than enumerated.
    Bounded,
}

fn compare(seeds: std::ops::Range<u64>, shape: &[usize], waits: Waits) {
    let expiries = if waits == Waits::Bounded { 1 } else { 9 };
    let (mut executions, mut enumerated, mut deadlocks) = (0, 0, 0);
    let (mut repeated, mut discarded) = (0, 0);
    for seed in seeds {
        let numbers = Numbers(Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1));
        let program: Vec<Vec<Operation>> = (shape.iter())
            .map(|&length| {
                let operation = |_| match waits {
                    Waits::Special => numbers.special(shape.len()),
                    _ => numbers.operation(waits != Waits::None),
                };
                (0..length).map(operation).collect()
            })
            .collect();
        let (reduced, report) = run(Mode::Exhaustive, expiries, &program);
        let (all, full) = run(Mode::Enumerate, expiries, &program);
        let kind = |report: &Report| report.failure.as_ref().map(|failure| failure.kind);
        assert_eq!(kind(&report), kind(&full), "seed {seed}: {program:?}");
        if let Some(kind) = kind(&report) {
            assert_eq!(kind, FailureKind::Deadlock);
            deadlocks += 1;
            continue;
        }
        let unique = reduced.len() as u64 == report.executions;
        assert!(unique || waits == Waits::Bounded, "seed {seed}: {program:?}: the same twice");
        repeated += report.executions - reduced.len() as u64;
        discarded += report.discarded;
        let missing: Vec<_> = all.difference(&reduced).collect();
        let surplus: Vec<_> = reduced.difference(&all).collect();
        assert!(
            missing.is_empty() && (surplus.is_empty() || waits == Waits::Bounded),
            "seed {seed}: {program:?}: missing {missing:?}, surplus {surplus:?}"
        );
        executions += report.executions;
        enumerated += full.executions + full.discarded;
    }
    println!(
        "{executions} executions ({repeated} repeated, {discarded} discarded) for {enumerated} \
         interleavings, {deadlocks} deadlocks"
    );
}

#[test]
fn two_threads() {
    compare(0..800, &[3, 3], Waits::None);
}

#[test]
fn three_threads() {
    compare(1000..1600, &[2, 2, 2], Waits::None);
}

#[test]
fn two_threads_that_wait() {
    compare(2000..2800, &[3, 3], Waits::Free);
}

#[test]
fn three_threads_that_wait() {
    compare(4000..4600, &[2, 2, 2], Waits::Free);
}

#[test]
fn spins_with_a_bound() {
    compare(2000..2800, &[3, 3], Waits::Bounded);
    compare(4000..4400, &[2, 2, 2], Waits::Bounded);
}

#[test]
fn parks_sections_and_choices() {
    compare(8000..8300, &[3, 3], Waits::Special);
    compare(9500..9650, &[2, 2, 2], Waits::Special);
}

#[test]
fn chance_shows_nothing_else() {
    let mut shown = 0;
    for seed in 0..300 {
        let numbers = Numbers(Cell::new(seed * 2 + 1));
        let program: Vec<Vec<Operation>> =
            (0..3).map(|_| (0..2).map(|_| numbers.operation(false)).collect()).collect();
        let (all, _) = run(Mode::Exhaustive, 9, &program);
        let executions = 100;
        for mode in [Mode::Random { seed, executions }, Mode::Pct { seed, depth: 3, executions }] {
            let (some, report) = run(mode, 9, &program);
            report.assert_ok();
            assert!(some.is_subset(&all), "seed {seed}: {program:?}");
            shown += some.len();
        }
    }
    assert!(shown > 1_000, "{shown}");
}

#[test]
fn longer_threads_that_wait() {
    compare(6000..6050, &[3, 3, 2], Waits::Free);
    compare(7000..7010, &[2, 2, 2, 1], Waits::Free);
}
