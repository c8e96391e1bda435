//! The locks to compare with on a stub of bare metal: statics, spins, and nothing else.

#[path = "../../sync/tests/common/mod.rs"]
mod common;

use antiphon_rivals::classic;
use antiphon_rivals::numa::{Ahmcs, CTktMcs, Cna, Hclh, Hmcs};
use antiphon_sync::lock::Lock;
use common::metal::{CPUS, Metal, arena, boot};
use common::validate::{Guarded, exclusion};

fn validate<L: Lock>(guarded: &Guarded<L>) {
    // Two CPUs of two sockets: on a machine of two real ones, four spinners would take minutes.
    let rounds = if cfg!(miri) { 50 } else { 20_000 };
    exclusion(guarded, 2, rounds, |number| boot(number * (CPUS / 2)));
}

/// Two CPUs of each socket, so that waiters are passed over for neighbours.
fn validate_sockets<L: Lock>() {
    let rounds = if cfg!(miri) { 10 } else { 100 };
    exclusion(&Guarded::<L>::new(), CPUS, rounds, boot);
}

/// The locks are tested one after the other: the number of CPUs to play is limited.
macro_rules! validate_statics {
    ($($lock:ty),+) => {
        $({
            static LOCK: Guarded<$lock> = Guarded::new();
            validate(&LOCK);
        })+
    };
}

/// The same for the locks of the registry.
macro_rules! validate_rivals {
    (classic: $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+) => {
        validate_statics!($(classic::$lock<Metal>),+);
    };
}

#[test]
fn statics_are_free_locks() {
    antiphon_rivals::locks!(classic => validate_rivals);
    validate_sockets::<Cna<Metal, 1>>();
    validate_sockets::<CTktMcs<Metal, 2, 1>>();
    validate_sockets::<Hmcs<Metal, 2, 1>>();
    validate_sockets::<Ahmcs<Metal, 2, 1, 1>>();
    validate_sockets::<Hclh<Metal, 2>>();
    assert!(arena().high_water() < 63);
}
