//! Models of worker slots (seats) that are taken from workers in a task, or left by them: a queue
//! has one worker at a time, each task is handed out once, and none is left over. A lost wake is a
//! deadlock.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, HeavyFence};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_runtime::sched::{self, Others, Own, Policy, Put, Worker};
use antiphon_sync::queue::{Blocks, Item, Stolen};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::ledger::Ledger;
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    let either = PLAIN.light(HeavyFence::Either);
    Subject("hogs").models([
        model("taken-1+1", taken(1), either).reaches(&["taken", "kept"]),
        model("taken-twice-1+1", taken(2), PLAIN).by_lot(4_000).reaches(&["taken", "kept"]),
        model("ended-1+1", ended(), PLAIN).reaches(&["taken"]),
        model("in-turn-0+2", in_turn(), PLAIN).reaches(&["both"]),
        model("left-1+1", left(), PLAIN).reaches(&["taken"]),
        model("comes-and-goes-1+1", comes_and_goes(), PLAIN).reaches(&["kept"]),
        model("next-1+1", next(), PLAIN).reaches(&["next"]),
        model("closed-1+1", closed(false), PLAIN),
        model("closed-awaited-1+1", closed(true), PLAIN),
        model("closed-leaves-1+1", closed_leaves(), PLAIN),
        model("dismissed-1+1", dismissed(), PLAIN).reaches(&["dismissed"]),
        model("watched-1+2", watched(), PLAIN).by_lot(2_000).reaches(&["taken"]),
    ])
}

type Crew = sched::Crew<Check, Keeps>;
type U32 = <Check as Atomics>::U32;

/// A policy without stealing, with blocks of items: only the worker of the seat takes items from
/// its queue.
struct Keeps;

// SAFETY: tasks go into one queue each, and come out of queues.
unsafe impl Policy<Check> for Keeps {
    type Queue = Blocks<Check, 2>;
    type State = ();

    fn queue(&self) -> Self::Queue {
        Blocks::new(2)
    }

    fn pop(&self, own: &Own<'_, Self::Queue>, (): &mut ()) -> Option<Item> {
        own.pop_back()
    }

    fn steal(&self, _: &Own<'_, Self::Queue>, (): &mut (), _: &Others<'_, Self::Queue>) -> Stolen {
        Stolen::Empty
    }
}

/// Runs the tasks in the queue of a seat.
fn drain(crew: &Crew, seat: usize, ledger: &Ledger) {
    let mut worker = crew.worker(seat).expect("it is free");
    while let Some(task) = worker.try_next_task() {
        ledger.take(task);
    }
}

/// Runs tasks until the closed crew has none left; `done` counts them.
fn serve(mut worker: Worker<'_, Check, Keeps>, ledger: &Ledger, done: &U32) {
    while let Some(task) = worker.next_task() {
        ledger.take(task);
        done.fetch_add(1, Relaxed);
    }
}

/// A worker makes `tasks` tasks and takes them; its seat may be taken from it meanwhile.
fn taken(tasks: usize) -> Program {
    Program::new(2, 2 * tasks as u32, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 1, 4).spares(1));
        let ledger = scope.share(Ledger::new(tasks));
        let done = scope.share(U32::ZERO);
        let mut worker = crew.worker(0).expect("a seat");
        assert_eq!(worker.try_next_task(), None);
        crew.close();
        scope.spawn(move || {
            for number in 0..tasks {
                worker.push(ledger.make(number), Put::PLAIN).expect("there is room");
            }
            while let Some(task) = worker.try_next_task() {
                ledger.take(task);
            }
        });
        scope.spawn(move || {
            let mut seat = None;
            crew.watchdog(0).expect("the only one").look(|hog| seat = hog.take());
            antiphon_check::probe(if seat.is_some() { "taken" } else { "kept" });
            if let Some(seat) = seat {
                serve(crew.worker(seat).expect("it is free"), ledger, done);
            }
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}

/// A worker that may have lost its seat ends, and the watchdog looks again: it takes no seat twice.
/// Must reach `taken`.
fn ended() -> Program {
    Program::new(2, 3, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 1, 4).spares(1));
        let mut worker = crew.worker(0).expect("a seat");
        assert_eq!(worker.try_next_task(), None);
        scope.spawn(move || drop(worker));
        scope.spawn(move || {
            let mut dog = crew.watchdog(0).expect("the only one");
            let mut taken = 0;
            for _ in 0..2 {
                dog.look(|hog| taken += usize::from(hog.take().is_some()));
            }
            if taken > 0 {
                antiphon_check::probe("taken");
            }
            assert!(taken < 2, "SEAT-3");
        });
    })
}

