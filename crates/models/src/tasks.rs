//! Models of tasks: a task's result reaches the waiter once, and the maker of several tasks
//! continues when all of them are done and touch nothing more.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, Platform as _, ThreadId};
use antiphon_runtime::sched::{Crew, Lifo, Put, Room, Scheme, Share, Steal};
use antiphon_runtime::task::{self, Heap, Memory};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, all_of, model};
use crate::program::{Anywhere, Program};

type Task = task::Task<Check>;
type Countdown = task::Countdown<Check>;
type BiasedCountdown = task::BiasedCountdown<Check>;
type U32 = <Check as Atomics>::U32;

pub fn entries() -> Vec<Entry> {
    let both = &["taken", "lost"];
    let both_ends = &["over at once", "waits"];
    all_of([
        Subject("task").models([
            model("returns-1+1", returning(true), PLAIN.expiries(1)),
            model("dropped-1+1", returning(false), PLAIN.expiries(1)),
            model("let-go-1+1", letting_go(), PLAIN.expiries(1)),
            model("left-1+1", leaving(), PLAIN).reaches(both),
            model("polled-1+1", polled(false), PLAIN).reaches(&["waits", "there"]),
            model("polled-then-waits-1+1", polled(true), PLAIN.expiries(1))
                .reaches(&["waits", "there"]),
            model("worker-waits-2", helping(2), PLAIN).by_lot(2_000),
            model("worker-waits-3", helping(3), PLAIN.expiries(1)).by_lot(800),
        ]),
        Subject("future").models([
            model("woken-0+2", woken(), PLAIN).reaches(&["once", "twice"]),
            model("awaits-2+1", awaiting(1, 2), PLAIN).by_lot(3_000).reaches(&["twice"]),
            model("awaits-1+2", awaiting(2, 1), PLAIN).by_lot(1_000),
        ]),
        Subject("countdown").models([
            model("waits-1+1", counting(1), PLAIN.expiries(1)),
            model("waits-2+1", counting(2), PLAIN),
            model("biased-1+1", biased(1), PLAIN.expiries(1)).reaches(both_ends),
            model("biased-2+1", biased(2), PLAIN).reaches(both_ends),
        ]),
    ])
}

/// The heap, for tasks whose end the checker sees: all accesses to a task must come before it.
struct Mortal;

// SAFETY: the heap's contract.
unsafe impl Memory for Mortal {
    fn allocate(layout: Layout) -> NonNull<u8> {
        Heap::allocate(layout)
    }

    unsafe fn free(place: NonNull<u8>, layout: Layout) {
        /// The first part of a task, which has all of its words.
        type Header = [MaybeUninit<u64>; 3];
        assert!(layout.size() >= size_of::<Header>());
        // SAFETY: the memory has that size, and is freed below.
        antiphon_check::retire(unsafe { place.cast::<Header>().as_ref() });
        // SAFETY: the caller's contract.
        unsafe { Heap::free(place, layout) };
    }
}

/// One thread runs a task or drops it, the other waits for its result.
fn returning(runs: bool) -> Program {
    Program::new(2, 2, move |scope| {
        let done = Arc::new(Anywhere(Data::new(0_u32)));
        let doing = done.clone();
        let (task, mut handle) = Task::new_in(Mortal, move || {
            doing.0.set(1);
            7
        });
        scope.spawn(move || if runs { task.run() } else { drop(task) });
        scope.spawn(move || {
            handle.awaited().wait();
            assert_eq!(done.0.get(), u32::from(runs));
            assert_eq!(handle.take(), runs.then_some(7));
        });
    })
}

/// Tells whether it was dropped; each thread that drops it sets that.
struct Dropped(Arc<Anywhere<Data<bool>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        assert!(!self.0.0.get(), "dropped twice");
        self.0.0.set(true);
    }
}

/// The handle of a task is dropped, or the result is taken if it is there: the result is dropped
/// once, by a thread that sees it. Must reach `taken` and `lost`.
fn leaving() -> Program {
    Program::new(2, 2, |scope| {
        let [dropped, done] = [(); 2].map(|()| Arc::new(Anywhere(Data::new(false))));
        let (returned, doing) = (Dropped(dropped.clone()), done.clone());
        let (task, handle) = Task::new_in(Mortal, move || {
            doing.0.set(true);
            returned
        });
        scope.spawn(move || task.run());
        scope.spawn(move || {
            if handle.is_done() {
                probe("taken");
                assert!(done.0.get(), "TASK-1");
                assert!(handle.take().is_some());
            } else {
                probe("lost");
            }
        });
        scope.finally(move || assert!(dropped.0.get(), "never dropped"));
    })
}

