//! Atomic words of the simulated machine.
//!
//! A word has its native size and holds its value in place, so that layout has the same meaning as
//! on a real machine: two words in 64 bytes share a line. The simulator keeps all other state by
//! address.
//!
//! Each access is a step of simulated time, as [`line`](crate::line) prices it, and takes effect at
//! its end; a store may be posted ([`buffer`](crate::buffer)). The orderings of the platform
//! interface have no effect: each access is as strong as on x86, where only a store may be delayed,
//! past later loads. The model checker covers weaker machines.
//!
//! Outside a simulation (a test that reads a counter afterwards) accesses act at once, unpriced.

use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use antiphon_platform::{Atomic, AtomicInteger, Budget};

use crate::buffer::dropped;
use crate::line::{Kind, LINE, LineId};
use crate::watch::{Watch, Watched, watch};
use crate::word::{self, Native};
use crate::world::{World, simulated, with};

/// Defines the word of one size.
macro_rules! word {
    ($name:ident, $native:ident, $value:ty, $doc:literal) => {
        #[doc = $doc]
        #[repr(transparent)]
        #[derive(Debug)]
        pub struct $name(pub(crate) $native);

        /// The native orderings are relaxed throughout: one host thread runs the simulation.
        impl Native for $name {
            fn address(&self) -> usize {
                core::ptr::from_ref(self).addr()
            }

            fn get(&self) -> u64 {
                u64::from(self.0.load(Relaxed))
            }

            fn set(&self, value: u64) {
                self.0.store(value as $value, Relaxed);
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                dropped(self.address());
            }
        }

        impl $name {
            /// The value that the calling thread would read now, without an access. Costs nothing;
            /// for experiments.
            #[must_use]
            pub fn peek(&self) -> $value {
                if simulated() {
                    with(|world| world.peek(self)) as $value
                } else {
                    self.0.load(Relaxed)
                }
            }

            /// Returns the old value; `change` computes the new value, or `None` for no change.
            fn modify(&self, change: impl FnOnce($value) -> Option<$value>) -> $value {
                let change = |value| change(value as $value).map(u64::from);
                if simulated() {
                    return word::modify(self, Kind::ReadModifyWrite, |_, value| change(value)).value
                        as $value;
                }
                let value = self.get();
                if let Some(new) = change(value) {
                    self.set(new);
                }
                value as $value
            }

            /// Spins while `keep` holds; without a budget, without a limit.
            fn spin(
                &self,
                budget: Option<Budget>,
                keep: impl Fn($value) -> bool,
            ) -> Result<$value, $value> {
                let look = |world: &mut World, thread: usize, line: LineId| {
                    let value = world.seen(thread, line, self);
                    (value, keep(value as $value))
                };
                let seen = word::load(self);
                let value = seen.value as $value;
                if !keep(value) {
                    return Ok(value);
                }
                let deadline_ns = budget.map(|budget| with(|world| world.spin_end_ns(budget)));
                let spot = Watch {
                    line: seen.line,
                    version: seen.version,
                    offset: (self.address() % LINE) as u8,
                    value: seen.value,
                    deadline_ns,
                };
                let backoff_ns = budget.and_then(|budget| budget.backoff);
                match watch(spot, backoff_ns, &look) {
                    Watched::Found(value) => Ok(value as $value),
                    Watched::Expired(value) => Err(value as $value),
                }
            }
        }

        impl Atomic<$value> for $name {
            const ZERO: Self = Self($native::new(0));

            fn load(&self, _: Ordering) -> $value {
                if simulated() { word::load(self).value as $value } else { self.0.load(Relaxed) }
            }

            fn store(&self, value: $value, _: Ordering) {
                if simulated() {
                    let stored = word::store(self, u64::from(value), |_| false);
                    assert!(stored, "nobody refuses it");
                } else {
                    self.0.store(value, Relaxed);
                }
            }

            fn swap(&self, value: $value, _: Ordering) -> $value {
                self.modify(|_| Some(value))
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                let held = self.modify(|value| (value == current).then_some(new));
                if held == current { Ok(held) } else { Err(held) }
            }

            fn wait_while(&self, _: Ordering, keep: impl Fn($value) -> bool) -> $value {
                if !simulated() {
                    let value = self.0.load(Relaxed);
                    assert!(!keep(value), "would wait for ever: no simulation runs here");
                    return value;
                }
                match self.spin(None, keep) {
                    Ok(value) | Err(value) => value,
                }
            }

            fn spin_while(
                &self,
                _: Ordering,
                budget: Budget,
                keep: impl Fn($value) -> bool,
            ) -> Result<$value, $value> {
                if !simulated() {
                    let value = self.0.load(Relaxed);
                    return if keep(value) { Err(value) } else { Ok(value) };
                }
                self.spin(Some(budget), keep)
            }
        }

        impl AtomicInteger<$value> for $name {
            fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                self.modify(|held| Some(held.wrapping_add(value)))
            }

            fn fetch_sub(&self, value: $value, _: Ordering) -> $value {
                self.modify(|held| Some(held.wrapping_sub(value)))
            }

            fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                self.modify(|held| Some(held | value))
            }

            fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                self.modify(|held| Some(held & value))
            }
        }
    };
}

word!(SimU8, AtomicU8, u8, "A simulated atomic byte.");
word!(SimU16, AtomicU16, u16, "A simulated atomic half word.");
word!(SimU32, AtomicU32, u32, "A simulated atomic word.");
word!(SimU64, AtomicU64, u64, "A simulated atomic double word.");
