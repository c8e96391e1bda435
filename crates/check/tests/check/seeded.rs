//! Small primitives with a seeded defect, which the checker must find, and without, which must
//! pass.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use antiphon_check::{Check, Data, FailureKind, Mode, Model, Report, U32};
use antiphon_platform::{Arena, Atomic, Atomics as _, Platform};

/// The nodes.
fn arena() -> &'static Arena<Check> {
    // SAFETY: each thread writes only to nodes that it has taken.
    unsafe { Check::arena() }
}

/// A queue lock with one node per thread (Mellor-Crummey and Scott).
struct Mcs {
    tail: U32,
    next: [U32; 5],
    locked: [U32; 5],
    defect: McsDefect,
}

#[derive(Clone, Copy, PartialEq)]
enum McsDefect {
    None,
    UnlockRelaxed,
    HandOffNotAcquired,
    LinkRelaxed,
    HandOffLost,
}

impl Mcs {
    fn new(defect: McsDefect) -> Self {
        let next = [const { U32::ZERO }; 5];
        let locked = [const { U32::ZERO }; 5];
        Self { tail: U32::ZERO, next, locked, defect }
    }

    fn lock(&self, me: usize) {
        self.next[me].store(0, Relaxed);
        self.locked[me].store(1, Relaxed);
        let before = self.tail.swap(me as u32, AcqRel) as usize;
        if before != 0 {
            let order = if self.defect == McsDefect::LinkRelaxed { Relaxed } else { Release };
            self.next[before].store(me as u32, order);
            let relaxed = self.defect == McsDefect::HandOffNotAcquired;
            let order = if relaxed { Relaxed } else { Acquire };
            self.locked[me].wait_while(order, |locked| locked == 1);
        }
    }

    fn unlock(&self, me: usize) {
        let relaxed = self.defect == McsDefect::UnlockRelaxed;
        let release = if relaxed { Relaxed } else { Release };
        if self.next[me].load(Acquire) == 0 {
            if self.tail.compare_exchange(me as u32, 0, release, Relaxed).is_ok() {
                return;
            }
            if self.defect == McsDefect::HandOffLost {
                return;
            }
        }
        let next = self.next[me].wait_while(Acquire, |next| next == 0);
        self.locked[next as usize].store(0, release);
    }
}

fn mcs(threads: usize, rounds: usize, defect: McsDefect) -> Report {
    mcs_in(Mode::Exhaustive, threads, rounds, defect)
}

fn mcs_in(mode: Mode, threads: usize, rounds: usize, defect: McsDefect) -> Report {
    let report = Model::new("mcs").mode(mode).run(|s| {
        let lock = s.share(Mcs::new(defect));
        let count = s.share(Data::new(0));
        for me in 1..=threads {
            s.spawn(move || {
                for _ in 0..rounds {
                    lock.lock(me);
                    count.with_mut(|count| *count += 1);
                    lock.unlock(me);
                }
            });
        }
        s.finally(move || assert_eq!(count.get(), threads * rounds));
    });
    println!("{report}");
    report
}

#[test]
fn mcs_is_right() {
    assert_eq!(mcs(2, 1, McsDefect::None).assert_complete().executions, 6);
    assert_eq!(mcs(3, 1, McsDefect::None).assert_complete().executions, 66);
    assert_eq!(mcs(2, 2, McsDefect::None).assert_complete().executions, 78);
    assert_eq!(mcs(4, 1, McsDefect::None).assert_complete().executions, 1080);
}

#[test]
fn mcs_defects_are_found() {
    mcs(2, 1, McsDefect::UnlockRelaxed).assert_fails(FailureKind::DataRace);
    mcs(2, 1, McsDefect::HandOffNotAcquired).assert_fails(FailureKind::DataRace);
    mcs(2, 1, McsDefect::LinkRelaxed).assert_fails(FailureKind::Deadlock);
    mcs(2, 1, McsDefect::HandOffLost).assert_fails(FailureKind::Deadlock);
}

