//! Ways to yield: how a worker runs its tasks until none is left.

use std::cell::Cell;

use antiphon_check::{Check, choose};
use antiphon_runtime::fiber::{Line, Next, Turn, Turns};
use antiphon_runtime::sched::{Crew, Put};

use super::{Named, Policy, Task, Tasks, Worker};

/// A way to yield.
pub trait Form {
    /// Makes the worker run tasks until it has none.
    fn run(&self, crew: &Crew<Check, Policy>, worker: &mut Worker<'_>, tasks: &Tasks);
}

/// A task that yields becomes a task again, the last one.
pub struct Stack;

impl Form for Stack {
    fn run(&self, _: &Crew<Check, Policy>, worker: &mut Worker<'_>, tasks: &Tasks) {
        while let Some(item) = worker.try_next_task() {
            if tasks.yields(tasks.task(item)) {
                worker.push(item, Put::PLAIN).expect("there is room");
            }
        }
    }
}

/// The next task is taken out before the one that yields is put in.
pub struct Below;

impl Form for Below {
    fn run(&self, _: &Crew<Check, Policy>, worker: &mut Worker<'_>, tasks: &Tasks) {
        let mut next = worker.try_next_task();
        while let Some(item) = next {
            let yields = tasks.yields(tasks.task(item));
            next = worker.try_next_task();
            if yields {
                worker.push(item, Put::PLAIN).expect("there is room");
                next = next.or_else(|| worker.try_next_task());
            }
        }
    }
}

/// A task that yields changes places with a task that is drawn by lot. A task that was not drawn
/// `passed_over` times is next: any number is fair.
pub struct Swap {
    pub passed_over: u32,
}

impl Form for Swap {
    fn run(&self, _: &Crew<Check, Policy>, worker: &mut Worker<'_>, tasks: &Tasks) {
        // Each task with the number of times that it was passed over. The deques have no access to
        // the middle.
        let mut stack: Vec<_> =
            std::iter::from_fn(|| worker.try_next_task()).map(|item| (item, 0)).collect();
        stack.reverse();
        while let Some((mut item, _)) = stack.pop() {
            while tasks.yields(tasks.task(item)) {
                if stack.is_empty() {
                    continue;
                }
                let due = stack.iter().position(|(_, passed)| *passed >= self.passed_over);
                let drawn = due.unwrap_or_else(|| choose(stack.len() as u64) as usize);
                stack.iter_mut().for_each(|(_, passed)| *passed += 1);
                item = std::mem::replace(&mut stack[drawn], (item, 0)).0;
            }
        }
    }
}

/// [`Stack`] in which every third yield goes to a queue of all workers.
pub struct Queue(pub Cell<u32>);

impl Form for Queue {
    fn run(&self, crew: &Crew<Check, Policy>, worker: &mut Worker<'_>, tasks: &Tasks) {
        while let Some(item) = worker.try_next_task().or_else(|| worker.try_any_task()) {
            if tasks.yields(tasks.task(item)) {
                self.0.set(self.0.get() + 1);
                let put = if self.0.get().is_multiple_of(3) {
                    crew.submit(item, Put::PLAIN)
                } else {
                    worker.push(item, Put::PLAIN)
                };
                put.expect("there is room");
            }
        }
    }
}

/// A task that yields takes turns, as fibers do.
pub struct InTurns<const OWN: u32, const ANY: u32> {
    turns: Turns<OWN, ANY>,
    line: Line<Named>,
    soft: bool,
}

impl<const OWN: u32, const ANY: u32> InTurns<OWN, ANY> {
    pub fn hard() -> Self {
        Self { turns: Turns::new(), line: Line::new(), soft: false }
    }

    pub fn soft() -> Self {
        Self { soft: true, ..Self::hard() }
    }

    /// Runs or resumes a task; it is in the line afterwards if it has yielded.
    fn turn(&self, tasks: &Tasks, task: &Task) -> Turn {
        if !tasks.yields(task) {
            return Turn::Over;
        }
        self.line.push(Named(task));
        if self.soft { Turn::Soft } else { Turn::Over }
    }
}

impl<const OWN: u32, const ANY: u32> Form for InTurns<OWN, ANY> {
    fn run(&self, _: &Crew<Check, Policy>, worker: &mut Worker<'_>, tasks: &Tasks) {
        loop {
            // SAFETY: `named` is one of these tasks, which are borrowed until this is over.
            let go_on = |named: Named| self.turn(tasks, unsafe { &*named.0 });
            let next = self.turns.go_on(&self.line, || true, go_on);
            let item = match next {
                Next::Nobody | Next::Task => worker.try_next_task(),
                Next::AnyTask => worker.try_any_task(),
            };
            match item {
                Some(item) => _ = self.turn(tasks, tasks.task(item)),
                None if next == Next::Nobody => return,
                None => {}
            }
        }
    }
}
