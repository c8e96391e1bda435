//! Tests of store buffers: exactly the outcomes that x86-TSO allows are seen.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Atomics, LightUnlock as _, Platform};
use antiphon_sim::{Machine, Memory, Model, OwnLine, Sim, Simulation, now, work};

use crate::{Word, small, time, word};

/// The results of `one` and `other`, run against each other on two words that both have in their
/// caches: one starts at 150 ns, the other at each instant up to 700.
fn outcomes(
    memory: Memory,
    one: fn(&[OwnLine<Word>; 2]) -> u32,
    other: fn(&[OwnLine<Word>; 2]) -> u32,
) -> BTreeSet<(u32, u32)> {
    let mut seen = BTreeSet::new();
    for delay in 0..700 {
        let words = Rc::new([OwnLine(Word::ZERO), OwnLine(Word::ZERO)]);
        let result = Rc::new([Cell::new(0), Cell::new(0)]);
        let mut simulation =
            Simulation::new(small(), 1).model(Model { memory, ..Model::default() });
        for (number, (run, late)) in [(one, 150), (other, delay)].into_iter().enumerate() {
            let (words, result) = (Rc::clone(&words), Rc::clone(&result));
            simulation = simulation.thread_on(4 * number as u32, move || {
                words.iter().for_each(|word| _ = word.load(Relaxed));
                work(1_000 - now() % 1_000 + 1_000 + late);
                result[number].set(run(&words));
            });
        }
        let _ = simulation.run(0).expect("both end");
        seen.insert((result[0].get(), result[1].get()));
    }
    seen
}

/// Stores to the word `MINE` and returns the other.
fn store_load<const MINE: usize>(words: &[OwnLine<Word>; 2]) -> u32 {
    words[MINE].store(1, Release);
    words[1 - MINE].load(Acquire)
}

fn store_fence_load<const MINE: usize>(words: &[OwnLine<Word>; 2]) -> u32 {
    words[MINE].store(1, Release);
    Sim::fence(SeqCst);
    words[1 - MINE].load(Acquire)
}

fn swap_load<const MINE: usize>(words: &[OwnLine<Word>; 2]) -> u32 {
    words[MINE].swap(1, Release);
    words[1 - MINE].load(Acquire)
}

#[test]
fn a_load_passes_a_store_unless_fenced() {
    let buffered = outcomes(Memory::Tso, store_load::<0>, store_load::<1>);
    assert!(buffered.contains(&(0, 0)), "{buffered:?}");
    for fenced in [
        outcomes(Memory::Sc, store_load::<0>, store_load::<1>),
        outcomes(Memory::Tso, store_fence_load::<0>, store_fence_load::<1>),
        outcomes(Memory::Tso, swap_load::<0>, swap_load::<1>),
        outcomes(Memory::Tso, store_heavy_load, store_load::<1>),
    ] {
        assert!(!fenced.contains(&(0, 0)) && fenced.len() > 1, "{fenced:?}");
    }
}

/// A heavy fence on one side fences both sides.
fn store_heavy_load(words: &[OwnLine<Word>; 2]) -> u32 {
    words[0].store(1, Release);
    Sim::heavy_fence().expect("never refused");
    words[1].load(Acquire)
}

#[test]
fn stores_are_seen_in_their_order_and_loads_stay_in_theirs() {
    let writer = |words: &[OwnLine<Word>; 2]| {
        words[0].store(1, Relaxed);
        words[1].store(1, Release);
        0
    };
    let reader = |words: &[OwnLine<Word>; 2]| {
        let second = words[1].load(Acquire);
        2 * second + words[0].load(Relaxed)
    };
    let seen = outcomes(Memory::Tso, writer, reader);
    assert!(!seen.contains(&(0, 2)), "the second store and not the first: {seen:?}");
    assert!(seen.contains(&(0, 0)) && seen.contains(&(0, 3)), "{seen:?}");
}

#[test]
fn a_thread_sees_its_own_stores_at_once() {
    let m = small();
    let pair = Rc::new(OwnLine([Word::ZERO, Word::ZERO]));
    let other = Rc::clone(&pair);
    let simulation = Simulation::new(m.clone(), 1)
        .thread_on(4, move || other[0].store(7, Relaxed))
        .thread_on(0, move || {
            work(10_000);
            assert_eq!(time(|| pair[0].store(8, Relaxed)), m.hit_ns, "posted");
            assert_eq!(time(|| assert_eq!(pair[0].load(Relaxed), 8)), m.hit_ns, "forwarded");
            pair[0].store(9, Relaxed);
            assert_eq!(pair[0].load(Relaxed), 9);
            // The word beside it comes with the line.
            assert!(time(|| assert_eq!(pair[1].load(Relaxed), 0)) > m.hit_ns);
            assert_eq!(pair[0].fetch_add(1, Relaxed), 9, "waits for both");
        });
    let outcome = simulation.run(0).expect("both end");
    assert_eq!(outcome.counts.posted, 3);
}

