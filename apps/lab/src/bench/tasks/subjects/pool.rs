//! Our pool with a handle for each task, which is a closure or a fiber; and `join`.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use antiphon::select::Select;
use antiphon::{Latch, channel, fiber, pool};

use super::{Look, Meeting, Runtime, park};
use crate::bench::tasks::measure::{fibonacci, took};

/// The pool.
pub struct Pool(pool::Pool);

impl Pool {
    pub fn new(workers: usize) -> io::Result<Self> {
        pool::Pool::new(workers).map(Self)
    }

    /// A pool whose tasks are fibers.
    pub fn of_fibers(workers: usize) -> io::Result<Self> {
        let builder = pool::Pool::builder().threads(workers).room(1 << 20);
        // SAFETY: tasks initialise no thread-local, and nothing that they call waits while it
        // initialises one.
        unsafe { builder.fibers(fiber::STACK_BYTES) }.build().map(Self)
    }

    /// The same pool as that of [`of_fibers`](Self::of_fibers), but its fibers move between
    /// threads.
    #[cfg(feature = "migrating")]
    pub fn of_moving(workers: usize) -> io::Result<Self> {
        let builder = pool::Pool::builder().threads(workers).room(1 << 20);
        // SAFETY: tasks initialise no thread-local, as in `of_fibers`; and across waits they keep
        // only numbers, handles and ends of channels.
        unsafe { builder.fibers(fiber::STACK_BYTES).migrating() }.build().map(Self)
    }
}

fn call(n: u32) -> u64 {
    fibonacci(n, |one, other| pool::join(|| call(one), || call(other)))
}

impl Runtime for Pool {
    fn spawn_join(&self, batch: usize, times: usize) -> Duration {
        self.0.run(|| {
            took(times, || {
                let handles: Vec<_> = (0..batch).map(|_| self.0.spawn(|| ())).collect();
                handles.into_iter().for_each(|handle| handle.join().expect("it does nothing"));
            })
        })
    }

    fn fork_join(&self, n: u32, times: usize) -> Duration {
        self.0.run(|| took(times, || _ = std::hint::black_box(call(n))))
    }

    fn idle(&self, tasks: usize, look: Look<'_>) {
        self.0.run(|| {
            let mut handles = Vec::with_capacity(tasks);
            look(false);
            handles.extend((0..tasks).map(|_| self.0.spawn(|| ())));
            look(true);
        });
    }

    fn yields(&self, tasks: usize, each: usize) -> Duration {
        let begun = Instant::now();
        self.0.scope(|scope| {
            let yields = || (0..each).for_each(|_| fiber::yield_now());
            (0..tasks).for_each(|_| scope.spawn(yields));
        });
        begun.elapsed()
    }

    fn channel(&self, room: usize, messages: usize, meeting: Meeting) -> Duration {
        let begun = Instant::now();
        let (sender, receiver) = channel::bounded(room);
        let first = meeting.clone();
        let sends = self.0.spawn(move || {
            first.come();
            (0..messages).for_each(|n| sender.send(n).expect("a receiver"));
        });
        let receives = self.0.spawn(move || {
            meeting.come();
            receiver.iter().count()
        });
        sends.join().expect("it has a receiver");
        assert_eq!(receives.join().ok(), Some(messages));
        begun.elapsed()
    }

    fn select(&self, room: usize, messages: usize) -> Duration {
        let begun = Instant::now();
        let both = [0, 1].map(|_| channel::bounded(room));
        let [one, other] = both.each_ref().map(|ends| ends.1.clone());
        let sends = both.map(|(sender, _)| {
            let send = move || (0..messages / 2).for_each(|n| sender.send(n).expect("a receiver"));
            self.0.spawn(send)
        });
        let receives = self.0.spawn(move || {
            let mut received = 0;
            while received < messages {
                let select = Select::new().recv(&one, |n| n.is_ok()).recv(&other, |n| n.is_ok());
                received += usize::from(select.wait());
            }
        });
        receives.join().expect("it has all");
        sends.into_iter().for_each(|sends| sends.join().expect("it has a receiver"));
        begun.elapsed()
    }

    fn parked(&self, tasks: usize, look: Look<'_>) {
        let open = Latch::new(1);
        self.0.scope(|scope| {
            park(tasks, look, |here| {
                let open = &open;
                scope.spawn(move || {
                    here.fetch_add(1, Relaxed);
                    open.wait();
                });
            });
            open.count_down(1);
        });
    }
}
