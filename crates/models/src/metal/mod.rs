//! Models of what CPUs share on bare metal: the code of `antiphon-wakeup`, with a thread for each
//! CPU, and another for the handler of a CPU where that may interrupt the thread.

mod broadcast;
mod caller;
mod channel;
mod cpu;
mod direct;
mod idle;
mod inbox;
mod kicks;
mod pending;
mod percpu;
mod sleep;
mod slot;
mod table;
mod threads;
mod token;

use crate::entry::{Entry, all_of};

pub fn entries() -> Vec<Entry> {
    all_of([
        inbox::entries(),
        token::entries(),
        pending::entries(),
        slot::entries(),
        table::entries(),
        broadcast::entries(),
        direct::entries(),
        sleep::entries(),
        idle::entries(),
        threads::entries(),
        kicks::entries(),
        percpu::entries(),
        channel::entries(),
    ])
}
