//! Models of idle CPUs: a task that any CPU may run is not left while a CPU halts, and one CPU is
//! woken for each.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_wakeup::idle;
use antiphon_wakeup::machine::Machine;

use super::caller::{Caller, Signal};
use super::cpu::Line;
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type U32 = <Check as Atomics>::U32;
type IdleCpus = idle::IdleCpus<Check, 2>;

pub fn entries() -> Vec<Entry> {
    Subject("metal-idle").models([
        model("runs-1+1", running(1, 1, 1), PLAIN).reaches(&["halted", "ran on"]),
        model("runs-two-1+1", running(1, 2, 1), PLAIN).reaches(&["claimed"]),
        model("runs-1+2", running(1, 1, 2), PLAIN).reaches(&["claimed"]),
        model("runs-2+1", running(2, 1, 1), PLAIN).reaches(&["claimed"]),
        model("claims-2+1", claiming(), PLAIN).reaches(&["one", "other", "none"]),
        model("sees-1+1", seeing(), PLAIN).reaches(&["claimed", "left"]),
        model("passes-on-1+2", passing_on(), PLAIN).reaches(&["passed on"]),
    ])
}

/// CPU numbers of the idle ones: in two words.
const NUMBERS: [usize; 2] = [5, 64];

/// Tasks that are counted, and the CPUs that take them.
struct Tasks {
    ready: U32,
    /// What was done before the tasks were published.
    work: [Data<bool>; 2],
    idle: IdleCpus,
    lines: [Line; 2],
    /// Interrupts that each producer has sent.
    sent: [Data<u32>; 2],
}

impl Tasks {
    const fn new() -> Self {
        Self {
            ready: Atomic::ZERO,
            work: [const { Data::new(false) }; 2],
            idle: IdleCpus::NEW,
            lines: [const { Line::new() }; 2],
            sent: [const { Data::new(0) }; 2],
        }
    }

    /// Claims an idle CPU and interrupts it; returns whether there was one.
    fn wake_one(&self) -> bool {
        let claimed = self.idle.claim(0);
        if let Some(cpu) = claimed {
            let line = NUMBERS.iter().position(|&number| number == cpu).expect("an idle CPU");
            Caller::elsewhere().interrupt(&self.lines[line], Signal::Any);
            probe("claimed");
        }
        claimed.is_some()
    }

    fn publish(&self, producer: usize) {
        // Release: what was done before; pairs with the acquire in `take`.
        self.ready.fetch_add(1, Release);
        if self.wake_one() {
            self.sent[producer].with_mut(|sent| *sent += 1);
        }
    }