/// Two threads are watchdogs in turn, if they don't meet, and each takes a seat: both are counted.
/// Must reach `both`.
fn in_turn() -> Program {
    Program::new(2, 2, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 2, 4).spares(1));
        let took = scope.share(U32::ZERO);
        let workers = [0, 1].map(|seat| {
            let mut worker = crew.worker(seat).expect("a seat");
            assert_eq!(worker.try_next_task(), None);
            worker
        });
        scope.spawn_each(0..2, move |_| {
            let Some(mut dog) = crew.watchdog(0) else { return };
            let mut seat = None;
            dog.look(|hog| seat = seat.or_else(|| hog.take()));
            if seat.is_some() {
                took.fetch_add(1, Relaxed);
            }
        });
        scope.finally(move || {
            let took = took.load(Relaxed);
            if took == 2 {
                antiphon_check::probe("both");
            }
            assert_eq!(crew.stats().hogs, took.into());
            drop(workers);
        });
    })
}

/// A worker makes a task and leaves its seat, which a watchdog may take from it meanwhile.
fn left() -> Program {
    Program::new(2, 4, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 1, 4).spares(2));
        let ledger = scope.share(Ledger::new(1));
        let mut worker = crew.worker(0).expect("a seat");
        worker.push(ledger.make(0), Put::PLAIN).expect("there is room");
        assert!(worker.has_seat());
        scope.spawn(move || {
            if let Some(seat) = worker.leave() {
                drain(crew, seat, ledger);
            }
            assert_eq!(worker.leave(), None);
        });
        scope.spawn(move || {
            let mut seat = None;
            crew.watchdog(0).expect("the only one").look(|hog| seat = hog.take());
            if let Some(seat) = seat {
                antiphon_check::probe("taken");
                drain(crew, seat, ledger);
            }
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}

/// A worker leaves, and a worker of another seat replaces it; a watchdog must see that as a
/// different task.
fn comes_and_goes() -> Program {
    Program::new(2, 4, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 2, 4));
        let ledger = scope.share(Ledger::new(1));
        let [lost, took] = [scope.share(U32::ZERO), scope.share(U32::ZERO)];
        let mut worker = crew.worker(0).expect("a seat");
        assert_eq!(worker.try_next_task(), None);
        scope.spawn(move || {
            drop(worker);
            let mut worker = crew.worker(1).expect("a seat");
            worker.push(ledger.make(0), Put::PLAIN).expect("there is room");
            worker.try_next_task().into_iter().for_each(|task| ledger.take(task));
            lost.store(u32::from(worker.leave().is_none()), Relaxed);
        });
        scope.spawn(move || {
            let mut seat = None;
            crew.watchdog(0).expect("the only one").look(|hog| seat = hog.take());
            match seat {
                // The queue has no worker: the thread that has taken the seat may use it, if it is
                // free.
                Some(seat) => {
                    took.store(seat as u32, Relaxed);
                    assert!(crew.worker(seat).is_none_or(|mut worker| {
                        worker.try_next_task().into_iter().for_each(|task| ledger.take(task));
                        true
                    }));
                }
                None => antiphon_check::probe("kept"),
            }
        });
        scope.finally(move || {
            ledger.assert_all_taken();
            assert_eq!(lost.load(Relaxed), took.load(Relaxed), "each has lost its own seat");
        });
    })
}

