//! A model checker as a platform: a lock that runs on Linux runs here unchanged, in every order and
//! with every value that weak memory allows.
//!
//! ```
//! use antiphon_check::{Check, Data, Model};
//! use antiphon_platform::{Atomic, Atomics};
//! use std::sync::atomic::Ordering::{Acquire, Release};
//!
//! let report = Model::new("message passing").run(|s| {
//!     let flag = s.share(<Check as Atomics>::U32::ZERO);
//!     let data = s.share(Data::new(0));
//!     s.spawn(move || {
//!         data.set(42);
//!         flag.store(1, Release);
//!     });
//!     s.spawn(move || {
//!         flag.wait_while(Acquire, |flag| flag == 0);
//!         assert_eq!(data.get(), 42);
//!     });
//! });
//! assert_eq!(report.assert_complete().executions, 1);
//! ```
//!
//! `README.md` describes what is checked and what is not, how to read a trace, and why the
//! exploration is complete.

mod atomic;
mod clock;
mod context;
mod data;
mod decide;
mod execution;
mod explore;
mod fences;
mod fiber;
mod graph;
mod history;
pub mod linearizability;
mod location;
mod model;
mod op;
mod platform;
#[cfg(test)]
mod psc;
mod replay;
mod retire;
mod revisit;
mod run;
mod scope;
mod shared;
mod step;
mod thread;
mod trace;

pub use atomic::{U8, U16, U32, U64};
pub use data::Data;
pub use history::History;
pub use model::{Failure, FailureKind, HeavyFence, Mode, Model, Report};
pub use platform::{Check, loans, set_urgency};
pub use scope::Scope;

/// Sets the name of a word in traces, until the word is dropped.
pub fn name<T>(word: &T, name: &'static str) {
    let address = std::ptr::from_ref(word).addr();
    context::with(|execution| execution.locations.name(address, name));
}

/// Declares the memory of `value` dead, as if it were freed here.
///
/// All accesses to its words must happen before this call; any other access is a
/// [`FailureKind::UseAfterRetire`].
pub fn retire<T>(value: &T) {
    let from = std::ptr::from_ref(value).addr();
    let failed = context::with(|execution| {
        execution.retire(from, from + size_of::<T>());
        execution.ending.is_some()
    });
    if failed && !std::thread::panicking() {
        context::stop();
    }
}

/// Counts that the caller was reached, for [`Report::probes`].
pub fn probe(name: &'static str) {
    context::with(|execution| *execution.probes.entry(name).or_default() += 1);
}

/// Returns a number below `options`; each of them is explored.
#[must_use]
pub fn choose(options: u64) -> u64 {
    assert!(options > 0, "there is nothing to choose from");
    context::perform(&op::Op::Choice { what: graph::What::Model, options }).value
}

/// A fingerprint of the execution so far: equal for two executions if and only if each read reads
/// from the same write and all writes take effect in the same order.
///
/// With [`Mode::Exhaustive`] no two complete executions have the same fingerprint, unless a wait
/// was ended because nothing else could happen.
#[must_use]
pub fn fingerprint() -> u64 {
    context::with(|execution| execution.fingerprint())
}
