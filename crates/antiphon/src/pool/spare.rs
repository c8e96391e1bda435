//! Threads that have no seat: they wait for one that a worker leaves, or that is taken from it.
//!
//! Seats stay, with the tasks in their queues; threads come and go. A thread that was in a long
//! task, and is back, waits here in its turn; and so does one whose fibers wait, until these may go
//! on.

use std::io;
use std::mem;
use std::ptr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::fiber::Ready;

use crate::event::Latch;
use crate::fiber::is_fiber;
use crate::unpoisoned::lock;
use crate::worker;

/// The list of threads that wait for seats.
pub(super) struct Bench {
    state: Mutex<State>,
    called: Condvar,
    /// Opened when all threads are gone, and no more come.
    over: Latch,
    name: String,
    /// How many threads there may be.
    most: usize,
}

#[derive(Default)]
struct State {
    /// The number of threads that wait, or are about to, beyond those that are called.
    free: usize,
    /// The mails of waiting threads that have fibers, which wait, too.
    hosts: Vec<&'static Ready<Linux>>,
    /// The number of these, with those that were woken and are not back.
    hosting: usize,
    /// Whose worker is called.
    seats: Vec<usize>,
    threads: Vec<JoinHandle<()>>,
    /// The number of threads that were started; of these, the number that are not at their end; and
    /// the number that are gone.
    started: usize,
    serving: usize,
    gone: usize,
    closed: bool,
}

impl Bench {
    /// A list for up to `most` threads, called by this name.
    pub(super) fn new(name: String, most: usize) -> Self {
        let (state, called, over) = (Mutex::default(), Condvar::new(), Latch::new(1));
        Self { state, called, over, name, most }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The name of its threads, before their numbers.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How many threads there may be.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The name of the thread that was started after `number` others.
    pub(super) fn thread_name(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// Starts a thread that runs `work`.
    pub(super) fn start(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.state();
        let name = self.thread_name(state.started);
        state.start(name, work)
    }

    /// Keeps a thread that [`join_all`](Self::join_all) waits for.
    pub(super) fn keep(&self, thread: JoinHandle<()>) {
        self.state().threads.push(thread);
    }

    /// Gives a thread the seat that `give` has, unless there is no thread to be had. Starts one if
    /// none waits. Does not wait for it. It does so also when the pool is closed: the tasks in the
    /// seat's queue are run, and the thread that has had the seat may wait for that.
    ///
    /// `spare` makes what a new thread runs: it waits for a seat, and serves it.
    pub(super) fn lend<W: FnOnce() + Send + 'static>(
        &self,
        spare: impl FnOnce() -> W,
        give: impl FnOnce() -> Option<usize>,
    ) {
        let mut state = self.state();
        if state.free == 0 && !self.start_spare(&mut state, spare) {
            return;
        }
        if let Some(seat) = give() {
            state.free -= 1;
            state.seats.push(seat);
            // The first thread to come takes it.
            match state.hosts.pop() {
                Some(host) => host.tell(),
                None => self.called.notify_one(),
            }
        }
    }

    fn start_spare<W: FnOnce() + Send + 'static>(
        &self,
        state: &mut State,
        spare: impl FnOnce() -> W,
    ) -> bool {
        // If no thread is to be had, the worker keeps its seat.
        let started = state.serving < self.most
            && state.start(self.thread_name(state.started), spare()).is_ok();
        state.free += usize::from(started);
        started
    }

    /// Waits for a seat; `None` when the pool is closed, and all wait here.
    pub(super) fn wait(&self) -> Option<usize> {
        let lasts = |state: &mut State| state.seats.is_empty() && !state.is_over();
        let state = self.called.wait_while(self.state(), lasts);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let seat = state.seats.pop();
        if seat.is_none() {
            state.free -= 1;
            state.serving -= 1;
        }
        seat
    }

    /// Waits for a seat, or until `sleep` ends for another reason, such as a notification of the
    /// host.
    pub(super) fn wait_beside(
        &self,
        host: &'static Ready<Linux>,
        sleep: impl FnOnce(),
    ) -> Option<usize> {
        let mut state = self.state();
        state.free += 1;
        state.hosting += 1;
        state.hosts.push(host);
        drop(state);
        sleep();
        let mut state = self.state();
        state.hosting -= 1;
        state.hosts.retain(|other| !ptr::eq(*other, host));
        let seat = state.seats.pop();
        if seat.is_none() {
            state.free -= 1;
        }
        seat
    }

    /// A thread that had a seat is about to wait for one.
    pub(super) fn come(&self) {
        let mut state = self.state();
        state.free += 1;
        self.call(&state);
    }

    /// Closes the list: its threads wait no more once all of them wait. Returns whether all have
    /// gone.
    pub(super) fn close(&self) -> bool {
        let mut state = self.state();
        state.closed = true;
        self.call(&state);
        self.all_gone(&state)
    }

    /// A thread goes: whether it was the last of a pool that is closed.
    pub(super) fn go(&self) -> bool {
        let mut state = self.state();
        // A thread in which the policy has panicked has not waited for its end.
        if thread::panicking() {
            state.serving -= 1;
            self.call(&state);
        }
        state.gone += 1;
        self.all_gone(&state)
    }

    /// Whether all are gone from a pool that is closed; if so, tells its waiter.
    fn all_gone(&self, state: &State) -> bool {
        let over = state.closed && state.gone == state.started;
        if over {
            self.over.count_down(1);
        }
        over
    }

    fn call(&self, state: &State) {
        if state.is_over() {
            self.called.notify_all();
        }
    }

    /// Waits for up to `time`. Returns, at once then, whether all are gone from a pool that is
    /// closed.
    pub(super) fn is_over_after(&self, time: Duration) -> bool {
        self.over.wait_for(time)
    }

    /// Waits for all threads to end, unless one of them calls this: others may wait for that.
    pub(super) fn join_all(&self) {
        let me = thread::current().id();
        // Other fibers of the thread may have to do what the caller waits for: so it is suspended.
        let mut suspends = is_fiber() && !thread::panicking();
        loop {
            let threads = mem::take(&mut self.state().threads);
            if threads.is_empty() || threads.iter().any(|thread| thread.thread().id() == me) {
                return;
            }
            if mem::take(&mut suspends) {
                self.over.wait();
            } else {
                // If the caller is a worker of another pool, the threads may wait for tasks in its
                // queue.
                worker::leave();
            }
            for thread in threads {
                // If the policy has panicked there, the panic hook has said so.
                let _: thread::Result<()> = thread.join();
            }
        }
    }
}

impl State {
    /// Whether no thread has a seat, and none will: threads that wait are at their end.
    fn is_over(&self) -> bool {
        let waits_for_good = self.hosting == 0 && self.free == self.serving;
        self.closed && self.seats.is_empty() && waits_for_good
    }

    fn start(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().name(name).spawn(work)?);
        self.started += 1;
        self.serving += 1;
        Ok(())
    }
}
