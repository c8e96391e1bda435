//! Models of pending actions: each post is followed by a run, and only the first sends an
//! interrupt.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_wakeup::{message, pending};

use super::caller::{Caller, Signal};
use super::cpu::Line;
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    let merged = &["merged", "interrupted"];
    let same = || posting(&[&[99], &[99]]);
    Subject("metal-pending").models([
        model("runs-1+1", posting(&[&[3, 700]]), PLAIN).reaches(merged),
        model("runs-early-1+1+1", interrupted(), PLAIN).reaches(&["ran", "stray"]),
        model("runs-word-2+1", posting(&[&[99], &[100]]), PLAIN).reaches(merged),
        model("runs-words-2+1", posting(&[&[99], &[700]]), PLAIN).reaches(merged),
        model("runs-more-2+1", posting(&[&[99, 200], &[100]]), PLAIN).reaches(merged),
        model("runs-first-2+1", posting(&[&[3], &[4]]), PLAIN).reaches(merged),
        model("runs-both-2+1", posting(&[&[3, 99], &[100]]), PLAIN).reaches(merged),
        model("merges-first-2+1", posting(&[&[3], &[3]]), PLAIN).reaches(merged),
        model("retracts-1+1", retracting(3), PLAIN).reaches(&["ran", "gone"]),
        model("retracts-word-1+1", retracting(99), PLAIN).reaches(&["ran", "gone"]),
        model("merges-2+1", same(), PLAIN).reaches(merged),
        model("merges-own-1+1", posting(&[&[99, 99]]), PLAIN).reaches(merged),
    ])
}

/// The pending actions of a CPU, and its interrupt line.
pub struct Receiver {
    pub pending: pending::Pending<Check>,
    pub line: Line,
}

impl Receiver {
    pub const fn new() -> Self {
        Self { pending: pending::Pending::NEW, line: Line::new() }
    }

    pub fn post(&self, action: usize) {
        let caller = Caller::elsewhere();
        message::post(&caller, &self.line, &self.pending, action, Signal::First);
        probe(if caller.has_sent() { "interrupted" } else { "merged" });
    }
}

/// Senders post the actions that are named, and the handler runs until it has seen each post. Each
/// run of an action sees what came before the posts of it that it answers, and no action is run
/// more often than it was posted. Must reach `merged` and `interrupted`.
fn posting(each: &'static [&'static [usize]]) -> Program {
    let count = each.iter().map(|actions| actions.len()).sum::<usize>();
    Program::new(each.len() as u32 + 1, count as u32 + 1, move |scope| {
        let receiver = scope.share(Receiver::new());
        // Relaxed words say how far each sender is; plain data, what it did before.
        let posted = scope.share([const { <<Check as Atomics>::U32 as Atomic<u32>>::ZERO }; 2]);
        let work = scope.share([const { [const { Data::new(false) }; 2] }; 2]);
        let runs = scope.share(Data::new(0));
        scope.spawn_each(each.iter().enumerate(), move |(sender, actions)| {
            for (number, &action) in actions.iter().enumerate() {
                work[sender][number].set(true);
                posted[sender].store(number as u32 + 1, Relaxed);
                receiver.post(action);
            }
        });
        let posts = move |wanted: usize| {
            each.iter()
                .flat_map(|actions| actions.iter())
                .filter(move |one| **one == wanted)
                .count()
        };
        // Whether all posts of an action come before the run that asks.
        let seen = move |action: usize| {
            each.iter().enumerate().all(|(sender, actions)| {
                let far = posted[sender].load(Relaxed) as usize;
                let later = actions.iter().rposition(|one| *one == action);
                later.is_none_or(|last| far > last)
            })
        };
        scope.spawn(move || {
            let mut open: Vec<usize> = each.iter().flat_map(|one| one.iter().copied()).collect();
            open.sort_unstable();
            open.dedup();
            let mut ran = vec![0; open.len()];
            let all = open.clone();
            while !open.is_empty() {
                receiver.line.wait();
                receiver.pending.drain(|action| {
                    let index = all.iter().position(|one| *one == action).expect("posted");
                    ran[index] += 1;
                    assert!(ran[index] <= posts(action), "run more often than posted");
                    for (sender, actions) in each.iter().enumerate() {
                        // One that was posted by one sender once: this run answers that.
                        if posts(action) == 1
                            && let Some(number) = actions.iter().position(|one| *one == action)
                        {
                            assert!(work[sender][number].get(), "what came before the post");
                        }
                    }
                    if seen(action) {
                        open.retain(|one| *one != action);
                    }
                });
            }
            runs.set(ran.iter().sum::<usize>());
        });
        scope.finally(move || {
            // A last interrupt may be on its way, for what was seen already.
            let _ = receiver.line.poll();
            let mut late = 0;
            receiver.pending.drain(|_| late += 1);
            assert!(runs.get() + late <= count, "run more often than posted");
        });
    })
}

/// The handler is also interrupted for another reason, as by a broadcast. So it may run an action
/// before the interrupt of its post has been sent. Must reach `ran` and `stray`.
fn interrupted() -> Program {
    Program::new(3, 3, |scope| {
        let receiver = scope.share(Receiver::new());
        let work = scope.share(Data::new(false));
        scope.spawn(|| {
            work.set(true);
            let (line, pending) = (&receiver.line, &receiver.pending);
            message::post(&Caller::elsewhere(), line, pending, 3, Signal::Any);
        });
        scope.spawn(|| {
            let _ = receiver.line.raise();
        });
        scope.spawn(|| {
            let mut ran = false;
            while !ran {
                receiver.line.wait();
                receiver.pending.drain(|_| {
                    assert!(work.get(), "what came before the post");
                    ran = true;
                });
                probe(if ran { "ran" } else { "stray" });
            }
        });
    })
}

/// An action is taken back while the handler may run it. After that it is not run, and the next
/// post of another action is, with an interrupt of its own or by the one that is on its way. Must
/// reach `ran` and `gone`.
fn retracting(action: usize) -> Program {
    Program::new(2, 3, move |scope| {
        let receiver = scope.share(Receiver::new());
        let ran = scope.share(Data::new(false));
        scope.spawn(move || {
            receiver.post(action);
            receiver.pending.retract(action);
            receiver.post(700);
        });
        scope.spawn(move || {
            let mut over = false;
            while !over {
                receiver.line.wait();
                receiver.pending.drain(|it| match it {
                    700 => over = true,
                    _ => ran.set(true),
                });
            }
        });
        scope.finally(move || {
            let _ = receiver.line.poll();
            receiver.pending.drain(|_| panic!("TABLE-3: it was taken back"));
            probe(if ran.get() { "ran" } else { "gone" });
        });
    })
}