/// A store becomes visible when its line has arrived. Until then all other threads see the old
/// value, and may change it.
#[test]
fn others_see_what_was_there_until_the_line_has_come() {
    let m = Machine { invalidate_ns: 500, ..small().shape(3, 2) };
    let shared = word();
    let (swapper, looker, known) = (Rc::clone(&shared), Rc::clone(&shared), Rc::clone(&shared));
    let until = |ns: u64| work(ns - now());
    let simulation = Simulation::new(m, 1)
        .thread_on(2, move || {
            swapper.load(Relaxed);
            until(20_000);
            // It has the line first.
            assert_eq!(swapper.swap(5, Relaxed), 0);
            assert_eq!(now(), 20_627);
        })
        .thread_on(4, move || {
            looker.load(Relaxed);
            until(20_300);
            assert_eq!(looker.peek(), 0, "the swap and the store are under way");
            until(20_700);
            assert_eq!(looker.peek(), 5, "the swap is done");
            until(21_000);
            assert_eq!(looker.peek(), 8, "so is the store");
        })
        .thread_on(0, move || {
            shared.load(Relaxed);
            until(20_100);
            shared.store(8, Relaxed);
            assert_eq!((now(), shared.peek()), (20_102, 8));
        });
    let _ = simulation.run(0).expect("all end");
    assert_eq!(known.load(Relaxed), 8);
}

/// Two threads store to one word: the later value remains, in memory too.
#[test]
fn stores_of_two_threads_to_a_word_are_done_one_after_the_other() {
    for delay in 0..400 {
        let shared = word();
        let known = Rc::clone(&shared);
        let mut simulation = Simulation::new(small(), 1);
        for (core, late, value) in [(0, 200, 1), (4, delay, 2)] {
            let shared = Rc::clone(&shared);
            simulation = simulation.thread_on(core, move || {
                work(1_000 + late);
                shared.store(value, Relaxed);
                assert_eq!(shared.peek(), value);
                work(10_000);
                let last = shared.peek();
                assert_eq!(shared.load(Relaxed), last);
                assert_eq!(shared.swap(last, Relaxed), last);
            });
        }
        let _ = simulation.run(0).expect("both end");
        assert!([1, 2].contains(&known.load(Relaxed)));
    }
}

/// Memory that is freed and reused while a store to it is pending.
#[test]
fn a_store_to_a_word_that_is_gone_is_forgotten() {
    let place = Rc::new(Cell::new(None::<Box<OwnLine<Word>>>));
    let (first, second) = (Rc::clone(&place), place);
    let mut word = Box::new(OwnLine(Word::ZERO));
    word.store(3, Relaxed);
    let simulation = Simulation::new(small(), 1)
        .thread_on(0, move || {
            word.store(1, Relaxed);
            // The same address, as from an allocator that reuses it at once.
            *word = OwnLine(Word::ZERO);
            first.set(Some(word));
        })
        .thread_on(4, move || {
            work(10);
            let word = second.take().expect("it is there");
            assert_eq!((word.peek(), word.load(Relaxed)), (0, 0));
            word.store(4, Relaxed);
            work(10_000);
            assert_eq!((word.peek(), word.load(Relaxed)), (4, 4));
        });
    let _ = simulation.run(0).expect("both end");
}

#[test]
fn a_full_buffer_is_waited_for() {
    let m = small();
    let words: Vec<_> = (0..60).map(|_| word()).collect();
    let simulation = Simulation::new(m.clone(), 1).thread(move || {
        let times: Vec<_> = words.iter().map(|word| time(|| word.store(1, Relaxed))).collect();
        let full = times.iter().position(|&ns| ns > m.hit_ns).expect("so many don't fit");
        assert!((42..46).contains(&full), "{full} were posted at once");
    });
    let _ = simulation.run(0).expect("it ends");
}

/// A thread that sees the end of another sees its writes.
#[test]
fn a_thread_is_over_when_its_stores_are() {
    let shared = word();
    let seen = Rc::clone(&shared);
    let simulation = Simulation::new(small(), 1)
        .thread_on(0, move || {
            work(1_000);
            shared.store(1, Relaxed);
        })
        .thread_on(4, move || {
            seen.load(Relaxed);
            while Sim::alive(antiphon_platform::ThreadId(1)) {
                work(1);
            }
            assert_eq!(seen.peek(), 1);
        });
    let _ = simulation.run(0).expect("both end");
}

/// A flag is raised, and a fence made, at each instant around a light store that is posted and
/// takes long. What is there when the fence is over must stay, and the flag be seen.
#[test]
fn a_light_store_is_done_or_refused_when_a_heavy_fence_is_over() {
    let machine = Machine { heavy_fence_ns_per_cpu: 1, invalidate_ns: 500, ..small().shape(3, 2) };
    let mut results = BTreeSet::new();
    for delay in 0..1_200 {
        let byte = Rc::new(OwnLine(<Sim as Atomics>::U8::ZERO));
        let flag = Rc::new(OwnLine(<Sim as Atomics>::U16::ZERO));
        let (byte_1, byte_2, flag_2) = (Rc::clone(&byte), Rc::clone(&byte), Rc::clone(&flag));
        let stored = Rc::new(Cell::new(false));
        let told = Rc::clone(&stored);
        let simulation = Simulation::new(machine.clone(), 1)
            .thread_on(0, move || {
                flag.load(Relaxed);
                byte.load(Relaxed);
                work(2_000);
                // SAFETY: both words live as long as this closure.
                told.set(unsafe { Sim::store_unless(&raw const byte.0, 7, &raw const flag.0) });
            })
            .thread_on(2, move || {
                work(1_000);
                byte_1.load(Relaxed);
            })
            .thread_on(4, move || {
                work(1_000);
                byte_2.load(Relaxed);
                work(700 + delay);
                flag_2.store(1, Relaxed);
                Sim::heavy_fence().expect("never refused");
                let seen = byte_2.peek();
                work(10_000);
                assert_eq!(byte_2.peek(), seen, "no store after the fence");
            });
        let _ = simulation.run(0).expect("all end");
        results.insert(stored.get());
    }
    assert_eq!(results.len(), 2, "stored and refused");
}
