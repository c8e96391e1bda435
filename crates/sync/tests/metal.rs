//! Tests of the locks on a stub of bare metal: only statics and spins.

mod common;

use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};
use common::metal::{CPUS, Metal, arena, boot};
use common::validate::{Guarded, exclusion};

fn validate<L: Lock>(guarded: &Guarded<L>) {
    // Two CPUs of two sockets: on a machine with two real CPUs, four spinners would take minutes.
    let rounds = if cfg!(miri) { 50 } else { 20_000 };
    exclusion(guarded, 2, rounds, |number| boot(number * (CPUS / 2)));
}

/// Tests the locks one after the other, because the number of CPUs to play is limited.
macro_rules! validate_statics {
    ($($lock:ty),+) => {
        $({
            static LOCK: Guarded<$lock> = Guarded::new();
            validate(&LOCK);
        })+
    };
}

#[test]
fn statics_are_free_locks() {
    validate_statics!(ShflSpin<Metal>, ShflMutex<Metal>);
    assert!(arena().high_water() < 63);
}
