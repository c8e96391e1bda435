//! The simulated operating system: run queues, slices, sleeping and waking.
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
//! until the line changes). Each core has one queue, the highest rank first and equals as they
//! came; a slice ends only while others wait for the core. Threads stay on the core that they were
//! placed on unless the load is [balanced](crate::balance), and a woken thread preempts only one of
//! a lower rank. All have the same rank unless they say otherwise, or are lent another.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::rc::Rc;

use antiphon_platform::{Local, RANK};
use corosensei::Yielder;

use crate::buffer::Buffer;
use crate::events::Event;
use crate::handler::Handles;
use crate::line::By;
use crate::random::Random;
use crate::spin::Spin;
use crate::step::{Touch, call};
use crate::watch::{Look, Watch};
use crate::world::{World, suspend, with};
use crate::{OwnLine, Owns, Sim};

/// What a thread does when it has its core, or will do when it gets it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Takes a step.
    Step,
    /// Computes; while it is off its core, `until_ns` is what is left.
    Computing { until_ns: u64 },
    /// Spins on a line.
    Watching(Watch),
    /// Spins, and the line has changed: it is read again. As a step it is not interrupted.
    Rereading(Watch),
    /// Sleeps, or has not started.
    Asleep(Option<Sleep>),
    /// Handles interrupts, and there is none.
    Awaiting,
    /// Is over.
    Finished,
}

impl State {
    /// Whether it waits without giving its core away.
    pub(crate) fn spins(self) -> bool {
        matches!(self, Self::Watching(_) | Self::Rereading(_))
    }
}

/// A sleep in `park`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sleep {
    /// The address of the waiter's node. Compared only: its value is the host's.
    pub(crate) node: usize,
    pub(crate) deadline_ns: Option<u64>,
}

/// One simulated thread.
pub(crate) struct Thread {
    pub(crate) core: u32,
    /// It stays there.
    pub(crate) pinned: bool,
    pub(crate) state: State,
    /// Which of its foreseen turns is valid.
    pub(crate) turn: u32,
    /// Which of its waits this is; voids the deadlines of earlier ones.
    pub(crate) wait: u32,
    /// When it last ran again after a sleep; 0 if it never slept.
    pub(crate) up_ns: u64,
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) local: Rc<OwnLine<Local<Sim>>>,
    pub(crate) random: Random,
    pub(crate) operations: u64,
    /// How urgent it is by itself.
    pub(crate) rank: u8,
    /// What it was lent: how often, and the highest.
    loans: u32,
    lent: u8,
    /// Whether it owns a lock, as far as it has said so.
    pub(crate) owns: Owns,
    /// It is about to wake another.
    pub(crate) wakes: bool,
    /// What it does to words is the platform's doing.
    pub(crate) uncounted: bool,
    pub(crate) buffer: Buffer,
    pub(crate) touch: Touch,
    /// While the thread spins: its own look, which the event loop takes in its place.
    pub(crate) look: Option<NonNull<Look<'static>>>,
    /// What that has found, if it ends the wait.
    pub(crate) found: Option<u64>,
    pub(crate) spin: Spin,
    /// How many spins it has begun and not ended, as it has said.
    pub(crate) spins: u32,
    /// It has given its core away itself.
    pub(crate) yielded: bool,
    /// What its accesses have taken and simulated time does not show yet, in picoseconds.
    pub(crate) rest_ps: i64,
    /// What interrupts have taken from it, to be made up for.
    pub(crate) stolen_ns: u64,
    /// It is new on its core.
    pub(crate) migrates: bool,
    /// It was woken by an interrupt.
    pub(crate) interrupts: bool,
}

impl Thread {
    pub(crate) fn new(core: u32, pinned: bool, random: Random) -> Self {
        Self {
            core,
            pinned,
            state: State::Asleep(None),
            turn: 0,
            wait: 0,
            up_ns: 0,
            yielder: std::ptr::null(),
            local: Rc::new(OwnLine(Local::NEW)),
            random,
            operations: 0,
            rank: RANK,
            loans: 0,
            lent: 0,
            owns: Owns::No,
            wakes: false,
            uncounted: false,
            buffer: Buffer::default(),
            touch: Touch::default(),
            look: None,
            found: None,
            spin: Spin::default(),
            spins: 0,
            yielded: false,
            rest_ps: 0,
            stolen_ns: 0,
            migrates: false,
            interrupts: false,
        }
    }

    /// How urgent it is, with what it was lent.
    pub(crate) fn effective_rank(&self) -> u8 {
        self.rank.max(if self.loans > 0 { self.lent } else { 0 })
    }
}

