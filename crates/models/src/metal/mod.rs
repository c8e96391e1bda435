//! Models of what CPUs share on bare metal: the code of `antiphon-wakeup`, with a thread for each
//! CPU, and another for the handler of a CPU where that may interrupt the thread.

mod broadcast;
mod caller;
mod cpu;
mod idle;
mod inbox;
mod pending;
mod sleep;
mod slot;
mod table;
mod token;

use crate::entry::Entry;

pub fn entries() -> Vec<Entry> {
    [
        inbox::entries(),
        token::entries(),
        pending::entries(),
        slot::entries(),
        table::entries(),
        broadcast::entries(),
        sleep::entries(),
        idle::entries(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