/// A mutex of three states over park and unpark: 0 free, 1 locked, 2 locked with sleepers. A
/// sleeper's node is named in `sleepers`.
struct Sleepy {
    state: U32,
    sleepers: [U32; 5],
    defect: SleepyDefect,
}

#[derive(Clone, Copy, PartialEq)]
enum SleepyDefect {
    None,
    UnlockRelaxed,
    LockNotAcquired,
    WakeLost,
}

impl Sleepy {
    fn lock(&self, me: usize) {
        let acquire = if self.defect == SleepyDefect::LockNotAcquired { Relaxed } else { Acquire };
        if self.state.compare_exchange(0, 1, acquire, Relaxed).is_ok() {
            return;
        }
        let id = arena().take().expect("there are nodes enough");
        let node = arena().resolve_any(id).expect("it was handed out");
        self.sleepers[me].store(id.index(), Release);
        // AcqRel: a thread that sees the 2 sees the node too.
        let order = if acquire == Relaxed { Release } else { AcqRel };
        while self.state.swap(2, order) != 0 {
            let _ = Check::park(node, None);
        }
        self.sleepers[me].store(0, Release);
        arena().give(id);
    }

    fn unlock(&self) {
        let order = if self.defect == SleepyDefect::UnlockRelaxed { Acquire } else { AcqRel };
        if self.state.swap(0, order) == 2 && self.defect != SleepyDefect::WakeLost {
            for sleeper in &self.sleepers {
                let index = sleeper.load(Acquire);
                if let Some(waiter) = arena().reference(index) {
                    Check::unpark(waiter);
                }
            }
        }
    }
}

fn sleepy(threads: usize, defect: SleepyDefect) -> Report {
    let report = Model::new("sleepy").spurious(0).run(|s| {
        let sleepers = [const { U32::ZERO }; 5];
        let lock = s.share(Sleepy { state: U32::ZERO, sleepers, defect });
        let count = s.share(Data::new(0));
        for me in 1..=threads {
            s.spawn(move || {
                lock.lock(me);
                count.with_mut(|count| *count += 1);
                lock.unlock();
            });
        }
        s.finally(move || assert_eq!(count.get(), threads));
    });
    println!("{report}");
    report
}

#[test]
fn sleepy_is_right() {
    // The arena's own steps are part of these counts.
    assert_eq!(sleepy(2, SleepyDefect::None).assert_complete().executions, 6);
    assert_eq!(sleepy(3, SleepyDefect::None).assert_complete().executions, 5352);
}

#[test]
fn sleepy_defects_are_found() {
    sleepy(2, SleepyDefect::UnlockRelaxed).assert_fails(FailureKind::DataRace);
    sleepy(2, SleepyDefect::LockNotAcquired).assert_fails(FailureKind::DataRace);
    sleepy(2, SleepyDefect::WakeLost).assert_fails(FailureKind::Deadlock);
}

/// An event with one waiter: each side writes its own word, and then reads the other's.
fn event(fence: Ordering) -> Report {
    let report = Model::new("event").run(|s| {
        let (set, waits) = s.share((U32::ZERO, U32::ZERO));
        let id = arena().take().expect("there are nodes enough");
        let node = arena().resolve_any(id).expect("it was handed out");
        let waiter = arena().reference(id.index()).expect("it is in use");
        s.spawn(move || {
            waits.store(1, Relaxed);
            Check::fence(fence);
            while set.load(Relaxed) == 0 {
                let _ = Check::park(node, None);
            }
        });
        s.spawn(move || {
            set.store(1, Relaxed);
            Check::fence(fence);
            if waits.load(Relaxed) == 1 {
                Check::unpark(waiter);
            }
        });
    });
    println!("{report}");
    report
}

#[test]
fn event_fences_are_needed() {
    event(SeqCst).assert_complete();
    event(AcqRel).assert_fails(FailureKind::Deadlock);
}

