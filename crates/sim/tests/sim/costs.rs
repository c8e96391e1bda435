//! Tests of the exact costs of accesses; stores without buffers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Atomics, Clock, Clocks as _, LightUnlock as _};
use antiphon_sim::work;
use antiphon_sim::{Access, Machine, Memory, Model, OwnLine, Sim, Simulation, jain, now, touch};

use crate::{Word, small, time, unbuffered, word};

/// Runs `before` on core 0 and then times `f` on `core`, both on the same word.
fn after(before: impl FnOnce(&Word) + 'static, core: u32, f: impl FnOnce(&Word) + 'static) -> u64 {
    let (word, result) = (word(), Rc::new(Cell::new(0)));
    let simulation = unbuffered(small())
        .thread_on(0, {
            let word = Rc::clone(&word);
            move || before(&word)
        })
        .thread_on(core, {
            let result = Rc::clone(&result);
            move || {
                work(100_000);
                result.set(time(|| f(&word)));
            }
        });
    let _ = simulation.run(0).expect("both end");
    result.get()
}

fn add(word: &Word) {
    word.fetch_add(1, Relaxed);
}

fn load(word: &Word) {
    word.load(Relaxed);
}

#[test]
fn an_access_costs_by_where_the_line_is() {
    let m = small();
    assert_eq!(after(|_| (), 1, load), m.memory_ns(0));
    assert_eq!(after(add, 0, load), m.hit_ns);
    assert_eq!(after(add, 0, |word| word.store(1, Release)), m.hit_ns);
    assert_eq!(after(add, 0, add), m.rmw_ns);
    for access in [add, load, |word: &Word| word.store(1, Release)] {
        assert_eq!(after(add, 1, access), m.transfer_ns(0, 1));
        assert_eq!(after(add, 4, access), m.transfer_ns(0, 4));
    }
}

#[test]
fn a_shared_line_is_read_from_the_socket_and_invalidated_everywhere() {
    let m = Machine { invalidate_ns: 7, ..small().shape(3, 2) };
    let (shared, times) = (word(), Rc::new(Cell::new([0; 3])));
    let simulation = unbuffered(m.clone())
        .thread_on(0, {
            let shared = Rc::clone(&shared);
            move || {
                load(&shared);
                work(1_000);
                load(&shared);
            }
        })
        .thread_on(2, {
            let shared = Rc::clone(&shared);
            move || {
                work(10_000);
                load(&shared);
            }
        })
        .thread_on(4, move || {
            work(20_000);
            let first = time(|| load(&shared));
            work(10_000);
            times.set([first, time(|| load(&shared)), time(|| shared.store(1, Release))]);
            let expected = [m.transfer_ns(0, 4), m.hit_ns, m.transfer_ns(0, 4) + m.invalidate_ns];
            assert_eq!(times.get(), expected);
        });
    let _ = simulation.run(0).expect("all end");
}

#[test]
fn a_sibling_reads_from_the_cache_of_its_socket() {
    let m = small();
    let shared = word();
    let reader = |delay, cost| {
        let shared = Rc::clone(&shared);
        move || {
            work(delay);
            assert_eq!(time(|| load(&shared)), cost);
        }
    };
    let simulation = Simulation::new(m.clone(), 1)
        .thread_on(0, reader(0, m.memory_ns(0)))
        .thread_on(4, reader(1_000, m.transfer_ns(0, 4)))
        // Two at once: the second waits until the cache is free.
        .thread_on(5, reader(2_000, m.cache_ns()))
        .thread_on(6, reader(2_000, m.occupancy_ns + m.cache_ns()));
    let _ = simulation.run(0).expect("all end");
}

/// Two threads hand a word back and forth: a hand-off is the invalidation of the other's copy by
/// the store, and the other's fetching it again.
fn ping_pong(memory: Memory, core: u32, rounds: u32) -> u64 {
    let shared = word();
    let player = |me: u32| {
        let shared = Rc::clone(&shared);
        move || {
            for round in 0..rounds {
                shared.wait_while(Acquire, |value| value != 2 * round + me);
                shared.store(2 * round + me + 1, Release);
            }
        }
    };
    let outcome = Simulation::new(small(), 1)
        .model(Model { memory, ..Model::default() })
        .thread_on(0, player(0))
        .thread_on(core, player(1))
        .run(0)
        .expect("both end");
    assert_eq!(shared.load(Relaxed), 2 * rounds);
    outcome.end_ns
}

#[test]
fn ping_pong_pays_exactly_the_distance() {
    let m = small();
    for (memory, posting_ns) in [(Memory::Sc, 0), (Memory::Tso, m.hit_ns)] {
        let per_round = |core| ping_pong(memory, core, 11) - ping_pong(memory, core, 10);
        assert_eq!(per_round(1), 4 * m.transfer_ns(0, 1) + 2 * posting_ns);
        assert_eq!(per_round(4), 4 * m.transfer_ns(0, 4) + 2 * posting_ns);
    }
}

#[test]
fn contended_transfers_stand_in_line() {
    let m = small();
    let shared = word();
    let outcome = Simulation::new(m.clone(), 1)
        .threads(4, {
            let shared = Rc::clone(&shared);
            move |_| add(&shared)
        })
        .run(0)
        .expect("all end");
    assert_eq!(outcome.end_ns, m.switch_ns + m.memory_ns(0) + m.rmw_ns + 3 * m.transfer_ns(0, 1));
    assert_eq!(outcome.counts.local_transfers, 3);
}

