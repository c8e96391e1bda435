//! The simulated operating system: run queues and slices.
//!
//! ```text
//!   Asleep ──arrive──► Ready ──dispatch──► on its core ──► Finished
//!     ▲                  ▲                    │    │
//!     │                  └─────slice over─────┘    │
//!     └──────────────────────park──────────────────┘
//! ```
//!
//! A thread on its core takes a step (an access in flight; never interrupted), computes
//! (interrupted at any instant) or watches a line (spins: it keeps its core, and costs no events
//! until the line changes). Each core has one queue, the highest rank first and equal ranks in
//! order of arrival; a slice ends only while others wait for the core. Threads stay on the core
//! that they were placed on unless the load is [balanced](crate::balance), and a woken thread
//! preempts only a thread of lower rank. All threads have the same rank unless they set another or
//! are lent one.

use std::collections::VecDeque;

use crate::events::Event;
use crate::handler::Handles;
use crate::line::By;
use crate::schedule::Schedule;
use crate::thread::State;
use crate::world::World;

/// One simulated core.
#[derive(Default)]
pub(crate) struct Core {
    pub(crate) current: Option<usize>,
    /// The thread that ran here last: returning to it costs no switch.
    last: Option<usize>,
    pub(crate) queue: VecDeque<usize>,
    pub(crate) handles: Handles,
    /// The schedule that replaces the queue, if there is one.
    pub(crate) schedule: Option<Box<dyn Schedule>>,
    /// Whether the schedule already knows why the current thread does not go on.
    pub(crate) told: bool,
    /// Counts dispatches; voids the ends of earlier slices.
    slice: u32,
    pub(crate) slice_began_ns: u64,
    slice_foreseen: bool,
    /// Whether the slice is over, but the current thread has a step in flight.
    pub(crate) slice_over: bool,
    /// The time since which no thread has wanted the core.
    pub(crate) idle_since_ns: u64,
    /// Of a virtual CPU: the time at which it last got its CPU back.
    pub(crate) back_ns: u64,
}

impl Core {
    /// The number of the core's present slice.
    pub(crate) const fn slice(&self) -> u32 {
        self.slice
    }

    /// Called for a virtual CPU that gets its CPU back from `other`. Its guest's slice goes on, and
    /// its end is to be foreseen anew.
    pub(crate) fn comes_back(&mut self, other: &Self, now_ns: u64, back_ns: u64) {
        self.slice = other.slice.wrapping_add(1);
        (self.slice_foreseen, self.slice_over) = (false, false);
        self.idle_since_ns = other.current.map_or(other.idle_since_ns, |_| now_ns);
        self.back_ns = back_ns;
    }
}

impl World {
    /// Handles events until a thread must run, and returns it. `None` if there are no events, or
    /// none that can end any wait, or the next is later than the end.
    pub(crate) fn next_thread(&mut self) -> Option<usize> {
        while let Some((at_ns, event)) = self.events.pop() {
            if at_ns > self.end_ns {
                return None;
            }
            self.advance(at_ns);
            match event {
                Event::Resume { thread, turn } if self.threads[thread as usize].turn == turn => {
                    let thread = thread as usize;
                    if self.looks_on(thread) || self.watches_on(thread) {
                        continue;
                    }
                    let state = &mut self.threads[thread].state;
                    if matches!(state, State::Computing { .. }) {
                        *state = State::Step;
                    }
                    return Some(thread);
                }
                Event::Served { line } => match self.end_request(line).by {
                    By::Access(thread) if self.looks_on(thread as usize) => {}
                    By::Access(thread) => return Some(thread as usize),
                    By::Buffer(thread) => self.stored(thread as usize),
                    By::Touch(thread) => self.touched(thread, at_ns),
                },
                Event::Stored { thread } => self.stored(thread as usize),
                Event::Arrive { thread } => self.arrive(thread as usize),
                Event::Interrupt { core } => self.interrupted(core),
                Event::Expire { thread, wait } if self.threads[thread as usize].wait == wait => {
                    self.expire(thread as usize);
                }
                Event::Slice { core, slice } if self.cores[core as usize].slice == slice => {
                    if self.waits_for_ever() {
                        return None;
                    }
                    match self.cores[core as usize].current {
                        Some(_) => self.slice_over(core),
                        None => self.ask_again(core),
                    }
                }
                Event::Yield { thread, wait } if self.threads[thread as usize].wait == wait => {
                    if !self.patience_over(thread as usize) {
                        return None;
                    }
                }
                Event::Host { core, slice } => {
                    if !self.host_slice_over(core, slice) {
                        return None;
                    }
                }
                Event::Resume { .. }
                | Event::Expire { .. }
                | Event::Slice { .. }
                | Event::Yield { .. } => {}
            }
        }
        None
    }