    fn take(&self) -> bool {
        let mut seen = self.ready.load(Relaxed);
        while seen > 0 {
            match self.ready.compare_exchange(seen, seen - 1, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// CPU `own` runs a task, and halts until there is one.
    fn run_one(&self, own: usize) {
        let caller = Caller::on(&self.lines[own], [].into_iter());
        while !self.take() {
            let mut ready = false;
            let _ = self.idle.rest(&caller, NUMBERS[own], || {
                ready = self.ready.load(Relaxed) > 0;
                ready
            });
            probe(if ready { "ran on" } else { "halted" });
        }
    }
}

/// Producers publish `each` tasks, and each of `cpus` CPUs runs its share. A CPU that halts for
/// ever is a deadlock. Must reach `claimed`.
fn running(producers: usize, each: usize, cpus: usize) -> Program {
    let count = producers * each;
    assert!(cpus == 1 || cpus == count || count == 1);
    let operations = producers * each + cpus * count;
    Program::new((producers + cpus) as u32, operations as u32, move |scope| {
        let tasks = scope.share(Tasks::new());
        scope.spawn_each(0..producers, move |producer| {
            tasks.work[producer].set(true);
            (0..each).for_each(|_| tasks.publish(producer));
        });
        // With one task for two CPUs, the second finds none, and is not waited for.
        let done = scope.share(<U32 as Atomic<u32>>::ZERO);
        scope.spawn_each(0..cpus, move |own| {
            if cpus > 1 {
                run_or_end(tasks, done, own);
            } else {
                (0..count).for_each(|_| tasks.run_one(own));
                assert!(tasks.work[..producers].iter().all(Data::get), "what came before");
            }
        });
        scope.finally(move || {
            assert_eq!(tasks.ready.load(Relaxed), 0, "IDLE-1: a task is lost");
            let sent: u32 = tasks.sent.iter().map(Data::get).sum();
            assert!(sent <= count as u32, "IDLE-2: more CPUs were woken than there are tasks");
        });
    })
}

/// CPU `own` runs the only task, or ends when another has run it, which wakes it.
fn run_or_end(tasks: &Tasks, done: &U32, own: usize) {
    let caller = Caller::on(&tasks.lines[own], tasks.lines.iter());
    // Acquire, here and below: the task; pairs with the release below.
    while done.load(Acquire) == 0 {
        if tasks.take() {
            assert!(tasks.work[0].get(), "what came before");
            done.store(1, Release);
            caller.interrupt_others(Signal::Any);
            return;
        }
        let ready = || tasks.ready.load(Relaxed) > 0 || done.load(Acquire) == 1;
        let _ = tasks.idle.rest(&caller, NUMBERS[own], ready);
    }
}

/// Two producers claim the same idle CPU: one gets it. Must reach `one`, `other` and `none`.
fn claiming() -> Program {
    Program::new(3, 3, |scope| {
        let idle = scope.share(IdleCpus::NEW);
        let claims = scope.share([const { Data::new(0_u32) }; 2]);
        let claimed = scope.share(Data::new(0_u32));
        scope.spawn_each(["one", "other"].into_iter().enumerate(), move |(producer, name)| {
            if let Some(cpu) = idle.claim(70) {
                assert_eq!(cpu, NUMBERS[0]);
                claims[producer].set(1);
                probe(name);
            }
        });
        scope.spawn(move || {
            idle.enter(NUMBERS[0]);
            let was_claimed = idle.leave(NUMBERS[0]);
            claimed.set(u32::from(was_claimed));
        });
        scope.finally(move || {
            let count: u32 = claims.iter().map(Data::get).sum();
            assert_eq!(count, claimed.get(), "IDLE-2: a CPU is claimed once, and knows of it");
            if count == 0 {
                probe("none");
            }
        });
    })
}

/// A CPU that was claimed knows what its producer did before. Must reach `claimed` and `left`.
fn seeing() -> Program {
    Program::new(2, 2, |scope| {
        let idle = scope.share(IdleCpus::NEW);
        let work = scope.share(Data::new(false));
        scope.spawn(|| {
            work.set(true);
            let _ = idle.claim(0);
        });
        scope.spawn(|| {
            idle.enter(NUMBERS[1]);
            if idle.leave(NUMBERS[1]) {
                // IDLE-3: without the acquire this is a data race.
                assert!(work.get(), "what came before the claim");
                probe("claimed");
            } else {
                probe("left");
            }
        });
    })
}

/// A CPU that was claimed for a second task has found the first by itself: another CPU must run the
/// second while it is busy with the first, which ends only then. Must reach `passed on`.
fn passing_on() -> Program {
    Program::new(3, 4, |scope| {
        let tasks = scope.share(Tasks::new());
        // Whether both tasks have begun.
        let begun = scope.share(<U32 as Atomic<u32>>::ZERO);
        scope.spawn(|| {
            tasks.ready.fetch_add(1, Release);
            // Nothing is claimed for the first: as if all CPUs had been busy.
            tasks.publish(0);
        });
        scope.spawn_each(NUMBERS.iter().enumerate(), move |(own, &number)| {
            let caller = Caller::on(&tasks.lines[own], [].into_iter());
            let mut claimed = false;
            while !tasks.take() {
                let ready = || tasks.ready.load(Relaxed) > 0;
                claimed |= tasks.idle.rest(&caller, number, ready);
            }
            // IDLE-3.
            if claimed && tasks.ready.load(Relaxed) > 0 && tasks.wake_one() {
                probe("passed on");
            }
            // The tasks wait for each other.
            begun.fetch_add(1, Relaxed);
            begun.wait_while(Relaxed, |begun| begun < 2);
        });
    })
}