/// One simulated core.
#[derive(Default)]
pub(crate) struct Core {
    pub(crate) current: Option<usize>,
    /// Who ran here last: going back to it is no switch.
    last: Option<usize>,
    pub(crate) queue: VecDeque<usize>,
    pub(crate) handles: Handles,
    /// Counts dispatches; voids the ends of earlier slices.
    slice: u32,
    pub(crate) slice_began_ns: u64,
    slice_foreseen: bool,
    /// The slice is over, but the current thread has a step in flight.
    pub(crate) slice_over: bool,
    /// Since when nobody has wanted it.
    pub(crate) idle_since_ns: u64,
}

/// Sleeps until woken or until the deadline comes; not at all if `awake` says so once the thread
/// is committed to sleep.
pub(crate) fn sleep(sleep: Sleep, awake: impl FnOnce() -> bool) {
    call(|world| world.machine.park_ns);
    if awake() {
        return;
    }
    with(|world| world.fall_asleep(sleep));
    suspend();
}

impl World {
    /// Handles events until a thread is to run, and returns it. `None`: nothing will ever happen,
    /// or nothing that can end any wait, or it is later than the end.
    pub(crate) fn next_thread(&mut self) -> Option<usize> {
        while let Some((at_ns, event)) = self.events.pop() {
            if at_ns > self.end_ns {
                return None;
            }
            self.now_ns = at_ns;
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
                    self.slice_over(core);
                }
                Event::Yield { thread, wait } if self.threads[thread as usize].wait == wait => {
                    if !self.patience_over(thread as usize) {
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

    /// Whether each thread that is not over waits for another. Without this, spinners that share a
    /// core would preempt each other for ever.
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

    /// A thread wants its core.
    fn arrive(&mut self, thread: usize) {
        self.record(thread, 8, 0);
        self.threads[thread].state = State::Step;
        self.was_interrupted(thread);
        let core = self.place(thread);
        self.cores[core as usize].queue.push_back(thread);
        if self.cores[core as usize].current.is_none() {
            self.dispatch(core);
        } else {
            self.foresee_slice(core);
            self.foresee_yield(core);
            self.prefer_the_urgent(core);
        }
    }

    /// Gives a core that nobody has to the first who wants it.
    pub(crate) fn dispatch(&mut self, number: u32) {
        let core = &mut self.cores[number as usize];
        core.slice = core.slice.wrapping_add(1);
        core.slice_foreseen = false;
        core.slice_over = false;
        let was_idle = core.current.is_none();
        let due = core.handles.due.take();
        let next = due.or_else(|| self.first_in_queue(number)).or_else(|| self.pull(number));
        let core = &mut self.cores[number as usize];
        core.current = next;
        let Some(thread) = next else {
            core.idle_since_ns = if was_idle { core.idle_since_ns } else { self.now_ns };
            return;
        };
        core.slice_began_ns = self.now_ns;
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
        let mut at_ns = core.slice_began_ns;
        if let State::Computing { until_ns } = &mut self.threads[thread].state {
            *until_ns += at_ns;
            at_ns = *until_ns;
        }
        self.record(thread, 9, u64::from(number));
        self.spins_again(thread, at_ns);
        self.resume_at(thread, at_ns);
        self.foresee_slice(number);
    }

    /// Takes the most urgent thread that waits for a core, the first of those that are equally so.
    fn first_in_queue(&mut self, number: u32) -> Option<usize> {
        let queue = &mut self.cores[number as usize].queue;
        let ranks = queue.iter().map(|&thread| self.threads[thread].effective_rank());
        let first = ranks.enumerate().max_by_key(|&(place, rank)| (rank, Reverse(place)));
        first.and_then(|(place, _)| queue.remove(place))
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

    /// What is left of the running thread's slice; nothing ends it while nobody else wants its
    /// core.
    pub(crate) fn slice_left_ns(&self) -> u32 {
        let core = &self.cores[self.my_core() as usize];
        if core.queue.is_empty() {
            return u32::MAX;
        }
        let end_ns = core.slice_began_ns + self.machine.slice_ns;
        u32::try_from(end_ns.saturating_sub(self.now_ns)).unwrap_or(u32::MAX)
    }

    /// Whether that thread runs.
    pub(crate) fn has_its_core(&self, thread: usize) -> bool {
        self.cores[self.threads[thread].core as usize].current == Some(thread)
    }

    pub(crate) fn slice_over(&mut self, number: u32) {
        let core = &mut self.cores[number as usize];
        let Some(thread) = core.current else { return };
        if matches!(self.threads[thread].state, State::Step | State::Rereading(_)) {
            // An access in flight completes first: between the moment at which a line changes
            // hands and the one at which its value does, nobody else may come in.
            core.slice_over = true;
        } else {
            self.preempt(thread);
        }
    }

    /// Ends the slice of a thread that keeps its core from a more urgent one.
    fn prefer_the_urgent(&mut self, number: u32) {
        let core = &self.cores[number as usize];
        let rank = |&thread: &usize| self.threads[thread].effective_rank();
        let (current, waiting) =
            (core.current.as_ref().map(rank), core.queue.iter().map(rank).max());
        if current.is_some() && current < waiting {
            self.slice_over(number);
        }
    }

    /// The rank of a thread has changed, or what it was lent.
    fn reconsider(&mut self, thread: usize) {
        if self.threads[thread].state != State::Finished {
            self.prefer_the_urgent(self.threads[thread].core);
        }
    }

    /// A thread is lent a rank once more.
    pub(crate) fn lend(&mut self, thread: usize, rank: u8) {
        let to = &mut self.threads[thread];
        to.lent = if to.loans > 0 { to.lent.max(rank) } else { rank };
        to.loans += 1;
        self.reconsider(thread);
    }

    /// A loan to a thread has ended.
    pub(crate) fn reclaim(&mut self, thread: usize) {
        let to = &mut self.threads[thread];
        assert!(to.loans > 0, "what was not lent is given back");
        to.loans -= 1;
        self.reconsider(thread);
    }

    /// The running thread is as urgent as that from now on.
    pub(crate) fn set_rank(&mut self, rank: u8) {
        let me = self.me();
        self.threads[me].rank = rank;
        self.reconsider(me);
    }

    /// Between two steps of the running thread: makes up for interrupts, or gives the core up if
    /// the slice is over. The caller must then suspend, and ask again.
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
    /// if it goes on as soon as an interrupt has been handled.
    pub(crate) fn preempt(&mut self, thread: usize) {
        self.record(thread, 10, 0);
        let now_ns = self.now_ns;
        let preempted = &mut self.threads[thread];
        // Voids what is foreseen for it: the end of its computing, or its answer to a change.
        preempted.turn = preempted.turn.wrapping_add(1);
        if let State::Computing { until_ns } = &mut preempted.state {
            // It may be preempted in the very switch to it.
            *until_ns = until_ns.saturating_sub(now_ns);
        }
        let core = preempted.core;
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

    pub(crate) fn foresee_expiry(&mut self, thread: usize, deadline_ns: Option<u64>) {
        self.threads[thread].wait = self.threads[thread].wait.wrapping_add(1);
        if let Some(deadline_ns) = deadline_ns {
            let wait = self.threads[thread].wait;
            let event = Event::Expire { thread: thread as u32, wait };
            self.events.push(deadline_ns.max(self.now_ns), event);
        }
    }

    fn expire(&mut self, thread: usize) {
        match self.threads[thread].state {
            State::Watching(_) => self.resume_if_current(thread),
            State::Asleep(_) => self.wake(thread, 0),
            State::Step
            | State::Rereading(_)
            | State::Computing { .. }
            | State::Awaiting
            | State::Finished => {}
        }
    }

    pub(crate) fn fall_asleep(&mut self, sleep: Sleep) {
        let me = self.me();
        self.counts.parks += 1;
        self.record(me, 11, 0);
        self.threads[me].state = State::Asleep(Some(sleep));
        let before = self.sleepers.insert(sleep.node, me);
        assert_eq!(before, None, "a node belongs to one waiter");
        self.foresee_expiry(me, sleep.deadline_ns);
        let core = self.threads[me].core;
        self.dispatch(core);
    }

    /// Makes a sleeping thread want its core, some time from now; so much later at least.
    fn wake(&mut self, thread: usize, later_ns: u64) {
        let sleeper = &mut self.threads[thread];
        let State::Asleep(Some(sleep)) = sleeper.state else { return };
        sleeper.wait = sleeper.wait.wrapping_add(1);
        sleeper.state = State::Asleep(None);
        self.sleepers.remove(&sleep.node);
        self.counts.wakes += 1;
        let jitter_ns = self.random.up_to(self.machine.wake_jitter_ns);
        let at_ns = self.now_ns + later_ns + self.machine.wake_latency_ns + jitter_ns;
        self.events.push(at_ns, Event::Arrive { thread: thread as u32 });
    }

    /// Wakes who sleeps on a node, if somebody does. Returns what an interrupt takes the waker.
    pub(crate) fn wake_node(&mut self, node: usize) -> u64 {
        let Some(&thread) = self.sleepers.get(&node) else { return 0 };
        let (send_ns, later_ns) = self.interrupt_to_wake(thread).unwrap_or((0, 0));
        self.wake(thread, later_ns);
        send_ns
    }

    /// The caller runs again after a sleep.
    pub(crate) fn comes_up(&mut self) {
        let me = self.me();
        self.threads[me].up_ns = self.now_ns;
    }

    /// When the caller last ran again after a sleep.
    pub(crate) fn up_ns(&self) -> u64 {
        self.threads[self.me()].up_ns
    }

    /// The coroutine of a thread has returned.
    pub(crate) fn finish(&mut self, thread: usize) {
        self.record(thread, 12, 0);
        self.threads[thread].state = State::Finished;
        let core = self.threads[thread].core;
        self.dispatch(core);
    }
}
