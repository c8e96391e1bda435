//! The idle-thread list: threads without a seat wait for one that a worker leaves, or that is taken
//! from it.
//!
//! Seats stay, with the tasks in their queues; threads come and go. A thread that returns from a
//! long task also waits here; and so does a thread whose fibers wait, until these may continue.

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
    /// Opened when all threads are gone and no more will start.
    over: Latch,
    name: String,
    /// Maximum number of threads.
    most: usize,
}

#[derive(Default)]
struct State {
    /// The number of threads that wait or are about to, less those for which a seat is in `seats`.
    free: usize,
    /// The mailboxes of waiting threads whose fibers all wait, too.
    hosts: Vec<&'static Ready<Linux>>,
    /// The number of such threads, including those that were woken and are not back.
    hosting: usize,
    /// The seats that are free for a waiting thread.
    seats: Vec<usize>,
    threads: Vec<JoinHandle<()>>,
    /// The number of threads that were started; of these, the number that are not ending, and the
    /// number that are gone.
    started: usize,
    serving: usize,
    gone: usize,
    closed: bool,
}

impl Bench {
    /// Creates a list for up to `most` threads, whose names begin with `name`.
    pub(super) fn new(name: String, most: usize) -> Self {
        let (state, called, over) = (Mutex::default(), Condvar::new(), Latch::new(1));
        Self { state, called, over, name, most }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns the prefix of the threads' names.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the maximum number of threads.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Returns the name of the thread that was started after `number` others.
    pub(super) fn thread_name(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// Starts a thread that runs `work`.
    pub(super) fn start(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.state();
        let name = self.thread_name(state.started);
        state.start(name, work)
    }

    /// Adds a thread that [`join_all`](Self::join_all) waits for.
    pub(super) fn keep(&self, thread: JoinHandle<()>) {
        self.state().threads.push(thread);
    }

    /// Gives a thread the seat that `give` returns, unless no thread is available. Starts a thread
    /// if none waits, and does not wait for it. Works also when the pool is closed: the tasks in
    /// the seat's queue must run, and the thread that has had the seat may wait for them.
    ///
    /// `spare` makes the closure of a new thread, which waits for a seat and serves it.
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
            // The first thread that arrives takes it.
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
        // If no thread is available, the worker keeps its seat.
        let started = state.serving < self.most
            && state.start(self.thread_name(state.started), spare()).is_ok();
        state.free += usize::from(started);
        started
    }

    /// Waits for a seat. Returns `None` when the pool is closed and all threads wait here.
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

    /// Waits for a seat, or until `sleep` ends for another reason, such as a notification to the
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

    /// Registers a thread that had a seat and is about to wait for one.
    pub(super) fn come(&self) {
        let mut state = self.state();
        state.free += 1;
        self.call(&state);
    }

    /// Closes the list: once all its threads wait, they stop waiting and end. Returns whether all
    /// have ended.
    pub(super) fn close(&self) -> bool {
        let mut state = self.state();
        state.closed = true;
        self.call(&state);
        self.all_gone(&state)
    }

    /// Registers that the calling thread ends. Returns whether it was the last of a closed pool.
    pub(super) fn go(&self) -> bool {
        let mut state = self.state();
        // A thread in which the policy panicked did not end in `wait`, so it is uncounted here.
        if thread::panicking() {
            state.serving -= 1;
            self.call(&state);
        }
        state.gone += 1;
        self.all_gone(&state)
    }

    /// Returns whether the pool is closed and all its threads are gone; if so, wakes the waiter.
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

    /// Waits for up to `time` until the pool is closed and all its threads are gone. Returns
    /// whether that is so.
    pub(super) fn is_over_after(&self, time: Duration) -> bool {
        self.over.wait_for(time)
    }

    /// Waits for all threads to end, unless one of them calls this: other threads may wait for the
    /// caller.
    pub(super) fn join_all(&self) {
        let me = thread::current().id();
        // The caller may wait for something that other fibers of the thread must do: so the caller
        // is suspended.
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
                // If the policy has panicked there, the panic hook has reported it.
                let _: thread::Result<()> = thread.join();
            }
        }
    }
}

impl State {
    /// Returns whether no thread has a seat, and none will: waiting threads must end.
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
