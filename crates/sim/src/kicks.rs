//! One interrupt for the wakes of several threads: a kernel's batched kick.
//!
//! ```text
//!   waker:  a thread on its run queue │ the next │ … │ send │ goes on
//!                                                        └── deliver ──┐ handle │ each runs
//! ```

use std::mem::take;

use crate::Wakes;
use crate::events::Event;
use crate::sleep::SleepsOn;
use crate::step::call;
use crate::world::{World, with};

/// Calls `wakes`, whose wakes of threads on other CPUs send no interrupts of their own; then sends
/// one to all other CPUs, if the machine's wakes send interrupts and there was such a wake. Calls
/// are not nested.
pub fn kick_once<R>(wakes: impl FnOnce() -> R) -> R {
    with(|world| {
        let me = world.me();
        world.threads[me].held = Some(Vec::new());
    });
    let result = wakes();
    let held = with(|world| {
        let me = world.me();
        take(&mut world.threads[me].held).unwrap_or_default()
    });
    if !held.is_empty() {
        call(|world| world.machine.interrupt.send_ns);
        with(|world| held.iter().for_each(|&thread| world.kick(thread)));
    }
    result
}

impl World {
    /// Takes a thread out of its sleep, if the running thread holds its kicks back and would send
    /// one. Returns whether it does.
    pub(crate) fn holds_kick(&mut self, thread: usize, on: SleepsOn) -> bool {
        let (me, mine) = (self.me(), self.my_core());
        let kicks = self.machine.interrupt.wakes == Wakes::All && self.threads[thread].core != mine;
        if !kicks || self.threads[me].held.is_none() || !self.ends_sleep(thread, on) {
            return false;
        }
        self.threads[me].held.get_or_insert_default().push(thread);
        true
    }

    /// The interrupt for a thread that was taken out of its sleep.
    fn kick(&mut self, thread: usize) {
        let (mine, core) = (self.my_core(), self.threads[thread].core);
        self.counts.interrupts += 1;
        self.threads[thread].interrupts = true;
        let way_ns = self.machine.deliver_ns(mine, core) + self.machine.interrupt.handle_ns;
        let at_ns = self.now_ns + way_ns + self.lines_to_ns(thread) + self.wake_latency_ns();
        self.events.push(at_ns, Event::Arrive { thread: thread as u32 });
    }
}
