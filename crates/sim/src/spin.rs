//! The timing of a spinning thread: when it loads its word, and when it yields.
//!
//! A waiter behaves as in the Linux back end. Between two loads it pauses
//! ([`look_ns`](crate::Machine::look_ns)), with backoff for longer and longer; so the next load
//! sees a write, and until then the writer keeps the line. An unbounded wait calls `sched_yield`
//! after each [`Budget::PATIENCE`]:
//!
//! ```text
//!   begun         patience over                back
//!     │ looks … looks │ yields: others run      │ looks … looks │ …     others want the core
//!     │ looks … looks │ yield_ns │ looks … looks │ yield_ns │ …         no other does
//! ```
//!
//! A thread that yields goes behind all waiting threads of its rank or higher, at the cost of a
//! switch; if there are none, the call returns after [`yield_ns`](crate::Machine::yield_ns). A
//! thread that loses its core at the end of a slice finds its patience spent when it runs again,
//! and yields before it loads its word.
//!
//! Unsuccessful loads and calls cost no events, because their times are known in advance.

use antiphon_platform::Budget;

use crate::events::Event;
use crate::thread::State;
use crate::watch::Watch;
use crate::world::World;

const PATIENCE_NS: u64 = Budget::PATIENCE.ns as u64;

/// The spin of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spin {
    /// The time of the thread's first load.
    pub(crate) begun_ns: u64,
    /// The time of the thread's next yield; `None` if its wait is bounded.
    pub(crate) patient_until_ns: Option<u64>,
    /// The first distance between two loads, if the spin backs off.
    pub(crate) backoff_ns: Option<u32>,
    /// The time of the scheduled end of its patience.
    foreseen_ns: Option<u64>,
}

impl Spin {
    /// Creates a spin that begins now.
    pub(crate) fn new(now_ns: u64, ends: bool, backoff_ns: Option<u32>) -> Self {
        let patient_until_ns = (!ends).then(|| now_ns + PATIENCE_NS);
        Self { begun_ns: now_ns, patient_until_ns, backoff_ns, foreseen_ns: None }
    }

    /// The time of the first load at or after `now_ns`, if loads are at least `look_ns` apart.
    fn look_ns(&self, now_ns: u64, look_ns: u64, yield_ns: u64) -> u64 {
        let since_ns = now_ns.saturating_sub(self.begun_ns);
        let gap_ns = match self.backoff_ns {
            Some(first_ns) => {
                let first_ns = u64::from(first_ns).max(look_ns).max(1);
                // Doubles each time; 2^63 ns means for ever.
                first_ns.saturating_mul(since_ns.div_ceil(first_ns).max(1).next_power_of_two())
            }
            None if look_ns == 0 => since_ns,
            None => since_ns.next_multiple_of(look_ns),
        };
        let at_ns = self.begun_ns.saturating_add(gap_ns);
        match self.patient_until_ns {
            // During a call that finds no other thread, the spinner does not load its word.
            Some(until_ns) if at_ns >= until_ns => {
                let into_ns = (at_ns - until_ns) % (yield_ns + PATIENCE_NS);
                at_ns + yield_ns.saturating_sub(into_ns)
            }
            _ => at_ns,
        }
    }
}

impl World {
    /// The end of a spin that begins now. It ends with a load.
    pub(crate) fn spin_end_ns(&self, budget: Budget) -> u64 {
        let (budget_ns, look_ns) = (u64::from(budget.ns), self.machine.look_ns);
        let spin_ns = if look_ns == 0 { budget_ns } else { budget_ns.next_multiple_of(look_ns) };
        self.now_ns + spin_ns
    }

    /// The time of a spinning thread's next load, in the present state.
    pub(crate) fn next_look_ns(&self, thread: usize, watch: Watch) -> u64 {
        let spin = &self.threads[thread].spin;
        let at_ns = spin.look_ns(self.now_ns, self.machine.look_ns, self.machine.yield_ns);
        watch.deadline_ns.map_or(at_ns, |deadline_ns| at_ns.min(deadline_ns)).max(self.now_ns)
    }