/// A stack of node numbers, with or without a tag that grows with each push.
struct Stack {
    head: U32,
    next: [U32; 4],
    tags: bool,
}

impl Stack {
    fn push(&self, node: u32) {
        let mut head = self.head.load(Relaxed);
        loop {
            self.next[node as usize].store(head & 0xff, Relaxed);
            let tag = if self.tags { (head & !0xff) + 0x100 } else { 0 };
            match self.head.compare_exchange(head, tag | node, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop(&self) -> u32 {
        let mut head = self.head.load(Acquire);
        while head & 0xff != 0 {
            let next = self.next[(head & 0xff) as usize].load(Relaxed);
            match self.head.compare_exchange(head, (head & !0xff) | next, Acquire, Acquire) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        head & 0xff
    }
}

fn stack(tags: bool) -> Report {
    let report = Model::new("stack").run(|s| {
        let next = [const { U32::ZERO }; 4];
        let stack = s.share(Stack { head: U32::ZERO, next, tags });
        let owned = s.share([const { Data::new(0) }; 4]);
        let own = |node: u32| {
            if node == 0 {
                return;
            }
            let owners = owned[node as usize].with_mut(|owners| std::mem::replace(owners, 1));
            assert!(owners == 0, "node {node} has two owners");
        };
        stack.push(1);
        stack.push(2);
        s.spawn(move || own(stack.pop()));
        s.spawn(move || {
            let (first, second) = (stack.pop(), stack.pop());
            if first != 0 {
                stack.push(first);
            }
            own(second);
        });
        s.finally(move || own(stack.pop()));
    });
    println!("{report}");
    report
}

#[test]
fn stack_tags_are_needed() {
    stack(true).assert_complete();
    // Node 2 comes back, and the head becomes node 1, which is in use.
    stack(false).assert_fails(FailureKind::Panic);
}

/// A condition with one waiter, under a lock that spins.
fn condition(registers_late: bool) -> Report {
    let report = Model::new("condition").spurious(0).run(|s| {
        let (lock, waits) = s.share((U32::ZERO, U32::ZERO));
        let ready = s.share(Data::new(false));
        let id = arena().take().expect("there are nodes enough");
        let node = arena().resolve_any(id).expect("it was handed out");
        let waiter = arena().reference(id.index()).expect("it is in use");
        let acquire = move || {
            while lock.swap(1, Acquire) == 1 {
                lock.wait_while(Relaxed, |lock| lock == 1);
            }
        };
        let release = move || lock.store(0, Release);
        s.spawn(move || {
            acquire();
            while !ready.get() {
                if registers_late {
                    release();
                    waits.store(1, Relaxed);
                } else {
                    waits.store(1, Relaxed);
                    release();
                }
                let _ = Check::park(node, None);
                acquire();
            }
            release();
        });
        s.spawn(move || {
            acquire();
            ready.set(true);
            release();
            if waits.load(Relaxed) == 1 {
                Check::unpark(waiter);
            }
        });
    });
    println!("{report}");
    report
}

#[test]
fn condition_wakes_are_not_lost() {
    condition(false).assert_complete();
    condition(true).assert_fails(FailureKind::Deadlock);
}

/// The random modes find the defects too, including those of weak memory.
#[test]
fn chance_finds_defects() {
    for mode in [
        Mode::Random { seed: 3, executions: 2_000 },
        Mode::Pct { seed: 3, depth: 3, executions: 2_000 },
    ] {
        mcs_in(mode.clone(), 3, 2, McsDefect::None).assert_ok();
        mcs_in(mode.clone(), 3, 1, McsDefect::UnlockRelaxed).assert_fails(FailureKind::DataRace);
        mcs_in(mode.clone(), 3, 1, McsDefect::LinkRelaxed).assert_fails(FailureKind::Deadlock);
        mcs_in(mode, 3, 1, McsDefect::HandOffLost).assert_fails(FailureKind::Deadlock);
    }
}
