//! Tasks: what one returns reaches who waits, once, and who makes several goes on when all of them
//! are done and touch nothing more.

use std::sync::Arc;

use antiphon_check::{Check, Data, probe};
use antiphon_runtime::sched::{Crew, Lifo, Scheme, Share, Steal};
use antiphon_runtime::task;

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::program::{Anywhere, Program};

type Task = task::Task<Check>;
type Countdown = task::Countdown<Check>;

const PLAIN: Bounds = Bounds::PLAIN;

pub fn entries() -> Vec<Entry> {
    let both = &["taken", "lost"];
    vec![
        Entry::new("task/returns-1+1", returning(true), PLAIN.expiries(1)),
        Entry::new("task/dropped-1+1", returning(false), PLAIN.expiries(1)),
        Entry::new("task/left-1+1", leaving(), PLAIN).reaches(both),
        Entry::new("task/worker-waits-2", helping(2), PLAIN).by_lot(2_000),
        Entry::new("task/worker-waits-3", helping(3), PLAIN.expiries(1)).by_lot(800),
        Entry::new("countdown/waits-1+1", counting(1), PLAIN.expiries(1)),
        Entry::new("countdown/waits-2+1", counting(2), PLAIN),
    ]
}

/// One runs a task or drops it, the other waits for what it returns.
fn returning(runs: bool) -> Program {
    Program::new(2, 2, move |scope| {
        let done = Arc::new(Anywhere(Data::new(0_u32)));
        let doing = done.clone();
        let (task, handle) = Task::new(move || {
            doing.0.set(1);
            7
        });
        scope.spawn(move || if runs { task.run() } else { drop(task) });
        scope.spawn(move || {
            assert_eq!(handle.take(), runs.then_some(7));
            assert_eq!(done.0.get(), u32::from(runs));
        });
    })
}

/// Whether somebody has dropped it.
struct Dropped(Arc<Anywhere<Data<bool>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        assert!(!self.0.0.get(), "dropped twice");
        self.0.0.set(true);
    }
}

/// The handle of a task is dropped, or what it returns is taken if it is there: that is dropped
/// once, and who does sees it. Has to reach `taken` and `lost`.
fn leaving() -> Program {
    Program::new(2, 2, |scope| {
        let dropped = Arc::new(Anywhere(Data::new(false)));
        let returned = Dropped(dropped.clone());
        let (task, handle) = Task::new(move || returned);
        scope.spawn(move || task.run());
        scope.spawn(move || {
            if handle.is_done() {
                probe("taken");
                assert!(handle.take().is_some());
            } else {
                probe("lost");
            }
        });
        scope.finally(move || assert!(dropped.0.get(), "never dropped"));
    })
}

/// A task makes another and waits for it, as a worker that runs others meanwhile.
fn helping(workers: usize) -> Program {
    Program::new(workers as u32, 2 * workers as u32, move |scope| {
        let policy = Scheme::new(Lifo, Steal { share: Share::Half }).capacity(2, 2);
        let crew = scope.share(Crew::<Check, _>::new(policy, workers, 2));
        for me in 0..workers {
            scope.spawn(move || {
                let mut worker = crew.worker(me).expect("a seat");
                let run = |item| {
                    // SAFETY: all items are those of the task below, which is handed out once.
                    unsafe { Task::from_item(item) }.run();
                };
                if me == 0 {
                    let (task, mut handle) = Task::new(|| 7);
                    worker.push(task.into_item()).expect("there is room");
                    while let Some(item) = worker.next_until(&handle.awaited()) {
                        run(item);
                    }
                    assert!(handle.is_done());
                    assert_eq!(handle.take(), Some(7));
                    crew.close();
                }
                while let Some(item) = worker.next_task() {
                    run(item);
                }
            });
        }
    })
}

/// So many threads have a task each, whose maker frees the countdown as soon as it may.
fn counting(tasks: u32) -> Program {
    Program::new(1 + tasks, 1 + tasks, move |scope| {
        let countdown = scope.share(Countdown::NEW);
        let done: Vec<_> = (0..tasks).map(|_| scope.share(Data::new(false))).collect();
        for &mine in &done {
            countdown.add();
            scope.spawn(move || {
                mine.set(true);
                countdown.done();
            });
        }
        scope.spawn(move || {
            countdown.wait();
            antiphon_check::retire(countdown);
            assert!(done.iter().all(|done| done.get()));
        });
    })
}