    /// Returns whether each unfinished thread waits for another. Without this check, spinners that
    /// share a core would preempt each other for ever.
    pub(crate) fn waits_for_ever(&self) -> bool {
        self.posted == 0
            && self.interrupts_under_way == 0
            && self.threads.iter().all(|thread| match thread.state {
                State::Watching(watch) => watch.deadline_ns.is_none() && !self.has_changed(watch),
                State::Asleep(Some(sleep)) => sleep.deadline_ns.is_none(),
                State::Awaiting | State::Finished => true,
                State::Step
                | State::Computing { .. }
                | State::Rereading(_)
                | State::Asleep(None) => false,
            })
    }

    /// Queues a thread that becomes runnable, or starts it on an idle core.
    fn arrive(&mut self, thread: usize) {
        self.record(thread, 8, 0);
        self.threads[thread].state = State::Step;
        self.threads[thread].wants_since_ns = Some(self.now_ns);
        self.was_interrupted(thread);
        if self.arrives_by_schedule(thread) || self.arrives_off(thread) {
            return;
        }
        let core = self.place(thread);
        self.comes_fairly(thread);
        self.cores[core as usize].queue.push_back(thread);
        if self.cores[core as usize].current.is_none() {
            self.dispatch(core);
        } else {
            self.foresee_slice(core);
            self.foresee_yield(core);
            self.prefer_the_urgent(core);
        }
    }

    /// Gives a free core to the first thread that wants it.
    pub(crate) fn dispatch(&mut self, number: u32) {
        let core = &mut self.cores[number as usize];
        core.slice = core.slice.wrapping_add(1);
        core.slice_foreseen = false;
        core.slice_over = false;
        let was_idle = core.current.is_none();
        let due = core.handles.due.take();
        self.charge(number);
        let next = match self.scheduled(number) {
            Some(next) => next,
            None => due.or_else(|| self.first_in_queue(number)).or_else(|| self.pull(number)),
        };
        let core = &mut self.cores[number as usize];
        core.current = next;
        let Some(thread) = next else {
            core.idle_since_ns = if was_idle { core.idle_since_ns } else { self.now_ns };
            return self.halts(number);
        };
        core.slice_began_ns = self.now_ns.max(core.back_ns);
        if was_idle {
            let idle_ns = self.now_ns - core.idle_since_ns;
            let state = self.machine.idle.iter().rfind(|state| state.after_ns <= idle_ns);
            core.slice_began_ns += state.map_or(0, |state| state.exit_ns);
        }
        if due.is_some() {
            core.slice_began_ns += self.machine.interrupt.handle_ns;
        } else if core.last.replace(thread) != Some(thread) {
            core.slice_began_ns += self.machine.switch_ns;
            self.counts.switches += 1;
        }
        if std::mem::take(&mut self.threads[thread].migrates) {
            core.slice_began_ns += self.machine.migrate_ns;
        }
        let at_ns = core.slice_began_ns;
        self.goes_on(thread, number, at_ns);
    }

    /// Continues, at `at_ns`, a thread that has got a core.
    pub(crate) fn goes_on(&mut self, thread: usize, number: u32, mut at_ns: u64) {
        self.has_waited(thread);
        if let State::Computing { until_ns } = &mut self.threads[thread].state {
            *until_ns += at_ns;
            at_ns = *until_ns;
        }
        self.record(thread, 9, u64::from(number));
        self.spins_again(thread, at_ns);
        self.resume_at(thread, at_ns);
        self.foresee_slice(number);
    }

    /// Charges the thread that has a core for its time until now.
    pub(crate) fn charge(&mut self, number: u32) {
        let core = &self.cores[number as usize];
        if let Some(thread) = core.current {
            // The thread may still have been in the switch to it.
            let had = &mut self.threads[thread];
            had.ran_ns += self.now_ns.saturating_sub(core.slice_began_ns.max(core.back_ns));
            let goes = matches!(had.state, State::Asleep(_) | State::Awaiting | State::Finished);
            had.wants_since_ns = (!goes).then_some(self.now_ns);
            self.charge_fairly(thread);
            if goes {
                self.leaves_fairly(thread);
            }
        }
    }

