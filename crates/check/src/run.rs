//! One run of the program: along a graph, and then on to an end.

use crate::context;
use crate::execution::{Ending, Execution};
use crate::fiber::Fiber;
use crate::graph::Graph;
use crate::model::FailureKind;
use crate::op::Op;
use crate::platform;
use crate::scope::Scope;
use crate::thread::Status;

pub(crate) type Program<'p, 'env> = dyn for<'scope> Fn(&'scope Scope<'scope, 'env>) + 'p;

/// Runs the program along `graph`, and then to an end.
pub(crate) fn run_once<'env>(program: &Program<'_, 'env>, graph: Graph) {
    context::with(|execution| execution.begin(graph));
    let scope = Scope::new();
    context::guarded(|| {
        program(&scope);
        context::perform(&Op::Start);
    });
    let mut fibers = Vec::new();
    if context::with(|execution| execution.ending.is_none()) {
        for thread in scope.threads.take() {
            context::with(|execution| execution.add_thread(thread.socket));
            fibers.push(Fiber::new(move || {
                context::guarded(|| {
                    (thread.body)();
                    platform::end_thread();
                });
            }));
        }
        drive(&mut fibers);
    }
    let finally = scope.finally.take();
    let is_whole = |execution: &mut Execution| {
        execution.ending.is_none() && (!execution.caught_up() || execution.caught_up_well())
    };
    if context::with(is_whole) {
        context::with(Execution::join_all);
        context::guarded(|| finally.into_iter().for_each(|check| check()));
    }
    context::with(|execution| execution.over = true);
    drop(fibers);
    context::guarded(|| scope.drop_shared());
}

/// Runs the threads until all have ended, or the execution has.
fn drive(fibers: &mut [Fiber]) {
    let mut runnable = Vec::with_capacity(fibers.len());
    loop {
        let going =
            if context::with(|execution| execution.caught_up() && execution.decider.schedules()) {
                drive_scheduled(fibers, &mut runnable)
            } else {
                drive_in_turn(fibers)
            };
        match going {
            Going::On => {}
            Going::Ended => return,
            Going::Stuck => {
                let Some(thread) = context::with(Execution::resolve_stuck) else { return };
                resume(fibers, thread);
                context::with(|execution| execution.force = None);
            }
        }
    }
}

enum Going {
    On,
    Ended,
    Stuck,
}

/// Runs thread `number` until it waits; returns whether it made progress.
fn resume(fibers: &mut [Fiber], number: usize) -> bool {
    let before = context::with(|execution| {
        execution.current = number;
        execution.order.len()
    });
    let ended = fibers[number - 1].resume();
    context::with(|execution| {
        if ended {
            execution.threads[number].status = Status::Finished;
        }
        ended || execution.order.len() > before
    })
}

fn unfinished(execution: &Execution) -> Vec<usize> {
    let threads = execution.threads.iter().enumerate().skip(1);
    let open = threads.filter(|(_, thread)| thread.status != Status::Finished);
    open.map(|(number, _)| number).collect()
}

/// Runs each thread in turn as far as possible, restarting from the first after progress. A thread
/// in the middle of a read-modify-write runs first.
fn drive_in_turn(fibers: &mut [Fiber]) -> Going {
    let mut open = context::with(|execution| unfinished(execution));
    if open.is_empty() {
        return Going::Ended;
    }
    context::with(|execution| {
        if execution.caught_up() {
            let last = execution.last.filter(|_| execution.scripted);
            open.sort_by_key(|&thread| {
                (execution.threads[thread].half.is_none(), last != Some(thread), thread)
            });
        }
    });
    for number in open {
        let moved = resume(fibers, number);
        if context::with(|execution| execution.ending.is_some()) {
            return Going::Ended;
        }
        if moved {
            return Going::On;
        }
    }
    Going::Stuck
}

/// Runs one event of a thread that the decider picks. `runnable` is reusable memory.
fn drive_scheduled(fibers: &mut [Fiber], runnable: &mut Vec<usize>) -> Going {
    for number in 1..=fibers.len() {
        if context::with(|execution| execution.may_say_otherwise(number)) {
            resume(fibers, number);
            if context::with(|execution| execution.ending.is_some()) {
                return Going::Ended;
            }
        }
    }
    let number = context::with(|execution| {
        let threads = execution.threads.iter().enumerate();
        let ready = threads.filter(|(_, thread)| thread.status == Status::Ready);
        runnable.clear();
        runnable.extend(ready.map(|(number, _)| number));
        if runnable.is_empty() {
            return None;
        }
        execution.granted = Some(execution.decider.schedule(runnable, execution.order.len()));
        execution.granted
    });
    let Some(number) = number else {
        let left = context::with(|execution| unfinished(execution));
        return if left.is_empty() { Going::Ended } else { Going::Stuck };
    };
    resume(fibers, number);
    if context::with(|execution| execution.ending.is_some()) { Going::Ended } else { Going::On }
}

impl Execution {
    /// Returns whether it is unknown what the thread waits for, or its wait may end now: its word
    /// has accesses that the thread has not seen.
    fn may_say_otherwise(&self, number: usize) -> bool {
        match self.threads[number].status {
            Status::Unknown => true,
            Status::Waiting { address, seen, .. } => seen != self.locations.touched(address),
            Status::Ready | Status::Blocked { .. } | Status::Finished => false,
        }
    }

    /// Handles the state in which no thread can continue: returns the thread whose wait must end,
    /// or ends the execution.
    fn resolve_stuck(&mut self) -> Option<usize> {
        assert!(self.caught_up(), "the model is not deterministic: it stops earlier this time");
        if !self.caught_up_well() {
            return None;
        }
        let open = unfinished(self);
        for &number in &open {
            if let Status::Blocked { stamp, .. } = self.threads[number].status {
                let event = &self.graph.events[stamp];
                if event.from != self.latest(event.location) {
                    // The thread would check again, which is another execution.
                    self.ending = Some(Ending::Discarded);
                    return None;
                }
            }
        }
        let timed = open.iter().copied().filter(|&number| {
            matches!(
                self.threads[number].status,
                Status::Waiting { timed: true, .. } | Status::Blocked { timed: true, .. }
            )
        });
        let next = timed.min_by_key(|&number| (self.threads[number].forced, number));
        if next.is_none() {
            let what = self.describe_deadlock(&open);
            self.fail(FailureKind::Deadlock, what);
        }
        self.force = next;
        next
    }

    fn describe_deadlock(&self, open: &[usize]) -> String {
        let waits = open.iter().map(|&number| match self.threads[number].status {
            Status::Blocked { stamp, .. } => {
                let event = &self.graph.events[stamp];
                let label = self.label(event.location);
                format!("thread {number} waits for {label}, which is {:#x}", event.value)
            }
            Status::Waiting { address, parked, .. } => {
                let how = if parked { "is parked on" } else { "waits for" };
                let (label, value) = match self.locations.located(address) {
                    Some(at) => (self.label(at), self.value(self.latest(at))),
                    None => (platform::describe(address).unwrap_or("a new word".to_owned()), 0),
                };
                format!("thread {number} {how} {label}, which is {value:#x}")
            }
            status => format!("thread {number} is {status:?}"),
        });
        let waits: Vec<String> = waits.collect();
        format!("no thread can go on: {}", waits.join("; "))
    }
}