/// The next worker of the seat gets the tasks that its predecessor has left there.
fn next() -> Program {
    Program::new(2, 2, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 1, 4).spares(1));
        let ledger = scope.share(Ledger::new(1));
        let mut worker = crew.worker(0).expect("a seat");
        scope.spawn(move || {
            worker.push(ledger.make(0), Put::PLAIN).expect("there is room");
            assert_eq!(worker.leave(), Some(0));
        });
        scope.spawn(move || {
            if let Some(mut worker) = crew.worker(0) {
                antiphon_check::probe("next");
                ledger.take(worker.try_next_task().expect("it is there"));
            }
        });
    })
}

/// A worker without a seat makes a task, and if it `waits`, waits until that was run, while the
/// last worker with a seat would end.
fn closed(waits: bool) -> Program {
    Program::new(2, 4, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 1, 4).spares(1));
        let ledger = scope.share(Ledger::new(1));
        let done = scope.share(U32::ZERO);
        let mut away = crew.worker(0).expect("a seat");
        assert_eq!(away.leave(), Some(0));
        scope.spawn(move || {
            away.push(ledger.make(0), Put::PLAIN).expect("there is room");
            if waits {
                done.wait_while(Relaxed, |done| done == 0);
            }
        });
        scope.spawn(move || {
            let worker = crew.worker(0).expect("a seat");
            crew.close();
            serve(worker, ledger, done);
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}

/// A worker leaves its seat, which no other takes, while the worker of another seat would end; then
/// it makes a task and waits for it.
fn closed_leaves() -> Program {
    Program::new(2, 4, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 2, 4).spares(1));
        let ledger = scope.share(Ledger::new(1));
        let done = scope.share(U32::ZERO);
        let [mut away, worker] = [0, 1].map(|seat| crew.worker(seat).expect("a seat"));
        assert_eq!(away.try_next_task(), None);
        crew.close();
        scope.spawn(move || {
            assert_eq!(away.leave(), Some(0));
            away.push(ledger.make(0), Put::PLAIN).expect("there is room");
            done.wait_while(Relaxed, |done| done == 0);
        });
        scope.spawn(move || serve(worker, ledger, done));
        scope.finally(move || ledger.assert_all_taken());
    })
}

/// A watchdog sleeps until it is dismissed.
fn dismissed() -> Program {
    Program::new(2, 2, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 1, 4).spares(1));
        let mut worker = crew.worker(0).expect("a seat");
        scope.spawn(move || {
            assert_eq!(worker.next_task(), None);
            crew.dismiss();
            antiphon_check::probe("dismissed");
        });
        scope.spawn(move || {
            let mut dog = crew.watchdog(u64::MAX).expect("the only one");
            crew.close();
            while dog.wait() {}
        });
    })
}

/// A worker rests, and then is in a task until another task was run: a thread wakes the watchdog.
fn watched() -> Program {
    Program::new(3, 4, move |scope| {
        let crew = scope.share(Crew::new(Keeps, 1, 4).spares(1));
        let ledger = scope.share(Ledger::new(2));
        let done = scope.share(U32::ZERO);
        let mut worker = crew.worker(0).expect("a seat");
        scope.spawn(move || {
            let task = worker.next_task().expect("a task");
            ledger.take(task);
            done.fetch_add(1, Relaxed);
            done.wait_while(Relaxed, |done| done < 2);
        });
        scope.spawn(move || {
            let mut dog = crew.watchdog(0).expect("the only one");
            let mut seat = None;
            while seat.is_none() && dog.wait() {
                dog.look(|hog| seat = hog.take());
            }
            antiphon_check::probe("taken");
            let mut worker = crew.worker(seat.expect("not closed")).expect("it is free");
            let task = worker.next_task().expect("a task");
            ledger.take(task);
            done.fetch_add(1, Relaxed);
        });
        scope.spawn(move || {
            crew.submit(ledger.make(0), Put::PLAIN).expect("there is room");
            crew.submit(ledger.make(1), Put::PLAIN).expect("there is room");
        });
        scope.finally(move || ledger.assert_all_taken());
    })
}
