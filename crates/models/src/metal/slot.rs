//! Models of the slot of a CPU: what is sent by it is run once, and a sender waits until it is
//! free.

use antiphon_check::{Check, Data, probe};
use antiphon_wakeup::{message, slot};

use super::caller::{Caller, Signal};
use super::cpu::Line;
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    let waited = &["waited"];
    Subject("metal-slot").models([
        model("runs-1+1", posting(&[2]), PLAIN).reaches(waited),
        model("runs-2+1", posting(&[2, 1]), PLAIN).reaches(waited),
        model("reaches-1+2", casting(2), PLAIN).reaches(waited),
        model("retracts-2+1", retracting(), PLAIN).reaches(&["ran", "retracted"]),
    ])
}

/// A CPU, of which the slot and the interrupt line are shared.
struct Cpu {
    slot: slot::Slot<Check>,
    line: Line,
}

impl Cpu {
    const fn new() -> Self {
        Self { slot: slot::Slot::NEW, line: Line::new() }
    }

    /// As `message::slot::post`.
    fn post(&self, action: u16) {
        // The handler may have answered the last one, and not yet emptied the slot; or its slot was
        // emptied by another: the interrupt need not be the first.
        let caller = Caller::elsewhere();
        while !message::try_post(&caller, &self.line, &self.slot, action, Signal::Any) {
            probe("waited");
            self.slot.wait();
        }
    }

    /// The handler.
    fn handle(&self, mut run: impl FnMut(usize)) {
        self.line.wait();
        if let Some(action) = self.slot.empty() {
            run(usize::from(action));
        }
    }
}

/// Senders post `each` actions, all of them different, and the handler runs each of them once. A
/// run sees what came before its post. Must reach `waited`.
fn posting(each: &'static [usize]) -> Program {
    let count = each.iter().sum::<usize>();
    Program::new(each.len() as u32 + 1, count as u32 + 1, move |scope| {
        let cpu = scope.share(Cpu::new());
        let posted = scope.share([const { Data::new(false) }; 4]);
        let mut first = 0;
        for &times in each {
            let mine = first..first + times;
            first = mine.end;
            scope.spawn(move || {
                for action in mine {
                    posted[action].set(true);
                    cpu.post(action as u16);
                }
            });
        }
        scope.spawn(move || {
            let mut ran = [false; 4];
            while ran.iter().filter(|ran| **ran).count() < count {
                cpu.handle(|action| {
                    assert!(posted[action].get(), "what came before the post");
                    assert!(!std::mem::replace(&mut ran[action], true), "run twice");
                });
            }
        });
    })
}

/// A sender has each of two CPUs run an action, `times` times. Each of them runs it once each time:
/// the sender waits for a CPU that has not seen the last. Must reach `waited`.
fn casting(times: u16) -> Program {
    Program::new(3, 2 * u32::from(times), move |scope| {
        let cpus = scope.share([Cpu::new(), Cpu::new()]);
        let sent = scope.share([const { Data::new(false) }; 4]);
        scope.spawn(move || {
            for action in 0..times {
                sent[usize::from(action)].set(true);
                cpus.iter().for_each(|cpu| cpu.post(action));
            }
        });
        scope.spawn_each(cpus, move |cpu| {
            let mut next = 0;
            while next < usize::from(times) {
                cpu.handle(|action| {
                    assert_eq!(action, next, "not in order");
                    assert!(sent[action].get(), "what came before");
                    next += 1;
                });
            }
        });
    })
}

/// An action is taken back while the handler may take it, and another sender waits for the slot.
/// Must reach `ran` and `retracted`.
fn retracting() -> Program {
    Program::new(3, 4, |scope| {
        let cpu = scope.share(Cpu::new());
        let posted = scope.share(Data::new(false));
        scope.spawn(|| {
            cpu.post(0);
            cpu.slot.retract(0);
        });
        scope.spawn(|| {
            posted.set(true);
            cpu.post(1);
        });
        scope.spawn(|| {
            let (mut first, mut second) = (0, 0);
            while second == 0 {
                cpu.handle(|action| match action {
                    0 => first += 1,
                    _ => {
                        assert!(posted.get(), "what came before the post");
                        second += 1;
                    }
                });
            }
            assert!(first <= 1);
            probe(if first == 1 { "ran" } else { "retracted" });
        });
    })
}