    /// Schedules the next yield of a spinner on a core that others want.
    pub(crate) fn foresee_yield(&mut self, number: u32) {
        let core = &self.cores[number as usize];
        let wanted = !core.queue.is_empty() || self.knows_rivals(number);
        let Some(thread) = core.current.filter(|_| wanted) else { return };
        let spinner = &mut self.threads[thread];
        if !matches!(spinner.state, State::Watching(_) | State::Rereading(_)) {
            return;
        }
        let Some(until_ns) = spinner.spin.patient_until_ns else { return };
        if spinner.spin.foreseen_ns == Some(until_ns) {
            return;
        }
        // Skips calls that found no other thread.
        let turn_ns = PATIENCE_NS + self.machine.yield_ns;
        let calls = self.now_ns.saturating_sub(until_ns).div_ceil(turn_ns);
        let until_ns = until_ns + calls * turn_ns;
        spinner.spin.patient_until_ns = Some(until_ns);
        spinner.spin.foreseen_ns = Some(until_ns);
        let event = Event::Yield { thread: thread as u32, wait: spinner.wait };
        self.events.push(until_ns, event);
    }

    /// Handles the end of a spinner's patience, if it is still the scheduled one. Returns `false`
    /// if all threads wait for ever.
    #[must_use]
    pub(crate) fn patience_over(&mut self, thread: usize) -> bool {
        let spinner = &mut self.threads[thread];
        let current = self.cores[spinner.core as usize].current == Some(thread);
        if current && spinner.spin.foreseen_ns == Some(self.now_ns) {
            spinner.spin.foreseen_ns = None;
            // A pending load comes first.
            if matches!(spinner.state, State::Watching(_)) {
                self.yields_spinning(thread);
            }
        }
        !(self.counts.yields.is_multiple_of(self.threads.len() as u64) && self.waits_for_ever())
    }

    /// Yields the core of a spinner whose patience is over, if another thread wants it. Returns
    /// whether the spinner has lost its core.
    pub(crate) fn yields_spinning(&mut self, thread: usize) -> bool {
        let spinner = &self.threads[thread];
        let (number, rank) = (spinner.core, spinner.effective_rank());
        let core = &self.cores[number as usize];
        let over = spinner.spin.patient_until_ns.is_some_and(|until_ns| until_ns <= self.now_ns);
        if !over {
            return false;
        }
        if core.queue.is_empty() {
            return self.yields_cpu(thread);
        }
        if core.queue.iter().all(|&other| self.threads[other].effective_rank() < rank) {
            self.spins_on(thread);
            self.foresee_yield(number);
            return false;
        }
        self.counts.yields += 1;
        self.record(thread, 14, 0);
        let spinner = &mut self.threads[thread];
        spinner.turn = spinner.turn.wrapping_add(1);
        spinner.yielded = true;
        self.cores[number as usize].queue.push_back(thread);
        self.dispatch(number);
        true
    }

    /// Lets a spinner that gives its core away in vain spin for as long again: the call returns at
    /// once.
    pub(crate) fn spins_on(&mut self, thread: usize) {
        let until_ns = self.now_ns + self.machine.yield_ns + PATIENCE_NS;
        self.threads[thread].spin.patient_until_ns = Some(until_ns);
    }

    /// Continues a spinner that is back on its core at `at_ns`.
    pub(crate) fn spins_again(&mut self, thread: usize, at_ns: u64) {
        let spinner = &mut self.threads[thread];
        let yielded = std::mem::take(&mut spinner.yielded);
        let spin = &mut spinner.spin;
        if spin.patient_until_ns.is_some() && matches!(spinner.state, State::Watching(_)) {
            spin.begun_ns = at_ns;
            spin.patient_until_ns = Some(at_ns + if yielded { PATIENCE_NS } else { 0 });
            spin.foreseen_ns = None;
        }
    }
}