    /// Notes that a thread that has waited for its core gets it.
    fn has_waited(&mut self, thread: usize) {
        let waiter = &mut self.threads[thread];
        let since_ns = waiter.wants_since_ns.take().unwrap_or(self.now_ns);
        let waited_ns = self.now_ns - since_ns;
        waiter.waited_ns += waited_ns;
        self.came_on(thread, waited_ns);
    }

    fn foresee_slice(&mut self, number: u32) {
        let core = &mut self.cores[number as usize];
        if core.queue.is_empty() || core.slice_foreseen {
            return;
        }
        core.slice_foreseen = true;
        let at_ns = self.now_ns.max(core.slice_began_ns + self.machine.slice_ns);
        self.events.push(at_ns, Event::Slice { core: number, slice: core.slice });
    }

    /// The rest of the running thread's slice; nothing ends it while no other thread wants its
    /// core.
    pub(crate) fn slice_left_ns(&self) -> u32 {
        let core = &self.cores[self.my_core() as usize];
        if core.queue.is_empty() {
            return self.host_slice_left_ns();
        }
        let end_ns = core.slice_began_ns + self.machine.slice_ns;
        let left_ns = u32::try_from(end_ns.saturating_sub(self.now_ns)).unwrap_or(u32::MAX);
        left_ns.min(self.host_slice_left_ns())
    }

    /// Returns whether that thread has its core.
    pub(crate) fn has_its_core(&self, thread: usize) -> bool {
        self.cores[self.threads[thread].core as usize].current == Some(thread)
    }

    pub(crate) fn slice_over(&mut self, number: u32) {
        let core = &mut self.cores[number as usize];
        let Some(thread) = core.current else { return };
        if matches!(self.threads[thread].state, State::Step | State::Rereading(_)) {
            // An access in flight completes first: no other thread may run between the transfer of
            // a line and the change of its value.
            core.slice_over = true;
        } else {
            self.preempt(thread);
        }
    }

    /// Called between two steps of the running thread: makes up for interrupts, or gives the core
    /// up if the slice is over. If it returns `true`, the caller must suspend, and call it again.
    #[must_use]
    pub(crate) fn yields_core(&mut self) -> bool {
        let me = self.me();
        let thread = &mut self.threads[me];
        if thread.stolen_ns > 0 {
            let at_ns = self.now_ns + std::mem::take(&mut thread.stolen_ns);
            self.resume_at(me, at_ns);
            return true;
        }
        let due = self.cores[self.threads[me].core as usize].slice_over;
        if due {
            self.preempt(me);
        }
        due
    }

    /// Moves the thread that has its core to the end of the queue, or to an idle core; to the front
    /// if it only waits for the handling of an interrupt.
    pub(crate) fn preempt(&mut self, thread: usize) {
        self.record(thread, 10, 0);
        let now_ns = self.now_ns;
        let preempted = &mut self.threads[thread];
        // Voids its future events: the end of its computing, or its answer to a change.
        preempted.turn = preempted.turn.wrapping_add(1);
        if let State::Computing { until_ns } = &mut preempted.state {
            // The thread may be preempted during the switch to it.
            *until_ns = until_ns.saturating_sub(now_ns);
        }
        let core = preempted.core;
        if self.loses_cpu(thread) {
            return;
        }
        if self.cores[core as usize].schedule.is_some() {
            self.counts.preemptions += 1;
            return self.dispatch(core);
        }
        if self.cores[core as usize].handles.due.is_some() {
            self.cores[core as usize].queue.push_front(thread);
            return self.dispatch(core);
        }
        self.counts.preemptions += 1;
        let to = self.place(thread);
        self.cores[to as usize].queue.push_back(thread);
        if to != core {
            self.dispatch(to);
        }
        self.dispatch(core);
    }

    /// Finishes a thread whose coroutine has returned.
    pub(crate) fn finish(&mut self, thread: usize) {
        self.record(thread, 12, 0);
        self.threads[thread].state = State::Finished;
        let core = self.threads[thread].core;
        self.dispatch(core);
    }
}
