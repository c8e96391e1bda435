//! Models of clocks whose counters disagree, and of the transactions that they order.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, U64};
use antiphon_platform::{Atomic as _, AtomicInteger as _};
use antiphon_sync::clock::tl2::{self, Abort, Transaction, Word};
use antiphon_sync::clock::{Apart, Least, Meeting, Order, Ordo, SharedCounter, Stamps};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, all_of, model};
use crate::program::Program;

/// Difference of the counters, in ticks: more than a few accesses take, so that it matters.
const APART: u32 = 8;
const CLOCK: Ordo<Check> = Ordo::new(APART as u64);

pub fn entries() -> Vec<Entry> {
    let apart = PLAIN.apart(APART);
    all_of([
        Subject("ordo").models([
            model("measures-1+1", measured(), apart),
            model("orders-1+1", ordered(), apart).reaches(&["uncertain"]),
            model("waits-1+1", waited(), apart),
        ]),
        Subject("tl2-counter").models([
            model("snapshot-1+1", snapshot(counter), PLAIN).reaches(&["new"]),
            model("skew-1+1", skew(counter), PLAIN).reaches(&["one"]),
            model("adds-2x1", adds(counter), PLAIN).reaches(&["both"]),
            model("blind-2x1", blind(counter), PLAIN).reaches(&["both"]),
        ]),
        Subject("tl2-ordo").models([
            model("snapshot-1+1", snapshot(ordo), apart),
            model("skew-1+1", skew(ordo), apart).reaches(&["one"]),
            model("adds-2x1", adds(ordo), apart),
            model("blind-2x1", blind(ordo), apart).reaches(&["both"]),
        ]),
    ])
}

fn counter() -> SharedCounter<Check> {
    SharedCounter::new()
}

fn ordo() -> Ordo<Check> {
    CLOCK
}

/// CLOCK-1: the difference that two threads have measured is enough to compare their stamps.
fn measured() -> Program {
    Program::new(2, 2, |scope| {
        let meeting = scope.share(Meeting::<Check>::new());
        let ahead = scope.share([U64::ZERO, U64::ZERO]);
        let note = |ahead: &U64, least: Least| ahead.store(least.ahead.cast_unsigned(), Relaxed);
        let stamps = scope.share([U64::ZERO, U64::ZERO]);
        scope.spawn(move || {
            note(&ahead[0], meeting.lead(1, u64::MAX));
            stamps[0].store(CLOCK.now(), Release);
        });
        scope.spawn(move || {
            note(&ahead[1], meeting.follow());
            stamps[0].wait_while(Acquire, |stamp| stamp == 0);
            stamps[1].store(CLOCK.now(), Relaxed);
        });
        scope.finally(move || {
            let [hub, other] = ahead
                .each_ref()
                .map(|ahead| Least { ahead: ahead.load(Relaxed).cast_signed(), step: 0 });
            let mut apart = Apart::new();
            apart.add(hub, other);
            let [first, second] = stamps.each_ref().map(|stamp| stamp.load(Relaxed));
            let order = Ordo::<Check>::new(apart.ticks()).cmp(first, second);
            assert_ne!(order, Order::Greater, "{first}, {second}, {apart:?}");
        });
    })
}

/// CLOCK-2: a stamp that was passed on is not greater than those after it.
fn ordered() -> Program {
    passed_on(|first| {
        let order = CLOCK.cmp(first, CLOCK.now());
        assert_ne!(order, Order::Greater);
        if order == Order::Uncertain {
            antiphon_check::probe("uncertain");
        }
    })
}

/// A new time is certainly after the time that it must follow.
fn waited() -> Program {
    passed_on(|first| {
        let second = CLOCK.new_time(first);
        assert_eq!(CLOCK.cmp(second, first), Order::Greater);
        assert_eq!(CLOCK.cmp(first, second), Order::Less);
    })
}

/// One thread takes a stamp and passes it on; the other calls `then` with it.
fn passed_on(then: impl Fn(u64) + Copy + Send + Sync + 'static) -> Program {
    Program::new(2, 2, move |scope| {
        let stamp = scope.share(U64::ZERO);
        scope.spawn(move || stamp.store(CLOCK.now(), Release));
        scope.spawn(move || then(stamp.wait_while(Acquire, |stamp| stamp == 0)));
    })
}