/// Counts its wakes.
struct Woken(U32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Release);
    }
}

/// A waiter drops the handle, and after that the task's result must no longer exist.
fn letting_go() -> Program {
    Program::new(2, 2, |scope| {
        let dropped = Arc::new(Anywhere(Data::new(false)));
        let returned = Dropped(dropped.clone());
        let (task, mut handle) = Task::new_in(Mortal, move || returned);
        scope.spawn(move || task.run());
        scope.spawn(move || {
            handle.awaited().wait();
            drop(handle);
            assert!(dropped.0.get(), "it is dropped later");
        });
    })
}

/// A handle is polled with two wakers, and then with the one that was woken, or is waited for. Must
/// reach `waits` and `there`.
fn polled(then_waits: bool) -> Program {
    Program::new(2, 4, move |scope| {
        let done = Arc::new(Anywhere(Data::new(0_u32)));
        let doing = done.clone();
        let (task, mut handle) = Task::new_in(Mortal, move || {
            doing.0.set(1);
            7
        });
        let wakers = [(); 2].map(|()| Arc::new(Woken(U32::ZERO)));
        scope.spawn(move || task.run());
        scope.spawn(move || {
            for woken in &wakers {
                let waker = Waker::from(woken.clone());
                match Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)) {
                    Poll::Pending => probe("waits"),
                    Poll::Ready(returned) => {
                        probe("there");
                        assert_eq!((returned, done.0.get()), (Some(7), 1));
                        return;
                    }
                }
            }
            if then_waits {
                assert_eq!(handle.take(), Some(7));
            } else {
                wakers[1].0.wait_while(Acquire, |times| times == 0);
                assert!(handle.is_done());
                assert_eq!(handle.take(), Some(7));
            }
            assert_eq!(done.0.get(), 1);
        });
    })
}

/// `workers` workers drive a future that awaits the tasks of `others` threads, whichever comes
/// first. With two, must reach `twice`: both are done at one poll.
fn awaiting(workers: usize, others: usize) -> Program {
    Program::new((workers + others) as u32, 2 * (workers + others) as u32, move |scope| {
        let policy = Scheme::new(Lifo, Steal { share: Share::Half }).capacity(2, 2);
        let crew = Arc::new(Crew::<Check, _>::new(policy, workers, 2));
        let (tasks, mut handles): (Vec<_>, Vec<_>) =
            (1..=others as u32).map(|number| Task::new(move || number)).unzip();
        let mut sum = 0;
        let all = poll_fn(move |context| {
            let before = handles.len();
            handles.retain_mut(|handle| match Pin::new(handle).poll(context) {
                Poll::Ready(returned) => {
                    sum += returned.expect("it was run");
                    false
                }
                Poll::Pending => true,
            });
            if before - handles.len() == 2 {
                probe("twice");
            }
            if handles.is_empty() { Poll::Ready(sum) } else { Poll::Pending }
        });
        let put = crew.clone();
        let handle = task::drive(Heap, all, move |task: Task| {
            let made = Put { room: Room::Make, ..Put::PLAIN };
            put.submit(task.into_item(), made).expect("room is made");
        });
        let mut handle = Some(handle);
        for me in 0..workers {
            let crew = crew.clone();
            scope.spawn(move || {
                let mut worker = crew.worker(me).expect("a seat");
                while let Some(item) = worker.next_task() {
                    // SAFETY: all items are those of the future's tasks, each handed out once.
                    unsafe { Task::from_item(item) }.run();
                }
            });
        }
        for task in tasks {
            let (crew, handle) = (crew.clone(), handle.take());
            scope.spawn(move || {
                task.run();
                if let Some(handle) = handle {
                    let all = others as u32;
                    assert_eq!(handle.take(), Some(all * (all + 1) / 2));
                    crew.close();
                }
            });
        }
    })
}

