//! The models of the locks: small programs whose executions the checker enumerates, each with its
//! name, its bounds and the probes that it must reach.
//!
//! ```
//! let entry = antiphon_models::find("shfl-mutex/excludes-2x1").unwrap();
//! let outcome = entry.check(antiphon_models::Limits::NONE);
//! assert!(outcome.assert_passed().executions() > 0);
//! ```
//!
//! A model passes when no execution went wrong, when an exhaustive one has seen every execution
//! within its bounds, and when each probe was reached. A lost wake-up shows as a deadlock, a
//! missing ordering as a data race on what the lock guards, a broken exclusion as a wrong sum.
//!
//! A name is `subject/property-case`. The subject is the lock, with its variant; the property is
//! what the model shows of it; the case is its size:
//! | case | threads |
//! |---|---|
//! | `3x2` | three that do the same thing, two rounds each |
//! | `2+1` | two that do one thing (lock, take an item), one that does another (give up, put) |
//!
//! Most models run a form of the lock with small numbers, which reaches the edges sooner, and
//! without the backstop, which would cover up a lost wake-up. Those called `shipped-…` run the form
//! that programs get.
//!
//! A few models are of forms that are known to be bad: they pass when the checker finds the
//! failure.
//!
//! The tests run every model; of the long ones they draw some executions by lot. `antiphon lab
//! check --whole` also runs those completely. [`TESTS`] says which test runs which. `mutants.toml`
//! breaks each invariant in turn and names the tests that must notice.

mod arena;
mod barrier;
mod batons;
mod boosts;
mod bounds;
mod broadcasts;
mod cancels;
mod channels;
mod chosen;
mod chunks;
mod classic;
mod clock;
mod colours;
mod condvar;
mod crews;
mod cst;
mod cst_rw;
mod defects;
mod delegation;
mod deques;
mod entry;
mod event_counts;
mod events;
mod fibers;
mod flights;
mod forks;
mod forms;
mod handed;
mod hogs;
mod idlers;
mod in_line;
mod inboxes;
mod inherited;
mod inside;
mod latches;
mod ledger;
mod linear;
mod linear_waits;
mod message;
mod metal;
mod moved;
mod mutex;
mod numa;
mod numa_rw;
mod once;
mod outcome;
mod program;
mod promises;
mod queues;
mod rw;
mod scavenging;
mod selects;
mod semaphore;
mod several;
mod shared;
mod shared_rw;
mod spin;
mod stages;
mod stock;
mod tasks;
mod tests;
mod urgent;
mod watched;
mod yields;

/// Used by the macro [`tests`](crate::tests!), which is expanded in other crates.
#[doc(hidden)]
pub use antiphon_rivals::locks;

pub use bounds::Bounds;
use entry::all_of;
pub use entry::{Entry, Limits};
pub use outcome::{Outcome, Verdict};
pub use tests::{TESTS, Test};

/// All models, by subject.
#[must_use]
pub fn all() -> Vec<Entry> {
    all_of([
        classic::entries(),
        numa::entries(),
        numa_rw::entries(),
        spin::entries(),
        mutex::entries(),
        handed::entries(),
        rw::entries(),
        defects::entries(),
        condvar::entries(),
        moved::entries(),
        inside::entries(),
        semaphore::entries(),
        barrier::entries(),
        once::entries(),
        deques::entries(),
        queues::entries(),
        inboxes::entries(),
        events::entries(),
        flights::entries(),
        forks::entries(),
        latches::entries(),
        broadcasts::entries(),
        event_counts::entries(),
        several::entries(),
        shared::entries(),
        boosts::entries(),
        shared_rw::entries(),
        batons::entries(),
        colours::entries(),
        arena::entries(),
        scavenging::entries(),
        in_line::entries(),
        urgent::entries(),
        chosen::entries(),
        inherited::entries(),
        linear::entries(),
        linear_waits::entries(),
        cst::entries(),
        cst_rw::entries(),
        stock::entries(),
        chunks::entries(),
        delegation::entries(),
        clock::entries(),
        message::entries(),
        metal::entries(),
        idlers::entries(),
        crews::entries(),
        hogs::entries(),
        fibers::entries(),
        yields::entries(),
        channels::entries(),
        stages::entries(),
        selects::entries(),
        cancels::entries(),
        tasks::entries(),
        promises::entries(),
    ])
}

/// Returns the model of this name.
#[must_use]
pub fn find(name: &str) -> Option<Entry> {
    all().into_iter().find(|entry| entry.name() == name)
}

/// Returns the models whose names begin with `prefix`, by subject.
#[must_use]
pub fn beginning_with(prefix: &str) -> Vec<Entry> {
    all().into_iter().filter(|entry| entry.name().starts_with(prefix)).collect()
}

/// Returns the models that a requested name denotes: the model of that name, unsampled, or all
/// models whose names begin with it, as the tests run them ([`Entry::sampled`]).
#[must_use]
pub fn asked_for(name: &str) -> Vec<Entry> {
    match find(name) {
        Some(entry) => vec![entry],
        None => beginning_with(name).into_iter().map(Entry::sampled).collect(),
    }
}