type Transfer<'a, S> = Transaction<'a, Check, S, 2>;
type Attempt<'a, R> = Result<R, Abort<'a, Check>>;

/// Two words, and the number of committed transactions.
struct Site<S> {
    stamps: S,
    words: [Word<Check>; 2],
    committed: U64,
}

impl<S: Stamps> Site<S> {
    /// Runs `body` once; returns its result if it has committed.
    fn tries<'a, R>(
        &'a self,
        mut body: impl FnMut(&mut Transfer<'a, S>) -> Attempt<'a, R>,
    ) -> Option<R> {
        let begun = self.stamps.now();
        let done = tl2::attempt(&self.stamps, begun, &mut body).ok()?;
        self.committed.fetch_add(1, Relaxed);
        Some(done)
    }

    fn values(&self) -> [u64; 2] {
        self.words.each_ref().map(Word::get)
    }
}

/// Threads that run these functions on a site; afterwards its values and the number of commits are
/// checked.
fn site<S: Stamps + Send + Sync + 'static>(
    stamps: fn() -> S,
    threads: [fn(&Site<S>); 2],
    sound: fn([u64; 2], u64),
) -> Program {
    Program::new(2, 2, move |scope| {
        let words = [const { Word::new() }; 2];
        let site = scope.share(Site { stamps: stamps(), words, committed: U64::ZERO });
        scope.spawn_each(threads, move |thread| thread(site));
        scope.finally(move || sound(site.values(), site.committed.load(Relaxed)));
    })
}

/// TL2-1: a reader sees both writes of another transaction, or neither.
fn snapshot<S: Stamps + Send + Sync + 'static>(stamps: fn() -> S) -> Program {
    let writes = |site: &Site<S>| {
        let done = site.tries(|transfer| {
            site.words.iter().for_each(|word| transfer.write(word, 1));
            Ok(())
        });
        assert!(done.is_some(), "it has read nothing, and nobody else locks");
    };
    let reads = |site: &Site<S>| {
        let seen = site
            .tries(|transfer| Ok([transfer.read(&site.words[0])?, transfer.read(&site.words[1])?]));
        match seen {
            Some([0, 0]) | None => {}
            Some([1, 1]) => antiphon_check::probe("new"),
            Some(seen) => panic!("{seen:?} was never there"),
        }
    };
    site(stamps, [writes, reads], |values, _| assert_eq!(values, [1, 1]))
}

/// TL2-2: each transaction writes one word if the other is 0. Run one after the other, only one of
/// them would.
fn skew<S: Stamps + Send + Sync + 'static>(stamps: fn() -> S) -> Program {
    fn takes<S: Stamps>(site: &Site<S>, mine: usize) {
        site.tries(|transfer| {
            if transfer.read(&site.words[1 - mine])? == 0 {
                transfer.write(&site.words[mine], 1);
            }
            Ok(())
        });
    }
    let threads: [fn(&Site<S>); 2] = [|site| takes(site, 0), |site| takes(site, 1)];
    site(stamps, threads, |values, _| {
        assert_ne!(values, [1, 1]);
        if values != [0, 0] {
            antiphon_check::probe("one");
        }
    })
}

/// TL2-2: no addition is lost.
fn adds<S: Stamps + Send + Sync + 'static>(stamps: fn() -> S) -> Program {
    let adds = |site: &Site<S>| {
        site.tries(|transfer| {
            let before = transfer.read(&site.words[0])?;
            transfer.write(&site.words[0], before + 1);
            Ok(())
        });
    };
    site(stamps, [adds, adds], |[sum, _], committed| {
        assert_eq!(sum, committed);
        if committed == 2 {
            antiphon_check::probe("both");
        }
    })
}

/// TL2-2: of two transactions that write the same words and read none, one is the last at both
/// words.
fn blind<S: Stamps + Send + Sync + 'static>(stamps: fn() -> S) -> Program {
    fn writes<S: Stamps>(site: &Site<S>, value: u64) {
        site.tries(|transfer| {
            site.words.iter().for_each(|word| transfer.write(word, value));
            Ok(())
        });
    }
    let threads: [fn(&Site<S>); 2] = [|site| writes(site, 1), |site| writes(site, 2)];
    site(stamps, threads, |[one, other], committed| {
        assert_eq!(one, other);
        if committed == 2 {
            antiphon_check::probe("both");
        }
    })
}
