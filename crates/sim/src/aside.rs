//! Sleeping and waking without cost, for experiments that measure the remaining costs if waiting
//! for a lock were free. Programs sleep by [`Platform::park`](antiphon_platform::Platform::park).

use crate::events::Event;
use crate::sleep::{Sleep, SleepsOn};
use crate::thread::State;
use crate::world::{World, suspend, with};

/// A thread of the running simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aside(usize);

/// A handle of the calling thread, for threads that will call it back.
#[must_use]
pub fn aside() -> Aside {
    Aside(with(|world| world.me()))
}

/// Gives the caller's core to other threads at once, until the caller is [called back](call_back).
/// Costs nothing except the core's switch to another thread.
pub fn step_aside() {
    with(|world| world.fall_asleep(ASIDE));
    suspend();
}

/// Makes a thread that has [stepped aside](step_aside) runnable at once; does nothing if it has
/// not. Costs nothing.
pub fn call_back(thread: Aside) {
    with(|world| world.call_back(thread.0));
}

const ASIDE: Sleep = Sleep { on: SleepsOn::Nothing, deadline_ns: None };

impl World {
    fn call_back(&mut self, thread: usize) {
        if self.threads[thread].state == State::Asleep(Some(ASIDE)) {
            self.counts.wakes += 1;
            self.threads[thread].state = State::Asleep(None);
            // The core counts as not having been idle meanwhile.
            let core = self.threads[thread].core;
            self.cores[core as usize].idle_since_ns = self.now_ns;
            self.events.push(self.now_ns, Event::Arrive { thread: thread as u32 });
        }
    }
}
