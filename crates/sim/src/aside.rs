//! Sleeping and waking that cost nothing: for experiments that ask what is left when waiting for a
//! lock is free. Programs sleep by [`Platform::park`](antiphon_platform::Platform::park).

use crate::events::Event;
use crate::sleep::{Sleep, SleepsOn};
use crate::thread::State;
use crate::world::{World, suspend, with};

/// A thread of the running simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aside(usize);

/// The calling thread, for threads that are to call it back.
#[must_use]
pub fn aside() -> Aside {
    Aside(with(|world| world.me()))
}

/// The calling thread gives its core to others at once, until it is [called back](call_back). Costs
/// nothing, but what it costs the core to go to another thread.
pub fn step_aside() {
    with(|world| world.fall_asleep(ASIDE));
    suspend();
}

/// Lets a thread that [stepped aside](step_aside) want its core again at once; does nothing if it
/// has not. Costs nothing.
pub fn call_back(thread: Aside) {
    with(|world| world.call_back(thread.0));
}

const ASIDE: Sleep = Sleep { on: SleepsOn::Nothing, deadline_ns: None };

impl World {
    fn call_back(&mut self, thread: usize) {
        if self.threads[thread].state == State::Asleep(Some(ASIDE)) {
            self.counts.wakes += 1;
            self.threads[thread].state = State::Asleep(None);
            // A core that was idle meanwhile is as one that was not.
            let core = self.threads[thread].core;
            self.cores[core as usize].idle_since_ns = self.now_ns;
            self.events.push(self.now_ns, Event::Arrive { thread: thread as u32 });
        }
    }
}