#[test]
fn words_of_one_line_share_its_price() {
    let m = small();
    let pair = Rc::new(OwnLine([Word::ZERO, Word::ZERO]));
    let other = Rc::clone(&pair);
    let simulation = Simulation::new(m.clone(), 1).thread_on(0, move || add(&other[0])).thread_on(
        4,
        move || {
            work(1_000);
            assert_eq!(time(|| add(&pair[1])), m.transfer_ns(0, 4));
        },
    );
    let _ = simulation.run(0).expect("both end");
}

#[test]
fn a_touch_overlaps_its_lines() {
    let m = small();
    let data = Rc::new(OwnLine([0_u8; 4 * 64]));
    let other = Rc::clone(&data);
    let simulation = Simulation::new(m.clone(), 1)
        .thread_on(0, move || touch(&other.0, Access::Write))
        .thread_on(4, move || {
            work(1_000);
            let first = time(|| touch(&data.0, Access::Read));
            assert_eq!(first, m.transfer_ns(0, 4) + 3 * m.occupancy_ns);
            assert_eq!(time(|| touch(&data.0, Access::Read)), 4 * m.hit_ns);
            let again = time(|| touch(&data.0, Access::Write));
            assert_eq!(again, m.transfer_ns(0, 4) + 3 * m.occupancy_ns);
        });
    let _ = simulation.run(0).expect("both end");
}

#[test]
fn a_write_waits_for_reads_under_way() {
    let m = small();
    let shared = word();
    let reader = |delay| {
        let shared = Rc::clone(&shared);
        move || {
            work(delay);
            load(&shared);
        }
    };
    let simulation = unbuffered(m.clone())
        .thread_on(1, reader(0))
        .thread_on(2, reader(1_000))
        .thread_on(4, reader(2_000))
        .thread_on(1 + 4, {
            let shared = Rc::clone(&shared);
            move || {
                work(2_010);
                let waited = time(|| shared.store(1, Release));
                assert_eq!(waited, 2 * m.transfer_ns(0, 4) - 10);
            }
        });
    let _ = simulation.run(0).expect("all end");
}

#[test]
fn fences_and_clocks_take_time() {
    let m = small();
    let simulation = Simulation::new(m.clone(), 1).thread(move || {
        assert_eq!(time(|| Sim::fence(SeqCst)), m.fence_ns);
        assert_eq!(time(|| Sim::fence(Acquire)), 0);
        assert_eq!(time(|| _ = Sim::now(Clock::Monotonic)), m.clock_ns);
    });
    let _ = simulation.run(0).expect("it ends");
}

#[test]
fn heavy_fences_interrupt_all_and_exclude_each_other() {
    let waited = Rc::new(Cell::new([0; 2]));
    let told = Rc::clone(&waited);
    let outcome = Simulation::new(small(), 1)
        .threads(2, move |number| {
            let mut both = [0; 2];
            both[number] = time(|| Sim::heavy_fence().expect("never refused"));
            both[1 - number] = told.get()[1 - number];
            told.set(both);
        })
        .run(0)
        .expect("both end");
    let one = 2 * small().heavy_fence_ns_per_cpu;
    assert_eq!(waited.get(), [one, 2 * one]);
    assert_eq!(outcome.counts.heavy_fences, 2);
}

#[test]
fn a_value_changes_at_the_end_of_the_access() {
    let m = small();
    let byte = Rc::new(OwnLine(<Sim as Atomics>::U8::ZERO));
    let writer = Rc::clone(&byte);
    let simulation = unbuffered(m.clone())
        .thread_on(0, move || {
            work(1_000);
            writer.store(1, Release);
        })
        .thread_on(4, move || {
            byte.load(Relaxed);
            work(1_000 - m.memory_ns(0) + m.transfer_ns(0, 4) - 1);
            assert_eq!(byte.peek(), 0, "the store is under way");
            work(2);
            assert_eq!(byte.peek(), 1);
        });
    let _ = simulation.run(0).expect("both end");
}

/// A flag is raised, and a fence made, at each instant around a light store that is slow because
/// copies of its line are in two other sockets. What is there when the fence is over must stay.
#[test]
fn store_unless_is_one_step() {
    let machine = Machine { heavy_fence_ns_per_cpu: 1, invalidate_ns: 500, ..small().shape(3, 2) };
    let mut refused_in_flight = 0;
    for delay in 0..1_200 {
        let byte = Rc::new(OwnLine(<Sim as Atomics>::U8::ZERO));
        let flag = Rc::new(OwnLine(<Sim as Atomics>::U16::ZERO));
        let (byte_1, byte_2, flag_2) = (Rc::clone(&byte), Rc::clone(&byte), Rc::clone(&flag));
        // Whether it stored, and how long that took.
        let result = Rc::new(Cell::new((false, 0)));
        let (told, known) = (Rc::clone(&result), Rc::clone(&result));
        let simulation = unbuffered(machine.clone())
            .thread_on(0, move || {
                flag.load(Relaxed);
                byte.load(Relaxed);
                work(2_000);
                let begin = now();
                // SAFETY: both words live as long as this closure.
                let stored = unsafe { Sim::store_unless(&raw const byte.0, 7, &raw const flag.0) };
                told.set((stored, now() - begin));
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
                assert_eq!(known.get().0, seen == 7);
            });
        let _ = simulation.run(0).expect("all end");
        let (stored, took_ns) = result.get();
        refused_in_flight += u32::from(!stored && took_ns > machine.invalidate_ns);
    }
    assert!(refused_in_flight > 0, "no flag came while a store was under way");
}

#[test]
fn jain_tells_a_monopoly_from_equal_shares() {
    assert_eq!(jain(&[5, 5, 5, 5]), 1.0);
    assert_eq!(jain(&[20, 0, 0, 0]), 0.25);
    assert_eq!(jain(&[]), 1.0);
}
