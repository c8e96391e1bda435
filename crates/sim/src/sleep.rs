//! Sleeping and waking: their costs, and the time at which a woken thread runs again.

use crate::events::Event;
use crate::line::LineId;
use crate::step::call;
use crate::thread::State;
use crate::world::{World, suspend, with};

/// The sleep of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sleep {
    pub(crate) on: SleepsOn,
    pub(crate) deadline_ns: Option<u64>,
}

/// The event that ends a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepsOn {
    /// An unpark of the node at this address. Only compared: its value depends on the host.
    Node(usize),
    /// A wake of a word; `number` counts all such sleeps.
    Word { line: LineId, offset: u8, number: u64 },
    /// A call by a thread that knows the sleeper.
    Nothing,
}

/// Spends `ns`, and then sleeps until a wake or the deadline, unless `awake` returns `true` by
/// then.
pub(crate) fn sleep(
    sleep: Sleep,
    ns: impl FnOnce(&mut World) -> u64,
    awake: impl FnOnce() -> bool,
) {
    let deadline_ns = sleep.deadline_ns;
    call(|world| ns(world) + world.tell_release_ns(deadline_ns));
    if !awake() {
        with(|world| world.fall_asleep(sleep));
        suspend();
    }
    with(World::comes_up);
}

impl World {
    pub(crate) fn foresee_expiry(&mut self, thread: usize, deadline_ns: Option<u64>) {
        self.threads[thread].wait = self.threads[thread].wait.wrapping_add(1);
        if let Some(deadline_ns) = deadline_ns {
            let wait = self.threads[thread].wait;
            let event = Event::Expire { thread: thread as u32, wait };
            self.events.push(deadline_ns.max(self.now_ns), event);
        }
    }

    pub(crate) fn expire(&mut self, thread: usize) {
        match self.threads[thread].state {
            State::Watching(_) => self.resume_if_current(thread),
            State::Asleep(_) => {
                let latency_ns = self.wake_latency_ns();
                self.threads[thread].due = true;
                self.wake(thread, latency_ns);
            }
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
        if let SleepsOn::Node(node) = sleep.on {
            let before = self.sleepers.insert(node, me);
            assert_eq!(before, None, "a node belongs to one waiter");
        }
        self.foresee_expiry(me, sleep.deadline_ns);
        let core = self.threads[me].core;
        self.dispatch(core);
    }

    /// The time from a wake until the woken thread wants its core.
    pub(crate) fn wake_latency_ns(&mut self) -> u64 {
        self.machine.wake_latency_ns + self.random.up_to(self.machine.wake_jitter_ns)
    }

    /// Makes a sleeping thread runnable, `later_ns` from now.
    fn wake(&mut self, thread: usize, later_ns: u64) {
        let State::Asleep(Some(sleep)) = self.threads[thread].state else { return };
        if self.ends_sleep(thread, sleep.on) {
            self.events.push(self.now_ns + later_ns, Event::Arrive { thread: thread as u32 });
        }
    }

    /// Ends a thread's sleep, if it sleeps on `on`; returns whether it did. The caller has it
    /// arrive.
    pub(crate) fn ends_sleep(&mut self, thread: usize, on: SleepsOn) -> bool {
        let sleeper = &mut self.threads[thread];
        let State::Asleep(Some(sleep)) = sleeper.state else { return false };
        if sleep.on != on {
            return false;
        }
        sleeper.wait = sleeper.wait.wrapping_add(1);
        sleeper.state = State::Asleep(None);
        if let SleepsOn::Node(node) = sleep.on {
            self.sleepers.remove(&node);
        }
        self.counts.wakes += 1;
        true
    }

    /// Wakes the thread that sleeps on a node, if any. Returns the waker's cost of an interrupt.
    pub(crate) fn wake_node(&mut self, node: usize) -> u64 {
        let sleeper = self.sleepers.get(&node).copied();
        sleeper.map_or(0, |thread| self.wake_from(thread, SleepsOn::Node(node)))
    }

    /// Wakes a thread if it sleeps on `on`. Returns the waker's cost of an interrupt.
    pub(crate) fn wake_from(&mut self, thread: usize, on: SleepsOn) -> u64 {
        if !matches!(self.threads[thread].state, State::Asleep(Some(sleep)) if sleep.on == on) {
            return 0;
        }
        let back_ns = self.lines_to_ns(thread);
        if self.holds_kick(thread, on) {
            return 0;
        }
        let (send_ns, later_ns) = self.interrupt_to_wake(thread).unwrap_or((0, 0));
        // A waker on the same core puts the thread into the queue itself.
        let here = self.model.fair && self.threads[thread].core == self.my_core();
        let latency_ns = if here { 0 } else { self.wake_latency_ns() };
        self.wake(thread, later_ns + back_ns + latency_ns);
        send_ns
    }

    /// The cost to the waker of the lines of the run queue of the thread that sleeps on a node.
    pub(crate) fn run_queue_ns(&self, node: usize) -> u64 {
        self.sleepers.get(&node).map_or(0, |&thread| self.lines_to_ns(thread))
    }

    /// The cost of the lines of a thread's run queue, from its CPU to the running thread's, or
    /// back.
    pub(crate) fn lines_to_ns(&self, thread: usize) -> u64 {
        let (mine, core) = (self.my_core(), self.threads[thread].core);
        let lines = u64::from(self.machine.wake_lines);
        if lines == 0 || mine == core { 0 } else { lines * self.machine.transfer_ns(core, mine) }
    }

    /// Notes that the caller runs again after a sleep.
    fn comes_up(&mut self) {
        let me = self.me();
        self.threads[me].up_ns = self.now_ns;
    }

    /// The time at which the caller last ran again after a sleep.
    pub(crate) fn up_ns(&self) -> u64 {
        self.threads[self.me()].up_ns
    }
}
