//! The locks on a stub of bare metal: statics, spins, and nothing else.

mod common;

use antiphon_platform::Platform;
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin, Ticket};
use common::metal::{CPUS, Metal, boot};
use common::validate::{Guarded, exclusion};

fn validate<L: Lock>(guarded: &Guarded<L>) {
    // Two CPUs of two sockets: on a machine of two real ones, four spinners would take minutes.
    let rounds = if cfg!(miri) { 50 } else { 20_000 };
    exclusion(guarded, 2, rounds, |number| boot(number * (CPUS / 2)));
}

#[test]
fn statics_are_free_locks() {
    static TICKET: Guarded<Ticket<Metal>> = Guarded::new();
    static SPIN: Guarded<ShflSpin<Metal>> = Guarded::new();
    static MUTEX: Guarded<ShflMutex<Metal>> = Guarded::new();
    validate(&TICKET);
    validate(&SPIN);
    validate(&MUTEX);
    assert!(Metal::arena().high_water() < 63);
}
