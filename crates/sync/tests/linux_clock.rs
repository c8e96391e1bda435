//! Clocks on real CPUs: the measured bounds are wide enough, and transactions keep their sums.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use antiphon_linux::{Linux, pin, usable};
use antiphon_sync::clock::tl2::{self, Word};
use antiphon_sync::clock::{Apart, Meeting, Order, Ordo, SharedCounter, Stamps};

/// Returns two CPUs, or the only one, and a clock for them.
fn measured() -> (Vec<u32>, Ordo<Linux>) {
    let cpus = std::thread::spawn(usable).join().expect("it has not panicked");
    let cpus: Vec<_> = cpus.into_iter().take(2).collect();
    let meeting = Meeting::<Linux>::new();
    let mut apart = Apart::new();
    if let [hub, other] = cpus[..] {
        let on = |cpu: u32| pin(cpu).expect("it is usable");
        std::thread::scope(|scope| {
            let hub = scope.spawn(|| (on(hub), meeting.lead(200, 1_000_000_000)).1);
            let other = scope.spawn(|| (on(other), meeting.follow()).1);
            let [hub, other] = [hub, other].map(|thread| thread.join().expect("it ends"));
            apart.add(hub, other);
        });
    }
    (cpus, Ordo::new(apart.ticks()))
}

#[test]
fn no_stamp_is_before_those_that_it_has_seen() {
    const STAMPS: u64 = 200_000;
    let (cpus, clock) = measured();
    let line = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for &cpu in &cpus {
            let line = &line;
            scope.spawn(move || {
                pin(cpu).expect("it is usable");
                for _ in 0..STAMPS {
                    let theirs = line.load(Relaxed);
                    let mine = clock.now();
                    assert_ne!(clock.cmp(theirs, mine), Order::Greater, "{theirs}, {mine}");
                    line.store(mine, Relaxed);
                }
            });
        }
    });
}

#[test]
fn a_new_time_is_certain_on_any_cpu() {
    let (cpus, clock) = measured();
    let mut last = clock.now();
    for cpu in cpus.iter().cycle().take(20) {
        pin(*cpu).expect("it is usable");
        let next = clock.new_time(last);
        assert_eq!(clock.cmp(last, next), Order::Less);
        last = next;
    }
}

/// Threads move amounts between words, and sometimes read all of them: the sum is always the same.
fn keeps_its_sum(cpus: &[u32], stamps: &(impl Stamps + Sync)) {
    const WORDS: usize = 8;
    const TRANSFERS: usize = 20_000;
    let words = [const { Word::<Linux>::new() }; WORDS];
    std::thread::scope(|scope| {
        for thread in 1..=4_u64 {
            let words = &words;
            scope.spawn(move || {
                pin(cpus[thread as usize % cpus.len()]).expect("it is usable");
                let mut random = thread;
                for round in 0..TRANSFERS {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let place = |bits: u32| (random >> bits) as usize % WORDS;
                    let (from, to) = (&words[place(33)], &words[place(43)]);
                    tl2::atomically::<Linux, _, _, WORDS>(stamps, |transaction| {
                        let left = transaction.read(from)?.wrapping_sub(thread);
                        transaction.write(from, left);
                        let more = transaction.read(to)?.wrapping_add(thread);
                        transaction.write(to, more);
                        Ok(())
                    });
                    if round % 16 == 0 {
                        let (sum, _) = tl2::atomically::<Linux, _, _, WORDS>(stamps, |all| {
                            words
                                .iter()
                                .try_fold(0_u64, |sum, word| Ok(sum.wrapping_add(all.read(word)?)))
                        });
                        assert_eq!(sum, 0, "a state that never was");
                    }
                }
            });
        }
    });
    let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(word.get()));
    assert_eq!(sum, 0);
}

#[test]
fn transactions_by_a_shared_counter_keep_their_sum() {
    keeps_its_sum(&measured().0, &SharedCounter::<Linux>::new());
}

#[test]
fn transactions_by_measured_clocks_keep_their_sum() {
    let (cpus, clock) = measured();
    keeps_its_sum(&cpus, &clock);
}