/// Two threads wake a future; a thread that makes a task of it runs that. The last poll sees what
/// both have done before (FUTURE-2), and one poll sees what the poll before has done. Must reach
/// `once` and `twice`, which is how often it is polled.
fn woken() -> Program {
    Program::new(2, 4, |scope| {
        let said = [(); 2].map(|()| Arc::new(U32::ZERO));
        let polls = Arc::new(Anywhere(Data::new(0)));
        let left = Arc::new(Mutex::new(None));
        let (hears, counts, leaves) = (said.clone(), polls.clone(), left.clone());
        let both = poll_fn(move |context| {
            let mut left = leaves.lock().unwrap_or_else(PoisonError::into_inner);
            left.get_or_insert_with(|| context.waker().clone());
            drop(left);
            counts.0.set(counts.0.get() + 1);
            let all = hears.iter().all(|said| said.load(Relaxed) == 1);
            if all { Poll::Ready(()) } else { Poll::Pending }
        });
        // A thread takes only the tasks that it has put there itself: nothing else orders polls.
        let tasks = Arc::new(Mutex::new(Vec::new()));
        let puts = tasks.clone();
        let handle = task::drive(Heap, both, move |task: Task| {
            let mut tasks = puts.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.push((Check::thread(), task));
        });
        let run_mine = move || {
            let mine = || {
                let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
                let at = tasks.iter().position(|(thread, _)| *thread == Check::thread())?;
                Some(tasks.swap_remove(at).1)
            };
            while let Some(task) = mine() {
                task.run();
            }
        };
        // The first poll, which leaves the waker.
        run_mine();
        let waker = left.lock().unwrap_or_else(PoisonError::into_inner).take();
        let waker: Waker = waker.expect("it was polled");
        for said in said {
            let (waker, run_mine) = (waker.clone(), run_mine.clone());
            scope.spawn(move || {
                said.store(1, Relaxed);
                waker.wake();
                run_mine();
            });
        }
        scope.finally(move || {
            assert!(handle.is_done(), "the last poll has missed something");
            probe(if polls.0.get() == 2 { "once" } else { "twice" });
        });
    })
}

/// A task makes another and waits for it, as a worker that runs other tasks meanwhile.
fn helping(workers: usize) -> Program {
    Program::new(workers as u32, 2 * workers as u32, move |scope| {
        let policy = Scheme::new(Lifo, Steal { share: Share::Half }).capacity(2, 2);
        let crew = scope.share(Crew::<Check, _>::new(policy, workers, 2));
        scope.spawn_each(0..workers, move |me| {
            let mut worker = crew.worker(me).expect("a seat");
            let run = |item| {
                // SAFETY: all items are those of the task below, which is handed out once.
                unsafe { Task::from_item(item) }.run();
            };
            if me == 0 {
                let (task, mut handle) = Task::new(|| 7);
                worker.push(task.into_item(), Put::PLAIN).expect("there is room");
                while let Some(item) = worker.next_until(&handle.awaited(), None) {
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
    })
}

/// `tasks` threads run a task each; their maker frees the countdown as soon as it may.
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

/// [`counting`] with a maker that counts its own thread separately: it makes a task for each of the
/// `others`, and one that it runs itself. The first of the others makes one more.
fn biased(others: u32) -> Program {
    Program::new(1 + others, 1 + others, move |scope| {
        let countdown = scope.share(BiasedCountdown::new(Some(ThreadId(1))));
        let begun = scope.share(U32::ZERO);
        let done: Vec<_> = (0..others).map(|_| scope.share(Data::new(false))).collect();
        let all = done.clone();
        scope.spawn(move || {
            assert_eq!(Check::thread(), ThreadId(1));
            (0..=others).for_each(|_| countdown.add());
            begun.store(1, Release);
            countdown.done();
            match countdown.close() {
                None => probe("over at once"),
                Some(awaited) => {
                    probe("waits");
                    awaited.wait();
                    countdown.leave();
                }
            }
            antiphon_check::retire(countdown);
            assert!(all.iter().all(|done| done.get()));
        });
        scope.spawn_each(done.into_iter().enumerate(), move |(number, mine)| {
            begun.wait_while(Acquire, |begun| begun == 0);
            if number == 0 {
                countdown.add();
                countdown.done();
            }
            mine.set(true);
            countdown.done();
        });
    })
}
